package whatif_test

import (
	"math"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/predict"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/plan"
)

// table is a schedule with batches of these ranges.
func table(ranges ...predict.Range) *whatif.Schedule {
	t := &whatif.Schedule{}
	for i := range ranges {
		t.Batches = append(t.Batches, whatif.Batch{Range: &ranges[i]})
	}
	return t
}

func nights(minutes ...int) (all []plan.Night) {
	begin := time.Date(2026, 6, 13, 22, 0, 0, 0, time.UTC)
	for i, m := range minutes {
		b := begin.AddDate(0, 0, i)
		all = append(all, plan.Night{Begin: b, End: b.Add(time.Duration(m) * time.Minute)})
	}
	return all
}

// Worked by hand: a batch takes 1 h, p10 half an hour, p90 2 h, and 10 min besides. Two need 2 h and
// 20 min, p90 4 h and 20 min: so with 90 % two fit into 4 h 20 min, and not into 4 h 19 min.
func TestBatchesGoIntoNightsByHand(t *testing.T) {
	hour := predict.Range{P10: 1800, P50: 3600, P90: 7200}
	all := table(hour, hour, hour)
	c := all.Calendar(nights(260, 240), 0.9, 10*time.Minute)
	if len(c.Left) > 0 || len(c.Nights) != 2 || len(c.Nights[0].Batches) != 2 || len(c.Nights[1].Batches) != 1 {
		t.Fatalf("%+v", c)
	}
	second := c.Nights[0].Batches[1]
	if second.Batch != 2 || second.Begins.Format("15:04") != "23:10" || second.Ends.Format("15:04") != "00:20" ||
		math.Abs(second.Probability-0.9) > 1e-9 || c.Probability != second.Probability {
		t.Errorf("%+v", second)
	}
	c = all.Calendar(nights(259, 240), 0.9, 10*time.Minute)
	if len(c.Left) != 1 || c.Left[0].Batch != 3 || c.Left[0].Long || c.Left[0].Text != "the last of 2 nights is full" {
		t.Errorf("%+v", c)
	}
	c = all.Calendar(nights(120), 0.9, 10*time.Minute)
	if len(c.Left) != 1 || c.Left[0].Batch != 1 || !c.Left[0].Long {
		t.Errorf("%+v", c)
	}
	if c := (&whatif.Schedule{Batches: []whatif.Batch{{}}}).Calendar(nights(240), 0.9, 0); len(c.Left) != 1 {
		t.Errorf("a batch that is never emptied has a night: %+v", c)
	}
}
