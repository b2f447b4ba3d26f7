//go:build linux

package libvirttest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/godwit-vm/godwit/internal/libvirttest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

const own = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS |
	syscall.CLONE_NEWNET

// launched is a sandbox with its own mounts, name and numbers.
func launched(t *testing.T) (*libvirttest.Sandbox, string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
	dir := t.TempDir()
	s := &libvirttest.Sandbox{}
	t.Cleanup(func() {
		if err := s.Kill(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Launch(own, filepath.Join(dir, "log")); err != nil {
		t.Skipf("no namespaces can be made here: %v", err)
	}
	if err := s.Boot(libvirttest.Spec{Name: "there", Dirs: []string{filepath.Join(dir, "made")},
		Files:  map[string]string{filepath.Join(dir, "made", "file"): "text"},
		Mounts: []libvirttest.Mount{{Outside: dir, Inside: dir}}}); err != nil {
		t.Fatal(err)
	}
	return s, dir
}

func run(t *testing.T, s *libvirttest.Sandbox, argv ...string) string {
	t.Helper()
	out, err := s.Run("", argv...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

func TestRunTellsWhatAProgramDid(t *testing.T) {
	s, dir := launched(t)
	if got := run(t, s, "hostname"); got != "there" {
		t.Errorf("the host's name is %q", got)
	}
	if here, err := os.Hostname(); err != nil || here == "there" {
		t.Errorf("the machine's name is %q: %v", here, err)
	}
	if got := run(t, s, "cat", filepath.Join(dir, "made", "file")); got != "text" {
		t.Errorf("the file says %q", got)
	}
	if out, err := s.Run("in", "sh", "-c", "cat; echo out >&2"); err != nil || out != "inout\n" {
		t.Errorf("it says %q: %v", out, err)
	}
	for _, argv := range [][]string{{"false"}, {"sh", "-c", "kill -9 $$"}, {"/no/such/program"},
		{}} {
		if _, err := s.Run("", argv...); err == nil {
			t.Errorf("%q does not fail", argv)
		}
	}
	if got := run(t, s, "echo", "on"); got != "on" {
		t.Errorf("after failures it says %q", got)
	}
}

// TestOrphansAreReaped matters because libvirt takes a zombie for a QEMU that runs.
func TestOrphansAreReaped(t *testing.T) {
	s, _ := launched(t)
	run(t, s, "sh", "-c", "(sleep 0.1 >/dev/null 2>&1 &) ; true")
	testutil.Eventually(t, "sleep is reaped", func() error {
		found := run(t, s, "sh", "-c", "cat /proc/[0-9]*/comm 2>/dev/null; true")
		if strings.Contains(found, "sleep") {
			return fmt.Errorf("there are %q", strings.Fields(found))
		}
		return nil
	})
}

func TestTheDaemonIsOneProcess(t *testing.T) {
	s, dir := launched(t)
	log := filepath.Join(dir, "daemon")
	pids := func() []string {
		return strings.Fields(run(t, s, "sh", "-c", "for f in /proc/[0-9]*/comm; do "+
			"read c <$f || continue; test $c = sleep && echo ${f%/comm}; done; true"))
	}
	if err := s.SignalDaemon(syscall.SIGKILL); err != nil {
		t.Errorf("to kill none: %v", err)
	}
	if err := s.SignalDaemon(syscall.SIGSTOP); err == nil {
		t.Error("a daemon that does not run was stopped")
	}
	for range 3 {
		for range 2 {
			if err := s.StartDaemon(log, "sleep", "1000"); err != nil {
				t.Fatal(err)
			}
		}
		run(t, s, "sh", "-c", "(sleep 1001 >/dev/null 2>&1 &)")
		eventuallyHas(t, pids, 2)
		if err := s.Sweep(); err != nil {
			t.Error(err)
		}
		eventuallyHas(t, pids, 1)
		var inside int
		if _, err := fmt.Sscanf(pids()[0], "/proc/%d", &inside); err != nil {
			t.Fatal(err)
		}
		outside, err := s.Outer(inside)
		argv, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", outside))
		if err != nil || string(argv) != "sleep\x001000\x00" {
			t.Errorf("process %d is outside %d, %q: %v", inside, outside, argv, err)
		}
		if err := s.SignalDaemon(syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		if left := pids(); len(left) != 0 { // at once: it has been waited for
			t.Errorf("there are %q", left)
		}
		if pid, err := s.Outer(inside); err == nil {
			t.Errorf("process %d that has ended is %d", inside, pid)
		}
	}
}

// eventuallyHas waits for a number of processes: one that has just been started has
// its parent's name, one that was killed ends soon.
func eventuallyHas(t *testing.T, pids func() []string, want int) {
	t.Helper()
	testutil.Eventually(t, fmt.Sprintf("there are %d processes", want), func() error {
		if all := pids(); len(all) != want {
			return fmt.Errorf("there are %q", all)
		}
		return nil
	})
}

func TestASandboxThatIsOffSaysSo(t *testing.T) {
	s, dir := launched(t)
	if s.PID() == 0 {
		t.Error("a sandbox that is on has no process")
	}
	if err := syscall.Kill(s.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second finds the pipe as the first has left it
		if _, err := s.Run("", "true"); err == nil {
			t.Error("a sandbox whose first process was killed answers")
		}
	}
	for range 2 {
		if err := s.Kill(); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Run("", "true"); err == nil || s.PID() != 0 {
		t.Errorf("off, it is process %d and answers %v", s.PID(), err)
	}
	if err := s.Launch(own, filepath.Join(dir, "log")); err != nil {
		t.Fatal(err)
	}
	if got := run(t, s, "echo", "again"); got != "again" {
		t.Errorf("launched anew it says %q", got)
	}
}

func TestBootWantsAPIDNamespace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
	s := &libvirttest.Sandbox{}
	if err := s.Launch(syscall.CLONE_NEWNET, filepath.Join(t.TempDir(), "log")); err != nil {
		t.Skipf("no namespaces can be made here: %v", err)
	}
	defer s.Kill()
	if err := s.Boot(libvirttest.Spec{Name: "wrong"}); err == nil {
		t.Error("the machine itself was booted")
	}
}
