package explore_test

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/store"
)

// The tests in this file and in call*_test.go let a controller and the agents of a small world look at the same time.
// Each of them is a coroutine that stands before every call to the store or to its hypervisor.
// Between any two calls of a look others make calls of theirs, modelled time goes on, an
// operator wants something, and things break. Explore plays whole looks, one
// after the other: what goes wrong between the reading and the acting of one look, only these
// tests find.
//
// A world is one controller, two or three hosts and one VM, and everything in it follows from
// its seed. Its hosts can take back what they have handed over, and never hold a target, so
// what agents do for other hosts is not played here.

// number returns what the environment says, or what is usual.
func number(t *testing.T, key string, usual uint64) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(cmp.Or(os.Getenv(key), strconv.FormatUint(usual, 10)), 10, 64)
	if err != nil || n == 0 {
		t.Fatalf("%s=%q: want a number from 1", key, os.Getenv(key))
	}
	return n
}

// Whatever comes between two calls of a look, everything that godwit promises holds.
//
// Each seed is another world. GODWIT_CALLS=6000 plays so many, from GODWIT_SEED or 1 on.
func TestLooksThatInterleaveCallByCall(t *testing.T) {
	usual := 1000
	if testutil.Raced {
		usual = 100
	}
	worlds := number(t, "GODWIT_CALLS", uint64(testutil.Rounds(t, usual/4, usual)))
	first := number(t, "GODWIT_SEED", 1)
	for seed, bad := first, 0; seed-first < worlds && bad < 5; seed++ {
		w := play(t, seed, mistake{})
		if w.broken == nil {
			continue
		}
		bad++
		tail := w.log
		if worlds > 1 {
			tail = tail[max(0, len(tail)-60):]
		}
		t.Errorf("seed %d: %v\nGODWIT_CALLS=1 GODWIT_SEED=%d go test -run %s ./internal/explore "+
			"plays it alone, and tells all of it; it ends so:\n%s", seed, w.broken, seed, t.Name(),
			strings.Join(tail, "\n"))
	}
}

// A post-copy that is torn ends when an operator kills its guest: the VM has come, without its
// memory, and starts anew. Some world has to show it, or nothing is checked.
func TestATornPostCopyEndsWhenItsGuestIsKilled(t *testing.T) {
	for seed := range uint64(1000) {
		if w := play(t, seed, mistake{}); w.stuck {
			lost := func(m *store.Migration) bool { return m.Target.Completed && m.Target.Lost }
			if w.broken != nil || !slices.ContainsFunc(w.Migrations(web), lost) {
				t.Errorf("seed %d: %v\n%s", seed, w.broken, strings.Join(w.log, "\n"))
			}
			return
		}
	}
	t.Error("no guest is torn when 1000 worlds come to rest")
}

func TestAWorldFollowsFromItsSeed(t *testing.T) {
	testutil.Unraced(t)
	for seed := range uint64(20) {
		one, other := play(t, seed, mistake{}), play(t, seed, mistake{})
		if !slices.Equal(one.log, other.log) {
			t.Errorf("seed %d: two worlds of %d and %d lines", seed, len(one.log), len(other.log))
		}
	}
}
