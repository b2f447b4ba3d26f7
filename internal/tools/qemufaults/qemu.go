//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/godwit-vm/godwit/internal/guest"
)

// patience is how long anything may take.
const patience = 30 * time.Second

// A machine is one QEMU.
type machine struct {
	dir  string
	cmd  *exec.Cmd
	qmp  net.Conn
	read *bufio.Reader
}

// start runs a QEMU with the guest; an incoming one waits for it, and does not let it run.
func start(o options, dir, name string, p guest.Params, incoming bool) (*machine, error) {
	m := &machine{dir: filepath.Join(dir, name)}
	rom, err := p.Firmware()
	if err = errors.Join(err, os.Mkdir(m.dir, 0o700)); err != nil {
		return nil, err
	}
	if err := os.WriteFile(m.path("rom"), rom, 0o600); err != nil {
		return nil, err
	}
	cpu := "qemu64"
	if o.accel == "kvm" {
		cpu = "host,arch-capabilities=off" // some nested KVMs cannot set what it needs
	}
	args := []string{"-machine", "pc,accel=" + o.accel, "-cpu", cpu,
		"-m", fmt.Sprintf("%dM", (guest.Base+p.Fill)>>20+2), "-S",
		"-nodefaults", "-display", "none", "-bios", m.path("rom"),
		"-qmp", "unix:" + m.path("qmp") + ",server=on,wait=off",
		"-chardev", "socket,id=pulse,path=" + m.path("pulse") + ",server=on,wait=off",
		"-device", "isa-debugcon,iobase=0xe9,chardev=pulse"}
	if incoming {
		args = append(args, "-incoming", "unix:"+m.path("in"))
	}
	m.cmd = exec.Command(o.qemu, args...)
	if m.cmd.Stderr, err = os.Create(m.path("stderr")); err != nil {
		return nil, err
	}
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	return m, m.connect()
}

func (m *machine) path(name string) string { return filepath.Join(m.dir, name) }

// connect opens QMP.
func (m *machine) connect() error {
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		conn, err := net.Dial("unix", m.path("qmp"))
		if err == nil {
			m.qmp, m.read = conn, bufio.NewReader(conn)
			return m.do("qmp_capabilities", nil, nil)
		}
		if time.Now().After(end) {
			return err
		}
	}
}

// end kills the process.
func (m *machine) end() {
	if m == nil || m.cmd.Process == nil {
		return
	}
	_ = m.cmd.Process.Kill()
	_ = m.cmd.Wait()
}

// do executes a command. Events are not looked at.
func (m *machine) do(command string, arguments map[string]any, result any) error {
	request := map[string]any{"execute": command}
	if arguments != nil {
		request["arguments"] = arguments
	}
	line, err := json.Marshal(request)
	if err != nil {
		return err
	}
	m.qmp.SetDeadline(time.Now().Add(patience))
	if _, err := m.qmp.Write(line); err != nil {
		return err
	}
	for {
		line, err := m.read.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
		var reply struct {
			Return json.RawMessage
			Error  *struct{ Desc string }
		}
		if err := json.Unmarshal(line, &reply); err != nil {
			return err
		}
		switch {
		case reply.Error != nil:
			return fmt.Errorf("%s: %s", command, reply.Error.Desc)
		case reply.Return == nil: // the greeting, or an event
		case result == nil:
			return nil
		default:
			return json.Unmarshal(reply.Return, result)
		}
	}
}

// status is how its guest and its migration are.
func (m *machine) status() (run, migration string, err error) {
	var s, g struct{ Status string }
	err = errors.Join(m.do("query-status", nil, &s), m.do("query-migrate", nil, &g))
	return s.Status, g.Status, err
}

// await waits until the migration is in one of the states, and returns which.
func (m *machine) await(states ...string) (string, error) {
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		_, now, err := m.status()
		if err != nil {
			return "", err
		}
		for _, s := range states {
			if s == now {
				return now, nil
			}
		}
		if time.Now().After(end) {
			return "", fmt.Errorf("waited in vain until the migration was %v: it is %q", states, now)
		}
	}
}

// capable switches capabilities of migrations on.
func (m *machine) capable(names ...string) error {
	var list []map[string]any
	for _, n := range names {
		list = append(list, map[string]any{"capability": n, "state": true})
	}
	return m.do("migrate-set-capabilities", map[string]any{"capabilities": list}, nil)
}

// bandwidth limits the migration, in bytes per second.
func (m *machine) bandwidth(n int64) error {
	return m.do("migrate-set-parameters", map[string]any{"max-bandwidth": n}, nil)
}

// A pair is a guest that runs at a source, and a target that waits for it.
type pair struct {
	dir            string
	source, target *machine
	pulse          *guest.HeartbeatListener
}

// newPair starts the two, and waits until the guest runs.
func newPair(o options, p guest.Params) (*pair, error) {
	dir, err := os.MkdirTemp("", "qemufaults")
	if err != nil {
		return nil, err
	}
	two := &pair{dir: dir}
	two.pulse, err = guest.NewHeartbeatListener()
	if err == nil {
		two.source, err = start(o, dir, "source", p, false)
	}
	if err == nil {
		two.target, err = start(o, dir, "target", p, true)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err == nil {
		err = errors.Join(two.pulse.Connect(ctx, "source", two.source.path("pulse")),
			two.pulse.Connect(ctx, "target", two.target.path("pulse")),
			two.source.do("cont", nil, nil))
	}
	if err == nil {
		err = two.pulse.Wait(ctx, func(r guest.HeartbeatLog) bool { return r.Ready && r.Beats > 3 })
	}
	if err != nil {
		two.end()
		return nil, err
	}
	return two, nil
}

func (p *pair) end() {
	p.source.end()
	p.target.end()
	if p.pulse != nil {
		p.pulse.Close()
	}
	os.RemoveAll(p.dir)
}
