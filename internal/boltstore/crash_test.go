package boltstore_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/store"
)

// children are what the test binary does as a child of a test.
var children = map[string]func(path string) error{
	"write": writeForever,
	"hold":  holdOpen,
	"fill":  fillUp,
}

// child starts one; the test ends it at the latest.
func child(t testing.TB, what, path string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childEnv+"="+what, childEnv+"_FILE="+path)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c, bufio.NewScanner(out)
}

// writers is how many VMs a writing child counts in.
const writers = 3

// writeForever writes to all VMs at once, says what it will write, and what it wrote. Each
// write is on condition of the one before, and every seventh deletes first.
func writeForever(path string) error {
	s, err := boltstore.Open(path)
	if err != nil {
		return err
	}
	var out sync.Mutex
	say := func(format string, a ...any) {
		out.Lock()
		defer out.Unlock()
		fmt.Printf(format+"\n", a...)
	}
	failed := make(chan error)
	for w := range writers {
		go func() { failed <- writeOne(s, fmt.Sprint("w", w), say) }()
	}
	return <-failed
}

func writeOne(s *boltstore.Store, name string, say func(string, ...any)) error {
	key := vmOn(name, "").Key()
	for {
		old, err := s.Get(ctx, key)
		if err != nil {
			return err
		}
		next := vmOn(name, "n1")
		next.NotMigratableReason = strings.Repeat(name, 700) // two or three pages
		if old != nil {
			next.Boots, next.Version = old.(*store.VM).Boots+1, old.RecordVersion()
		}
		say("try %s %d", name, next.Boots)
		stored, err := s.Put(ctx, next)
		if err != nil {
			return err
		}
		say("done %s %d %d", name, next.Boots, stored.RecordVersion())
	}
}

// TestAKilledWriterLosesNothing kills a process that writes, at whatever moment.
func TestAKilledWriterLosesNothing(t *testing.T) {
	rounds := testutil.Rounds(t, 5, 100)
	path := newPath(t)
	acked, tried := map[string]int{}, map[string]int{}
	version := map[string]store.Version{}
	for round := range rounds {
		c, lines := child(t, "write", path)
		for wait := rand.IntN(60); lines.Scan(); wait-- {
			if wait == 0 {
				time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
				must(t, c.Process.Kill())
			}
			var name string
			var n int
			var v store.Version
			if _, err := fmt.Sscanf(lines.Text(), "try %s %d", &name, &n); err == nil {
				tried[name] = n
			} else if _, err := fmt.Sscanf(lines.Text(), "done %s %d %d", &name, &n,
				&v); err == nil {
				acked[name], version[name] = n, v
			}
		}
		_ = c.Wait()
		check := open(t, path)
		for _, r := range everything(t, check) {
			vm := r.(*store.VM)
			name := string(vm.VM.ID)
			if vm.Boots < acked[name] || vm.Boots > tried[name] || vm.RecordVersion() < version[name] ||
				vm.NotMigratableReason != strings.Repeat(name, 700) {
				t.Errorf("round %d: %s has %d at version %d; acknowledged %d at %d, tried %d",
					round, name, vm.Boots, vm.RecordVersion(), acked[name], version[name], tried[name])
			}
		}
		if got := len(everything(t, check)); got < len(acked) {
			t.Errorf("round %d: %d VMs, and %d were acknowledged", round, got, len(acked))
		}
		must(t, check.Close())
	}
	if len(acked) < writers {
		t.Error("not every writer came to write: the test tests nothing")
	}
	t.Logf("acknowledged: %v, tried: %v", acked, tried)
}

// holdOpen keeps the file open until it is killed.
func holdOpen(path string) error {
	s, err := boltstore.Open(path)
	if err != nil {
		return err
	}
	fmt.Println("open")
	time.Sleep(time.Hour)
	return s.Close()
}

func TestOneProcessAtATime(t *testing.T) {
	path := newPath(t)
	c, lines := child(t, "hold", path)
	if !lines.Scan() {
		t.Fatal("the child has not opened the file")
	}
	_, err := boltstore.Config{Path: path, LockTimeout: 50 * time.Millisecond}.Open()
	wantError(t, err, store.Unavailable, fmt.Sprintf("process %d", c.Process.Pid), path)
	must(t, c.Process.Kill())
	_ = c.Wait()
	s := open(t, path) // the lock ended with the process
	_, err = boltstore.Config{Path: path, LockTimeout: 50 * time.Millisecond}.Open()
	wantError(t, err, store.Unavailable, fmt.Sprintf("process %d", os.Getpid()))
	put(t, s, vmOn("v", "n1")) // the one that has it is not disturbed
	must(t, s.Close())
	must(t, s.Close())
	_, err = s.Get(ctx, vmOn("v", "").Key())
	wantError(t, err, store.Unavailable, "closed")
	again := open(t, path)
	if diff := cmp.Diff(1, len(everything(t, again))); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}
