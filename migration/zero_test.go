package migration_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/migration"
)

// A caller who forgets Complete gets the defaults, not deadlines that have passed.
func TestAConfigThatWasNeverCompletedHasTheDefaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var never migration.Config
		never.Compatible = rapid.Bool().Draw(t, "compatible")
		complete := never.Complete()
		s := drawSituation(t, &never)
		got := s.step()
		s.config = &complete
		want := s.step()
		if got != want {
			t.Fatalf("came to %+v, completed to %+v", got, want)
		}
		all := drawAttempts(t)
		if got, want := never.Avoid(all, now), complete.Avoid(all, now); !slices.Equal(got, want) {
			t.Fatalf("avoids %v, completed %v", got, want)
		}
		if got, want := never.Collect(all), complete.Collect(all); !slices.Equal(got, want) {
			t.Fatalf("collects %v, completed %v", got, want)
		}
		for _, a := range all {
			got, want := never.RetryAt(a.ID, all), complete.RetryAt(a.ID, all)
			if !got.Equal(want) {
				t.Fatalf("%s is tried again at %s, completed at %s", a.ID, got, want)
			}
		}
	})
}

func TestAZeroConfigLetsAMigrationRunItsCourse(t *testing.T) {
	var never migration.Config
	s := healthy(&never)
	s.state = migration.State{}
	for range 3 {
		s.state = s.step().State
		s.seen.Now = s.seen.Now.Add(time.Second)
		s.seen.Target = migration.Instance{Exists: true, Ready: true}
	}
	if s.state.Phase != migration.Scheduled {
		t.Errorf("after three looks it is %q because %q, want Scheduled", s.state.Phase,
			s.state.Because)
	}
}

// The zero Gate is not asked: nothing is created, and the reason is told.
func TestWithoutAnAnswerOfTheLimitsNoTargetIsCreated(t *testing.T) {
	for _, config := range []*migration.Config{&byDefault, &compatible} {
		s := healthy(config)
		s.seen.Gate = migration.Observation{}.Gate
		d := s.step()
		if d.Actions.Has(migration.CreateTarget) {
			t.Error("a target is created although the limits were not asked")
		}
		if !slices.Contains(d.Notes(), "limitsNotAsked") {
			t.Errorf("notes are %v, and do not say that the limits were not asked", d.Notes())
		}
		s.seen.Gate = migration.Open
		if d := s.step(); !d.Actions.Has(migration.CreateTarget) {
			t.Error("the gate is open, and no target is created")
		}
	}
}

func TestZeroLimitsLetNothingThrough(t *testing.T) {
	var slots migration.Slots
	if got := slots.Admit(migration.Limits{}, "n1"); got != migration.ClusterFull {
		t.Errorf("Admit = %q, want the cluster limit", got)
	}
}

func TestAConfigThatCannotBeMeantIsRefused(t *testing.T) {
	if err := (migration.Config{}).Validate(); err != nil {
		t.Errorf("the zero Config is refused: %v", err)
	}
	wrong := migration.Config{BackoffBase: -1, Timeouts: migration.Timeouts{Abort: -time.Second}}
	err := wrong.Validate()
	if err == nil || !strings.Contains(err.Error(), "BackoffBase") ||
		!strings.Contains(err.Error(), "Timeouts.Abort is -1s") {
		t.Errorf("Validate = %v, want both fields named", err)
	}
}
