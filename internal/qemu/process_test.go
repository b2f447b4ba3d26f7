//go:build linux

package qemu_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/godwit-vm/godwit/internal/qemu"
	"github.com/godwit-vm/godwit/internal/testutil"
)

func TestHowAProcessEnds(t *testing.T) {
	self, env := play(t, "greeter")
	log := filepath.Join(t.TempDir(), "log")
	spec := qemu.Spec{Path: self, Args: []string{"a b", "", "$c;"}, Env: env, Log: log}
	for range 2 {
		p := processStart(t, spec)
		awaitEnd(t, p)
		code, signal, known := p.Exit()
		if code != 7 || signal != 0 || !known {
			t.Errorf("it ended with %d, %v, %t, want 7 and no signal", code, signal, known)
		}
	}
	text, err := os.ReadFile(log)
	if want := strings.Repeat("out [a b  $c;]\nerr\n", 2); err != nil || string(text) != want {
		t.Errorf("the log has %q (%v), want %q", text, err, want)
	}
	at, err := os.Stat(log)
	if err != nil || at.Mode().Perm() != 0o600 {
		t.Errorf("the log has the mode %v (%v), want 0600", at.Mode(), err)
	}
}

func TestALogThatOthersCouldReadNoLongerCan(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	processStart(t, qemu.Spec{Path: sleepPath(t), Args: []string{"1000"}, Log: log})
	if at, err := os.Stat(log); err != nil || at.Mode().Perm() != 0o600 {
		t.Errorf("the log has the mode %v (%v), want 0600", at.Mode(), err)
	}
}

func TestAProcessThatIsKilled(t *testing.T) {
	p := sleeper(t)
	if _, _, known := p.Exit(); known || p.Ended() {
		t.Error("it has ended before it was killed")
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, p)
	code, signal, known := p.Exit()
	if code != -1 || signal != syscall.SIGKILL || !known {
		t.Errorf("it ended with %d, %v, %t, want SIGKILL", code, signal, known)
	}
	if err := p.Identity().Check(); !errors.Is(err, qemu.ErrGone) {
		t.Errorf("it is still there: %v", err)
	}
	if err := p.Kill(); !errors.Is(err, qemu.ErrGone) {
		t.Errorf("it could be killed twice: %v", err)
	}
	if _, err := qemu.Open(p.Identity()); !errors.Is(err, qemu.ErrGone) {
		t.Errorf("it could be opened: %v", err)
	}
	path := fmt.Sprintf("/proc/%d/stat", p.Identity().PID)
	if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), "(sleep) Z") {
		t.Error("it is a zombie")
	}
}

func TestWaitingHonoursTheContext(t *testing.T) {
	p := sleeper(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("no patience")
	cancel(why)
	if err := p.Wait(ctx); !errors.Is(err, why) {
		t.Errorf("waiting ended with %v, want the context's cause", err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if err := p.Wait(ctx); err != nil {
		t.Errorf("of a process that has ended: %v", err)
	}
}

// TestAProcessHasNothingOfItsParent looks at what a process has from inside the
// kernel: its session, folder, files and environment.
func TestAProcessHasNothingOfItsParent(t *testing.T) {
	// A file that the test inherited would have no close-on-exec flag.
	inherited, err := unix.Dup(1)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(inherited)
	dir := filepath.Join(t.TempDir(), "private")
	log := filepath.Join(t.TempDir(), "log")
	p := processStart(t, qemu.Spec{Path: sleepPath(t), Args: []string{"1000"}, Dir: dir, Log: log})
	proc := fmt.Sprintf("/proc/%d/", p.Identity().PID)

	if sid, err := unix.Getsid(p.Identity().PID); err != nil || sid != p.Identity().PID {
		t.Errorf("its session is %d (%v), want its own", sid, err)
	}
	if cwd, err := os.Readlink(proc + "cwd"); cwd != "/" {
		t.Errorf("it runs in %s (%v), want /", cwd, err)
	}
	want := map[string]string{"0": os.DevNull, "1": log, "2": log}
	eventually(t, "it has only these files", func() bool { // and its libraries, at first
		return maps.Equal(want, openFiles(t, proc+"fd/"))
	})
	eventually(t, "its environment is only PATH", func() bool { // empty at first
		env, err := os.ReadFile(proc + "environ")
		return err == nil && strings.HasPrefix(string(env), "PATH=") &&
			strings.Count(string(env), "\x00") == 1
	})
	if at, err := os.Stat(dir); err != nil || at.Mode().Perm() != 0o700 {
		t.Errorf("its folder has the mode %v (%v), want 0700", at.Mode(), err)
	}
}

func openFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	open := map[string]string{}
	for _, entry := range entries {
		if file, err := os.Readlink(dir + entry.Name()); err == nil {
			open[entry.Name()] = file
		}
	}
	return open
}

func TestWhatCannotBeStarted(t *testing.T) {
	dir := t.TempDir()
	file, open := filepath.Join(dir, "file"), filepath.Join(dir, "open")
	link := filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Mkdir(open, 0o700),
		os.Chmod(open, 0o755), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	sleep := sleepPath(t)
	tests := []struct {
		name string
		spec qemu.Spec
		want error
		says string
	}{
		{"a program that does not exist", qemu.Spec{Path: "/nonexistent/qemu"},
			fs.ErrNotExist, "/nonexistent/qemu"},
		{"a file that may not be executed", qemu.Spec{Path: file}, fs.ErrPermission, file},
		{"a program without its folder", qemu.Spec{Path: "sleep"}, nil, "absolute path"},
		{"no program", qemu.Spec{}, nil, "absolute path"},
		{"an argument that no program can get", qemu.Spec{Path: sleep, Args: []string{"1\x00"}},
			syscall.EINVAL, sleep},
		{"a log in a folder that does not exist",
			qemu.Spec{Path: sleep, Log: "/nonexistent/log"}, fs.ErrNotExist, "/nonexistent/log"},
		{"a log behind a link", qemu.Spec{Path: sleep, Log: link}, syscall.ELOOP, link},
		{"a folder that is a file", qemu.Spec{Path: sleep, Dir: file}, nil, "is no folder"},
		{"a folder that is open to others", qemu.Spec{Path: sleep, Dir: open}, nil, "0700"},
		{"a folder in one that does not exist",
			qemu.Spec{Path: sleep, Dir: "/nonexistent/dir"}, fs.ErrNotExist, "/nonexistent"},
	}
	before := files(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := qemu.Start(tt.spec)
			if err == nil {
				end(t, p)
				t.Fatal("it was started")
			}
			if tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%q does not say %q", err, tt.says)
			}
		})
	}
	if after := files(t); after != before {
		t.Errorf("%d files are open, want %d", after, before)
	}
}

