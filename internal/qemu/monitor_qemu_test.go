package qemu_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/digitalocean/go-qemu/qmp"

	"github.com/godwit-vm/godwit/internal/qemu"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// startQEMU starts a QEMU without a machine and returns its process and its
// monitor's socket. It is killed and reaped when the test ends.
func startQEMU(t testing.TB) (process *os.Process, path string) {
	t.Helper()
	program, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		t.Skip("qemu-system-x86_64 is not installed")
	}
	dir, err := os.MkdirTemp("", "qmp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path = filepath.Join(dir, "monitor")
	q := exec.Command(program, "-machine", "none", "-nodefaults", "-display", "none", "-S",
		"-qmp", "unix:"+path+",server=on,wait=off")
	q.Stderr = os.Stderr
	if err := q.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = q.Process.Kill()
		_ = q.Wait()
	})
	testutil.Eventually(t, "QEMU listens", func() error { return listens(path) })
	return q.Process, path
}

// listens returns nil when a process accepts connections at a Unix socket. It makes none: QEMU, which talks with one
// client at a time, may take the next one for the one that has just left.
func listens(path string) error {
	const accepts = "00010000" // __SO_ACCEPTCON
	table, err := os.ReadFile("/proc/net/unix")
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) == 8 && f[7] == path && f[3] == accepts {
			return nil
		}
	}
	return cmp.Or(err, fmt.Errorf("no process listens at %s", path))
}

func dialQEMU(t testing.TB) (m *qemu.Monitor, process *os.Process) {
	t.Helper()
	process, path := startQEMU(t)
	return dialPath(t, path), process
}

