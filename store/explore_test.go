package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/store"
)

// A schedule is an order in which the operations of two processes get to the store: they
// take turns, and each turn ends after so many operations. One operation may go wrong.
type schedule struct {
	turns []int // how many operations each lasts
	fault int   // the number of the operation that goes wrong; -1 is none
	fate  fate
}

// length is how many operations a schedule has: enough for one of them to be silent for
// the other, to be followed, and to come back.
const length = 28

// play lets two processes, of which the first leads, run on a schedule. Every look takes
// each as far as one heartbeat by its own clock, whatever the other does.
func play(s schedule, identities [2]string) *world {
	w := newWorld()
	w.election = store.Election{HeartbeatInterval: time.Second, LeaseDuration: 2 * time.Second}
	all := [2]*process{{world: w, identity: identities[0]}, {world: w, identity: identities[1]}}
	for _, p := range all {
		p.start()
		defer p.stop()
		p.look()
	}
	n := 0
	for i, turn := range s.turns {
		for range turn {
			f := answered
			if n == s.fault {
				f = s.fate
			}
			n++
			p := all[i%2]
			if p.idle {
				p.skew += time.Second
			}
			p.step(f)
		}
	}
	for _, arrive := range w.late {
		arrive()
	}
	for _, p := range all {
		p.look()
	}
	return w
}

// Every order in which two processes get their operations through, up to a number of
// turns, alone and with each operation lost or late: the leader may stop anywhere, the
// other take over meanwhile, and stop, too. The long tier plays all of them, and more turns;
// the default tier plays a part of them, evenly chosen.
func TestTwoLeadersNeverWriteInAnyOrder(t *testing.T) {
	testutil.Unraced(t)
	plain := testutil.Rounds(t, 4, 5)
	long, faulty := testutil.InLongTier(), plain-1
	for _, identities := range [][2]string{{"a", "b"}, {"a", "a"}} {
		t.Run(fmt.Sprint(identities), func(t *testing.T) {
			var played, barred, followed int
			try := func(s schedule) {
				w := play(s, identities)
				if w.broken != nil {
					t.Fatalf("%+v: %v", s, w.broken)
				}
				played++
				barred += w.barred
				if w.term > 1 {
					followed++
				}
			}
			each(nil, length, plain, func(turns []int) {
				if long || (turns[0]+turns[1]+turns[2])%5 == 0 {
					try(schedule{turns: turns, fault: -1})
				}
			})
			each(nil, length, faulty, func(turns []int) {
				for n := range length {
					if fates := [2]fate{lost, late}; long {
						try(schedule{turns, n, lost})
						try(schedule{turns, n, late})
					} else if (n+turns[0])%7 == 0 {
						try(schedule{turns, n, fates[turns[1]%2]})
					}
				}
			})
			t.Logf("%d schedules; in %d another wrote; %d writes were refused", played,
				followed, barred)
			if followed == 0 || barred == 0 {
				t.Error("no order leads to what this test is about")
			}
		})
	}
}

// each calls f with every way to divide operations among turns.
func each(turns []int, operations, left int, f func([]int)) {
	if left == 1 {
		f(append(turns[:len(turns):len(turns)], operations))
		return
	}
	for n := range operations + 1 {
		each(append(turns[:len(turns):len(turns)], n), operations-n, left-1, f)
	}
}
