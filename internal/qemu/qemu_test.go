package qemu_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/qemu"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// patience is how long a test waits for QEMU at most.
var patience = testutil.Limit(testutil.DefaultLimit)

// installed returns the QEMU of this host, or skips the test.
func installed(t *testing.T) qemu.Features {
	t.Helper()
	path, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		t.Skip("there is no QEMU: ", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	f, err := qemu.Probe(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Require(qemu.Oldest); err != nil {
		t.Skip(err)
	}
	return f
}

// withAccelerators runs a test with each accelerator of this host.
func withAccelerators(t *testing.T, test func(*testing.T, qemu.Features, qemu.Settings)) {
	t.Helper()
	f := installed(t)
	t.Run(qemu.TCG, func(t *testing.T) {
		test(t, f, qemu.Settings{Accelerator: qemu.TCG})
	})
	t.Run(qemu.KVM, func(t *testing.T) {
		if f.Accelerator != qemu.KVM {
			t.Skip("KVM does not work here: ", f.NoKVM)
		}
		test(t, f, qemu.Settings{Accelerator: qemu.KVM, CPU: f.CPU})
	})
}

// shortDir makes a folder whose name leaves room for that of a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "godwit, =") // and is odd
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// image makes a raw image of 1 MiB.
func image(t *testing.T, name string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// A machineUnderTest is a QEMU with an open QMP connection.
type machineUnderTest struct {
	t      *testing.T
	conn   net.Conn
	lines  *bufio.Reader
	stderr bytes.Buffer // only read after the end
	ended  chan struct{}
}

// start runs vm until the end of the test.
func start(t *testing.T, path string, vm hypervisor.VM, s qemu.Settings) *machineUnderTest {
	t.Helper()
	args, err := qemu.Args(vm, s)
	if err != nil {
		t.Fatal(err)
	}
	m := &machineUnderTest{t: t, ended: make(chan struct{})}
	cmd := exec.Command(path, args...)
	cmd.Stderr = &m.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(m.ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-m.ended
		if t.Failed() {
			t.Logf("QEMU said: %s", m.stderr.String())
		}
		if m.conn != nil {
			_ = m.conn.Close()
		}
	})
	m.connect(s.QMP())
	return m
}

func (m *machineUnderTest) connect(socket string) {
	m.t.Helper()
	testutil.Eventually(m.t, "QEMU listens", func() (err error) {
		select {
		case <-m.ended:
			return testutil.Stop(fmt.Errorf("QEMU has ended: %s", m.stderr.String()))
		default:
		}
		m.conn, err = net.Dial("unix", socket)
		return err
	})
	if err := m.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		m.t.Fatal(err)
	}
	m.lines = bufio.NewReader(m.conn)
	if _, err := m.lines.ReadBytes('\n'); err != nil {
		m.t.Fatal(err)
	}
	m.do("qmp_capabilities", nil, nil)
}

// do runs a command that has to succeed.
func (m *machineUnderTest) do(command string, arguments, answer any) {
	m.t.Helper()
	if err := m.try(command, arguments, answer); err != nil {
		m.t.Fatalf("%s: %v", command, err)
	}
}

func (m *machineUnderTest) try(command string, arguments, answer any) error {
	request := map[string]any{"execute": command}
	if arguments != nil {
		request["arguments"] = arguments
	}
	if err := json.NewEncoder(m.conn).Encode(request); err != nil {
		return err
	}
	for {
		line, err := m.lines.ReadBytes('\n')
		if err != nil {
			return err
		}
		var reply struct {
			Event  string
			Return json.RawMessage
			Error  *struct{ Desc string }
		}
		if err := json.Unmarshal(line, &reply); err != nil {
			return err
		}
		switch {
		case reply.Event != "":
		case reply.Error != nil:
			return errors.New(reply.Error.Desc)
		case answer != nil:
			return json.Unmarshal(reply.Return, answer)
		default:
			return nil
		}
	}
}

// human runs a command of the monitor for people.
func (m *machineUnderTest) human(command string) string {
	m.t.Helper()
	var said string
	m.do("human-monitor-command", map[string]any{"command-line": command}, &said)
	return said
}

// await asks until the answer has a status.
func (m *machineUnderTest) await(command, want string) {
	m.t.Helper()
	testutil.Eventually(m.t, command+" answers "+want, func() error {
		var got struct {
			Status string
			Desc   string `json:"error-desc"`
		}
		m.do(command, nil, &got)
		err := fmt.Errorf("it answers %s %s", got.Status, got.Desc)
		switch got.Status {
		case want:
			return nil
		case "failed":
			return testutil.Stop(err)
		}
		return err
	})
}

// unplug takes a disk out. QEMU lets go of it a moment after the device is gone.
func (m *machineUnderTest) unplug(disk string) {
	m.t.Helper()
	m.do("device_del", map[string]any{"id": qemu.DeviceID(disk)}, nil)
	node := map[string]any{"node-name": qemu.NodeName(disk)}
	testutil.Eventually(m.t, "QEMU lets go of "+disk, func() error {
		return m.try("blockdev-del", node, nil)
	})
}

// migrate moves a VM from m to target over a socket in dir.
func (m *machineUnderTest) migrate(target *machineUnderTest, dir string, capabilities ...string) {
	m.t.Helper()
	set := []any{}
	for _, name := range capabilities {
		set = append(set, map[string]any{"capability": name, "state": true})
	}
	for _, side := range []*machineUnderTest{m, target} {
		side.do("migrate-set-capabilities", map[string]any{"capabilities": set}, nil)
	}
	uri := fmt.Sprintf("unix:%s/m", dir)
	target.do("migrate-incoming", map[string]any{"uri": uri}, nil)
	m.do("migrate", map[string]any{"uri": uri}, nil)
}
