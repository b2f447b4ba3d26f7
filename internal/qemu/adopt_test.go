//go:build linux

package qemu_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/internal/qemu"
)

// TestAProcessOutlivesItsParent kills, as the kernel would, the parent of a
// process in its sleep; the process goes on, is found by its arguments and by its
// identity, and ends when its new owner wants it to.
func TestAProcessOutlivesItsParent(t *testing.T) {
	self, env := play(t, "parent")
	seconds := fmt.Sprintf("1000.%09d", os.Getpid())
	parent := exec.Command(self, sleepPath(t), seconds)
	parent.Env, parent.Stderr = env, os.Stderr
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	kill := func() {
		_ = parent.Process.Kill()
		_ = parent.Wait()
	}
	t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var id qemu.Identity
	if err := json.Unmarshal(line, &id); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p, err := qemu.Open(id); err == nil {
			end(t, p)
		}
	})
	kill()

	if err := id.Check(); err != nil {
		t.Fatalf("it did not outlive its parent: %v", err)
	}
	mine := func(argv []string) bool { return slices.Contains(argv, seconds) }
	var found []qemu.Found
	eventually(t, "it is found", func() bool {
		if found, err = qemu.Find(mine); err != nil {
			t.Fatal(err)
		}
		return len(found) > 0
	})
	want := []qemu.Found{{Identity: id, Args: []string{sleepPath(t), seconds}}}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	p := adopt(t, found[0].Identity)
	if p.Ended() {
		t.Error("it ended when it was adopted")
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, p)
	if code, signal, known := p.Exit(); known {
		t.Errorf("it cannot be known that it ended with %d, %v", code, signal)
	}
	if err := id.Check(); !errors.Is(err, qemu.ErrGone) {
		t.Errorf("after its end: %v", err)
	}
	if found, err = qemu.Find(mine); err != nil || len(found) > 0 {
		t.Errorf("after its end it is found: %v, %v", found, err)
	}
}

func TestWhoIsNotTheProcessThatWasMeant(t *testing.T) {
	p := sleeper(t)
	right := p.Identity()
	tests := []struct {
		name string
		id   qemu.Identity
		gone bool
	}{
		{"its number was given to another process",
			qemu.Identity{PID: right.PID, Start: right.Start + 1, Boot: right.Boot}, true},
		{"it was there before the machine was restarted",
			qemu.Identity{PID: right.PID, Start: right.Start, Boot: "another"}, true},
		{"no process has its number", qemu.Identity{PID: 1 << 30, Start: 1, Boot: right.Boot}, true},
		{"its number is no number", qemu.Identity{PID: -1, Start: 1, Boot: right.Boot}, false},
		{"it has no number", qemu.Identity{Start: 1, Boot: right.Boot}, false},
		{"it is not known when it was", qemu.Identity{PID: right.PID, Start: right.Start}, false},
	}
	before := files(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			other, err := qemu.Open(tt.id)
			if err == nil {
				other.Close()
				t.Fatal("it was opened")
			}
			if errors.Is(err, qemu.ErrGone) != tt.gone {
				t.Errorf("%v: surely gone is %t, want %t", err, !tt.gone, tt.gone)
			}
		})
	}
	if after := files(t); after != before {
		t.Errorf("%d files are open, want %d", after, before)
	}
	if err := right.Check(); err != nil {
		t.Errorf("the right one: %v", err)
	}
}

// TestAZombieHasEnded makes a zombie: a child that this test does not wait for.
func TestAZombieHasEnded(t *testing.T) {
	self, env := play(t, "idler")
	child := exec.Command(self, "a zombie soon")
	child.Env = env
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	})
	mine := func(argv []string) bool { return slices.Contains(argv, "a zombie soon") }
	var found []qemu.Found
	eventually(t, "it is found", func() bool { // it has no arguments at first
		var err error
		if found, err = qemu.Find(mine); err != nil {
			t.Fatal(err)
		}
		return len(found) == 1
	})
	p := adopt(t, found[0].Identity)
	if err := child.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, p)
	if err := p.Identity().Check(); !errors.Is(err, qemu.ErrGone) {
		t.Errorf("it is a zombie, but: %v", err)
	}
	if err := p.Kill(); !errors.Is(err, qemu.ErrGone) {
		t.Errorf("a zombie could be killed: %v", err)
	}
	if _, err := qemu.Open(p.Identity()); !errors.Is(err, qemu.ErrGone) {
		t.Errorf("a zombie could be opened: %v", err)
	}
	if found, err := qemu.Find(mine); err != nil || len(found) > 0 {
		t.Errorf("a zombie is found: %v, %v", found, err)
	}
}

func TestProcessesAreFoundWhateverTheirArguments(t *testing.T) {
	self, env := play(t, "idler")
	for name, args := range map[string][]string{
		"there are none":                nil,
		"one is empty":                  {"", "x", ""},
		"they look like those of /proc": {") S 1 1", "\n", "a\tb", "-x=,'\"$;&"},
		"they are no text":              {"\xff\xfe\x80"},
		"they are many":                 slices.Repeat([]string{"many"}, 10_000),
	} {
		t.Run(name, func(t *testing.T) {
			p := processStart(t, qemu.Spec{Path: self, Args: args, Env: env})
			var got []string
			eventually(t, "it is found", func() bool {
				found, err := qemu.Find(func(argv []string) bool { return argv[0] == self })
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range found {
					if f.Identity == p.Identity() {
						got = f.Args
					}
				}
				return got != nil
			})
			if diff := cmp.Diff(append([]string{self}, args...), got); diff != "" {
				t.Errorf("(-want +got):\n%.1000s", diff)
			}
		})
	}
}

func TestTooManyArgumentsAreCutBetweenTwo(t *testing.T) {
	self, env := play(t, "idler")
	long := strings.Repeat("x", 100_000) // the kernel allows 128 KiB for one
	p := processStart(t, qemu.Spec{Path: self, Args: slices.Repeat([]string{long}, 15), Env: env})
	var args []string
	eventually(t, "it is found", func() bool {
		found, err := qemu.Find(func(argv []string) bool { return argv[0] == self })
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if f.Identity == p.Identity() {
				args = f.Args
			}
		}
		return args != nil
	})
	if len(args) != 1+10 || args[10] != long {
		t.Errorf("%d arguments are seen, want 11 whole ones", len(args))
	}
}

func TestAnIdentityIsStoredAsText(t *testing.T) {
	want := qemu.Identity{PID: 1, Start: 1<<64 - 1, Boot: "b"}
	text, err := json.Marshal(want)
	if err != nil || string(text) != `{"pid":1,"start":18446744073709551615,"boot":"b"}` {
		t.Fatalf("%s, %v", text, err)
	}
	var got qemu.Identity
	if err := json.Unmarshal(text, &got); err != nil || got != want {
		t.Errorf("read back: %+v, %v", got, err)
	}
}
