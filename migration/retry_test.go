package migration_test

import (
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/migration"
)

// Without a rule of one's own there is the back-off; one's own is asked with all that is known, and obeyed.
func TestARetryOfOnesOwnReplacesTheBackoff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := drawAttempts(t)
		self, want := newest(all), anyTime.Draw(t, "when")
		if got := byDefault.RetryAt(self, all); !got.Equal(byDefault.Backoff(self, all)) {
			t.Fatalf("without a rule of one's own: %s", got)
		}
		known := slices.Clone(all)
		own := migration.Config{Retry: func(id migration.ID, seen []migration.Attempt) time.Time {
			if diff := gocmp.Diff(known, seen); diff != "" || id != self {
				t.Fatalf("asked about %q (-want +got):\n%s", id, diff)
			}
			return want
		}}.Complete()
		if got := own.RetryAt(self, all); !got.Equal(want) {
			t.Fatalf("got %s, want %s", got, want)
		}
	})
}

// Whatever instant a rule names, Step has an answer; one who gives up waits, and says why.
func TestWhoGivesUpWaits(t *testing.T) {
	config := migration.Config{}.Complete()
	never := now.AddDate(5000, 0, 0)
	seen := migration.Observation{Now: now, Backoff: never, Running: true, Instances: 1,
		VM: migration.VMStatus{Exists: true, Running: true}, Ownership: migration.Unclaimed}
	state := migration.State{Phase: migration.Pending, Deadline: now.Add(time.Hour)}
	d := config.Step(&migration.Spec{ID: "a"}, &state, &seen)
	if d.Actions.Has(migration.CreateTarget) || !slices.Contains(d.Notes(), "backoff") {
		t.Errorf("before its time: %v, notes %v", d.Actions, d.Notes())
	}
	for _, w := range d.Requeues() {
		if w.After <= 0 {
			t.Errorf("it wants to look again after %s", w.After)
		}
	}
}