func dialPath(t testing.TB, path string) *qemu.Monitor {
	t.Helper()
	m, err := qemu.Dial(context.Background(), qemu.Config{Path: path, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// status is what query-status returns, in part.
type status struct {
	Running bool   `json:"running"`
	Status  string `json:"status"`
}

func TestRealQEMU(t *testing.T) {
	process, path := startQEMU(t)
	m := dialPath(t, path)
	if pid, err := m.Peer(); err != nil || pid != process.Pid {
		t.Errorf("got %d, %v; want %d", pid, err, process.Pid)
	}
	t.Run("the version is the greeting's", func(t *testing.T) {
		var v struct {
			QEMU struct{ Major, Minor, Micro int }
		}
		err := m.Execute(t.Context(), "query-version", nil, &v)
		got := fmt.Sprintf("%d.%d.%d", v.QEMU.Major, v.QEMU.Minor, v.QEMU.Micro)
		if err != nil || got != m.Greeting().Version.String() {
			t.Errorf("got %s, %v; greeted by %v", got, err, m.Greeting())
		}
	})
	t.Run("a reply of 200 KB", func(t *testing.T) {
		var schema []struct{ Name string }
		err := m.Execute(t.Context(), "query-qmp-schema", nil, &schema)
		if err != nil || len(schema) < 100 {
			t.Errorf("got %d, %v", len(schema), err)
		}
	})
	t.Run("a hundred commands at once", func(t *testing.T) { hundredCommands(t, m) })
	t.Run("refusals keep their class", func(t *testing.T) {
		err := m.Execute(t.Context(), "no-such-command", nil, nil)
		if !errors.Is(err, qemu.CommandNotFound) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("files", func(t *testing.T) { filesOfQEMU(t, m) })
	t.Run("two listeners hear the same", func(t *testing.T) { twoListeners(t, m) })
	t.Run("out of band", func(t *testing.T) {
		arguments := map[string][]string{"instances": {}}
		if err := m.ExecuteOOB(t.Context(), "yank", arguments, nil); err != nil {
			t.Error(err)
		}
		err := m.ExecuteOOB(t.Context(), "query-version", nil, nil)
		if !errors.Is(err, qemu.GenericError) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a reconnection", func(t *testing.T) {
		s := m.Subscribe()
		defer s.Close()
		_ = m.Disconnect()
		if err := m.Connect(); err != nil {
			t.Fatal(err)
		}
		_, first := s.Next(within(t, patience))
		_, second := s.Next(within(t, patience))
		gap, ok := errors.AsType[*qemu.Gap](second)
		if !errors.Is(first, qemu.ErrDisconnected) || !ok || !gap.Renewed {
			t.Errorf("got %v, then %v", first, second)
		}
		hundredCommands(t, m)
	})
	t.Run("a second client is told why it waits", func(t *testing.T) {
		other := qemu.Config{Path: path}
		_, err := qemu.Dial(within(t, 100*time.Millisecond), other)
		expect(t, err, qemu.NotSent, context.DeadlineExceeded)
	})
}

func hundredCommands(t *testing.T, m *qemu.Monitor) {
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			var s status
			if err := m.Execute(context.Background(), "query-status", nil, &s); err != nil ||
				s.Status == "" {
				t.Errorf("got %+v, %v", s, err)
			}
		})
	}
	all.Wait()
}

func filesOfQEMU(t *testing.T, m *qemu.Monitor) {
	var all sync.WaitGroup
	for i := range 20 {
		f := written(t, "text")
		all.Go(func() {
			name := fmt.Sprintf("file%d", i)
			if err := m.SendFile(context.Background(), name, f); err != nil {
				t.Errorf("getfd %s: %v", name, err)
			}
			arguments := map[string]string{"fdname": name}
			if err := m.Execute(context.Background(), "closefd", arguments, nil); err != nil {
				t.Errorf("closefd %s: %v", name, err)
			}
		})
	}
	all.Wait()
	var added struct {
		Set int `json:"fdset-id"`
	}
	arguments := map[string]int{"fdset-id": 7}
	err := m.ExecuteFile(t.Context(), "add-fd", arguments, &added, written(t, "text"))
	if err != nil || added.Set != 7 {
		t.Errorf("got %+v, %v", added, err)
	}
}

func twoListeners(t *testing.T, m *qemu.Monitor) {
	listeners := []*qemu.Subscription{m.Subscribe(), m.Subscribe()}
	for _, command := range []string{"cont", "stop"} {
		if err := m.Execute(t.Context(), command, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range listeners {
		for _, want := range []string{"RESUME", "STOP"} {
			e, err := s.Next(within(t, patience))
			if err != nil || e.Name != want || e.Time.IsZero() {
				t.Errorf("got %+v, %v; want %s", e, err, want)
			}
		}
		s.Close()
	}
}

func TestRealQEMUIsKilled(t *testing.T) {
	m, process := dialQEMU(t)
	s := m.Subscribe()
	if err := process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if e, err := s.Next(within(t, patience)); err != nil || e.Name != "SHUTDOWN" {
		t.Errorf("got %+v, %v", e, err)
	}
	if err := mustEnd(t, m); !errors.Is(err, qemu.ErrLost) {
		t.Errorf("got %v", err)
	}
	m, process = dialQEMU(t)
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	err := m.Execute(t.Context(), "query-status", nil, nil)
	if !errors.Is(err, qemu.Unknown) && !errors.Is(err, qemu.NotSent) && err != nil {
		t.Errorf("got %v", err)
	}
	mustEnd(t, m)
	expect(t, m.Execute(t.Context(), "query-status", nil, nil), qemu.NotSent, qemu.ErrLost)
	expect(t, m.Connect(), qemu.NotSent)
}

// TestGoQEMUsMonitorIsAdapted drives a real QEMU through another
// library's transport.
func TestGoQEMUsMonitorIsAdapted(t *testing.T) {
	c, err := qemu.Adapt(socketMonitor(t), qemu.Config{Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var s status
	if err := c.Execute(t.Context(), "query-status", nil, &s); err != nil || s.Status == "" {
		t.Errorf("got %+v, %v", s, err)
	}
	err = c.Execute(t.Context(), "no-such-command", nil, nil)
	expect(t, err, qemu.Unknown) // the class is lost on the way
}

func socketMonitor(t testing.TB) qmp.Monitor {
	t.Helper()
	_, path := startQEMU(t)
	m, err := qmp.NewSocketMonitor("unix", path, patience)
	if err == nil {
		err = m.Connect()
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// BenchmarkRoundTrip asks a real QEMU for its status.
func BenchmarkRoundTrip(b *testing.B) {
	b.Run("one at a time", func(b *testing.B) {
		m, _ := dialQEMU(b)
		for b.Loop() {
			var s status
			if err := m.Execute(b.Context(), "query-status", nil, &s); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("eight at a time", func(b *testing.B) {
		m, _ := dialQEMU(b)
		b.SetParallelism(4) // on two CPUs
		b.RunParallel(func(next *testing.PB) {
			for next.Next() {
				if err := m.Execute(b.Context(), "query-status", nil, nil); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("one at a time, go-qemu", func(b *testing.B) {
		m := socketMonitor(b)
		defer func() { _ = m.Disconnect() }()
		for b.Loop() {
			if _, err := m.Run([]byte(`{"execute":"query-status"}`)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