func TestNothingLeaks(t *testing.T) {
	warm := sleeper(t) // the first process opens what the runtime keeps
	end(t, adopt(t, warm.Identity()))
	awaitEnd(t, warm)
	before := files(t)
	for range 20 {
		child, err := qemu.Start(qemu.Spec{Path: sleepPath(t), Args: []string{"1000"}})
		if err != nil {
			t.Fatal(err)
		}
		kept, err := qemu.Open(child.Identity())
		if err != nil {
			t.Fatal(err)
		}
		left, err := qemu.Open(child.Identity())
		if err != nil {
			t.Fatal(err)
		}
		if err := left.Close(); err != nil { // while the process lives
			t.Error(err)
		}
		if err := left.Close(); err != nil {
			t.Errorf("closing it again: %v", err)
		}
		end(t, kept)
		end(t, child)
		if left.Ended() {
			t.Error("a process that was let go was still watched")
		}
		if err := left.Kill(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("a process that was let go could be killed: %v", err)
		}
	}
	// One more was open: that of the first process, which its clean-up closes.
	if after := files(t); after != before {
		t.Errorf("%d files are open, want %d", after, before)
	}
}

func TestPinning(t *testing.T) {
	p := sleeper(t)
	pid := p.Identity().PID
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &all); err != nil {
		t.Fatal(err)
	}
	last := 0
	for cpu := range 1024 {
		if all.IsSet(cpu) {
			last = cpu
		}
	}
	if err := p.Pin(pid, []int{last}); err != nil {
		t.Fatal(err)
	}
	var got unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &got); err != nil || got.Count() != 1 || !got.IsSet(last) {
		t.Errorf("it runs on %d CPUs (%v), want only %d", got.Count(), err, last)
	}
	for _, wrong := range []struct {
		name string
		tid  int
		cpus []int
	}{
		{"no thread", 0, []int{0}}, {"a thread of another process", os.Getpid(), []int{0}},
		{"no CPU", pid, nil}, {"a negative CPU", pid, []int{-1}},
		{"a CPU beyond any mask", pid, []int{1 << 20}},
		{"a CPU that is not there", pid, []int{1023}},
	} {
		t.Run(wrong.name, func(t *testing.T) {
			if err := p.Pin(wrong.tid, wrong.cpus); err == nil {
				t.Error("it was pinned")
			}
		})
	}
	end(t, p)
	if err := p.Pin(pid, []int{last}); err == nil {
		t.Error("a process that has ended was pinned")
	}
}

func ExampleStart() {
	p, err := qemu.Start(qemu.Spec{Path: "/bin/sleep", Args: []string{"1000"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	_ = p.Signal(syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(context.Background(), testutil.Limit(testutil.DefaultLimit))
	defer cancel()
	_ = p.Wait(ctx)
	_, signal, _ := p.Exit()
	fmt.Println(signal)
	// Output: terminated
}
