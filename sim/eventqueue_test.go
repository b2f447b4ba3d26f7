package sim_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/sim"
)

// What is taken is what a stable sort by time gives, and nothing before it is due.
func TestWhatIsDueHappensInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type plan struct {
			at time.Duration
			n  int
		}
		var a sim.EventQueue[plan]
		var all, got []plan
		for n, at := range rapid.SliceOfN(rapid.IntRange(0, 5), 0, 30).Draw(t, "times") {
			p := plan{time.Duration(at), n}
			all = append(all, p)
			a.Add(p.at, p)
		}
		slices.SortStableFunc(all, func(a, b plan) int { return int(a.at - b.at) })
		for now := time.Duration(0); a.Len() > 0; now++ {
			for p, due := a.Take(now); due; p, due = a.Take(now) {
				if p.at != now {
					t.Fatalf("at %d something happens that is due at %d", now, p.at)
				}
				got = append(got, p)
			}
			if next, ok := a.Next(); ok && next <= now {
				t.Fatalf("at %d something is left that is due at %d", now, next)
			}
		}
		if !slices.Equal(got, all) {
			t.Fatalf("took %v, want %v", got, all)
		}
	})
}
