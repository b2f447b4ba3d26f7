//go:build linux

package qemu

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// What a program that only claims to be QEMU may make us remember.
const (
	maxAnswers = 4 << 20 // QEMU 7.2 answers 0.3 MiB
	maxErrors  = 4 << 10
)

// A session is a QEMU that answers on its standard output.
type session struct {
	ctx     context.Context
	path    string
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
	errors  tail
	version Version
}

// open starts QEMU and shakes hands with it. It has a process group of its own,
// which ends as a whole with the context. Should we be killed, the kernel ends QEMU when
// the calling thread ends: QEMU itself does not when its standard input closes.
func open(ctx context.Context, path string, args []string) (*session, error) {
	args = append([]string{"-nodefaults", "-no-user-config", "-display", "none", "-S",
		"-qmp", "stdio"}, args...)
	s := &session{ctx: ctx, path: path, cmd: exec.CommandContext(ctx, path, args...)}
	s.cmd.Dir = "/"
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	s.cmd.Cancel = s.kill
	s.cmd.WaitDelay = time.Second // for a process that left the group and holds the pipes
	s.cmd.Stderr = &s.errors
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", path, err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", path, err)
	}
	s.in, s.out = in, json.NewDecoder(io.LimitReader(out, maxAnswers))
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("ask %s: %w", path, err)
	}
	// A QEMU that aborts, as some do with KVM, leaves no core behind. If that cannot
	// be prevented, it is only untidy.
	_ = unix.Prlimit(s.cmd.Process.Pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
	if err := s.greet(); err != nil {
		return nil, s.close(err)
	}
	return s, nil
}

// kill ends the whole group. Its leader is not reaped yet, so that the number is
// still its own.
func (s *session) kill() error { return syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) }

func (s *session) greet() error {
	var greeting struct {
		QMP *struct {
			Version struct {
				QEMU Version
			}
		}
	}
	if err := s.out.Decode(&greeting); err != nil {
		return fmt.Errorf("it does not greet like a QEMU: %w", err)
	}
	if greeting.QMP == nil {
		return errors.New("it does not greet like a QEMU: QMP is missing")
	}
	s.version = greeting.QMP.Version.QEMU
	return s.call("qmp_capabilities", nil, nil)
}

// A refusal is QEMU's own error.
type refusal struct {
	Class, Desc string
}

// Error returns QEMU's words.
func (r *refusal) Error() string { return r.Class + ": " + r.Desc }

func refused(err error) bool {
	_, ok := errors.AsType[*refusal](err)
	return ok
}

// call runs a command and decodes what it returns into answer, if that is not nil.
func (s *session) call(command string, arguments, answer any) error {
	request := map[string]any{"execute": command, "id": command}
	if arguments != nil {
		request["arguments"] = arguments
	}
	text, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	if _, err := s.in.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	for {
		var reply struct {
			Return json.RawMessage
			Error  *refusal
			ID     any
		}
		if err := s.out.Decode(&reply); err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
		switch {
		case reply.ID != command: // an event
		case reply.Error != nil:
			return fmt.Errorf("%s: %w", command, reply.Error)
		case answer == nil:
			return nil
		default:
			if err := json.Unmarshal(reply.Return, answer); err != nil {
				return fmt.Errorf("%s: unreadable answer: %w", command, err)
			}
			return nil
		}
	}
}

// close ends QEMU and returns why what was done before it failed, or nil.
func (s *session) close(failed error) error {
	killed := s.kill()
	if errors.Is(killed, syscall.ESRCH) {
		killed = nil // it has ended by itself
	}
	ended := s.cmd.Wait()
	if failed == nil {
		return killed // it was killed; how it ended tells nothing
	}
	if cause := context.Cause(s.ctx); cause != nil {
		failed = fmt.Errorf("no answer in time (%w): %w", cause, failed)
	}
	if errors.Is(failed, io.EOF) || errors.Is(failed, syscall.EPIPE) {
		failed = fmt.Errorf("it has ended (%v): %w", ended, failed)
	}
	return fmt.Errorf("ask %s: %w: %s", s.path, failed, s.said())
}

// said returns the end of what QEMU wrote to its standard error.
func (s *session) said() string {
	if text := strings.TrimSpace(string(s.errors)); text != "" {
		return strings.ToValidUTF8(text, "?")
	}
	return "it gave no reason"
}

// tail keeps the last of what is written to it.
type tail []byte

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	if extra := len(*t) - maxErrors; extra > 0 {
		*t = bytes.Clone((*t)[extra:])
	}
	return len(p), nil
}
