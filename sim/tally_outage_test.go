package sim

import (
	"testing"
	"time"

	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// An outage that begins during a transfer is the migration's, whatever ends it.
func TestAnOutageIsCountedWhateverEndsIt(t *testing.T) {
	for _, end := range []migration.Phase{migration.Succeeded, migration.Failed} {
		tally := newStats()
		v := &store.VM{Host: "n1"}
		v.VM.ID = "v"
		tally.PutVM(v, 0)
		tally.Did("v", guestRuns, 0)
		m := &store.Migration{Version: 1, Source: store.SourceReport{Began: true}}
		m.Spec.ID, m.Spec.VM, m.State.Phase = "m", "v", migration.Running
		tally.Put(m, time.Second)
		tally.Did("v", guestStands, 2*time.Second)
		if got := tally.Downtimes(5 * time.Second); len(got) != 1 && end == migration.Failed {
			t.Errorf("while it stands: %v", got)
		}
		after := *m
		after.Version, after.State.Phase = 2, end
		tally.Put(&after, 5*time.Second)
		tally.Did("v", guestBoots, 6*time.Second)
		tally.Did("v", guestRuns, 9*time.Second)
		if got := tally.Downtimes(time.Hour); len(got) != 1 || got[0] != 7*time.Second {
			t.Errorf("%v: %v", end, got)
		}
		tally.Gone(&after, time.Minute)
		if got := tally.Downtimes(time.Hour); len(got) != 1 || got[0] != 7*time.Second {
			t.Errorf("%v, and its record is gone: %v", end, got)
		}
		want := outageStats{Count: 1, Total: 7 * time.Second, Longest: 7 * time.Second}
		if got := tally.Outages(time.Hour); got != want || len(tally.Down()) > 0 {
			t.Errorf("%v: %+v, down %v", end, got, tally.Down())
		}
	}
}
