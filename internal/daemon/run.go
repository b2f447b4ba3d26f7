package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/godwit-vm/godwit/hypervisor"
)

const (
	on      = 0 // what an agent exits with when the host is on, or all is well
	off     = 2 // and when the host is off
	unclear = -1

	// lastWords is how long an agent that was killed, or what it has left behind, may
	// hold on to its output.
	lastWords = time.Second
	maxOutput = 4 << 10 // bytes of an agent's output that are kept
	maxText   = 400     // bytes of it that an error quotes
)

// do runs the device's agent once, and returns what it exits with. The error says why
// that is unclear, or not on.
func (d *Device) do(ctx context.Context, host hypervisor.HostName, action string) (int, error) {
	path, err := lookUp(d.Agent)
	if err != nil {
		return unclear, err
	}
	out := &limited{}
	cmd := exec.CommandContext(ctx, path)
	cmd.Stdin = strings.NewReader(d.input(host, action))
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	// A group of its own, so that whatever the agent has started ends with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = lastWords
	err = cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) { // something of the group is still there
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	switch {
	case ctx.Err() != nil:
		return unclear, fmt.Errorf("%s: %w", action, context.Cause(ctx))
	case cmd.ProcessState == nil:
		return unclear, fmt.Errorf("%s: %w", action, err)
	case cmd.ProcessState.ExitCode() == on:
		return on, nil
	}
	return cmd.ProcessState.ExitCode(), fmt.Errorf("%s: %s%s", action, cmd.ProcessState,
		d.quote(out.kept.String()))
}

// input is what an agent reads.
func (d *Device) input(host hypervisor.HostName, action string) string {
	text := "action=" + action + "\nnodename=" + string(host) + "\n"
	for _, name := range slices.Sorted(maps.Keys(d.Options)) {
		text += name + "=" + d.Options[name] + "\n"
	}
	return text
}

// harmless are options whose values may be shown. All others may be secrets, whatever
// they are called.
var harmless = []string{"ip", "ipaddr", "ipport", "plug", "port", "status_file", "timeout", "type"}

// quote makes one line of what an agent has printed, without secrets: agents print the
// options that they do not know.
func (d *Device) quote(text string) string {
	var values []string
	for name, value := range d.Options {
		if !slices.Contains(harmless, name) && (len(value) > 3 || strings.Contains(name, "pass")) {
			values = append(values, value)
		}
	}
	// The longest first: one may be a part of another.
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	for _, v := range values {
		if v != "" {
			text = strings.ReplaceAll(text, v, "***")
		}
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if text == "" {
		return ""
	}
	if len(text) > maxText {
		cut := maxText
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return ": " + text
}

// name is what an agent is called in evidence.
func (d *Device) name() string { return filepath.Base(d.Agent) }

// places are where agents are, besides PATH, which daemons often lack.
var places = []string{"/usr/sbin", "/sbin", "/usr/local/sbin"}

// lookUp finds a program.
func lookUp(agent string) (string, error) {
	path, err := exec.LookPath(agent)
	if err == nil || strings.Contains(agent, "/") {
		return path, err
	}
	for _, dir := range places {
		if path, err := exec.LookPath(filepath.Join(dir, agent)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w; install the package fence-agents, or name its path", err)
}

// limited keeps the beginning of what is written, and swallows the rest.
type limited struct{ kept bytes.Buffer }

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	l.kept.Write(p[:min(len(p), maxOutput-l.kept.Len())])
	return len(p), nil
}
