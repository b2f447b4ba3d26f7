package client_test

import (
	"testing"

	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/store"
)

// What was aborted is aborted also when it has ended: "ended" is that all of it was carried out.
func TestAnAbortedPlanSaysSoWhenItHasEnded(t *testing.T) {
	for _, c := range []struct {
		wish  store.PlanWish
		ended bool
		want  string
	}{{store.AbortPlan, true, "aborted"}, {store.AbortPlan, false, "aborted"}, {store.RunPlan, true, "ended"},
		{store.PausePlan, true, "ended"}, {store.PausePlan, false, "paused"}, {store.RunPlan, false, "running"}} {
		p, m := &store.Plan{Name: "a", Created: now, Wish: c.wish}, &store.Maintenance{Name: "a", Created: now, Wish: c.wish}
		if c.ended {
			p.Ended, m.Ended = now, now
		}
		if r := client.OfPlan(p); r.State != c.want || (r.Ended != nil) != c.ended {
			t.Errorf("a plan: %q, ended %v; want %q", r.State, r.Ended, c.want)
		}
		if r := client.OfRun(m, now); r.State != c.want || (r.Ended != nil) != c.ended {
			t.Errorf("a run: %q, ended %v; want %q", r.State, r.Ended, c.want)
		}
	}
}
