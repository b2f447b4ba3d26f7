package sweep

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestTheQueueKeepsTheOrder: whichever is first, samples are passed on in the order of
// their worlds, and in the end also those behind one that never came.
func TestTheQueueKeepsTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "worlds")
		lost := rapid.IntRange(0, n).Draw(t, "the one that never comes") // n is none
		var come, want, got []int
		for i := range n {
			if i != lost {
				come, want = append(come, i), append(want, i)
			}
		}
		q := queue{tell: func(s *Sample) error { got = append(got, s.Sample); return nil }}
		for _, i := range rapid.Permutation(come).Draw(t, "order") {
			if err := q.add(i, &Sample{Sample: i}); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want[:min(lost, len(want))], got); diff != "" && len(got)+lost > 0 {
			t.Errorf("before the end (-want +got):\n%s", diff)
		}
		if err := q.flush(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("in the end (-want +got):\n%s", diff)
		}
	})
	full := errors.New("the disk is full")
	q := queue{tell: func(*Sample) error { return full }}
	if q.add(1, nil) != nil || !errors.Is(q.flush(), full) || !errors.Is(q.add(0, nil), full) {
		t.Error("an error is lost")
	}
}
