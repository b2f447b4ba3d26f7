package migration_test

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
)

// every is every dial that there is.
var every = []dial{
	phases(migration.Phases()...), claims, target(len(targets)), abort, deadline, instances, gate,
	backoff, trouble, urgency, refusal,
	bits("vm", vmExists, vmFinal, vmDeleting, vmRunning, hotplug, utilityVolumes, backup,
		cpuChange, memoryChange, moveRequired, peerFailure),
	bits("reports", targetNamed, address, began, started, completed, reportedFailed, aborting,
		postCopy, hasArrived),
	bits("asked", canceled, handedOff, running, queued),
	bits("attachment", attachment, attached, attachmentDown),
}

// drawSituation draws any situation at all, however unlikely.
func drawSituation(t *rapid.T, config *migration.Config) situation {
	s := healthy(config)
	for _, d := range every {
		d.turn(&s, rapid.IntRange(0, d.n-1).Draw(t, d.name))
	}
	return s
}

var (
	anyDuration = rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.OneOf(rapid.Int64(),
			rapid.Int64Range(0, int64(48*time.Hour)),
			rapid.SampledFrom([]int64{0, 1, math.MaxInt64, math.MinInt64})).Draw(t, "ns"))
	})
	anyTime = rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.Bool().Draw(t, "unset") {
			return time.Time{}
		}
		return now.Add(anyDuration.Draw(t, "offset"))
	})
	anyOverride = rapid.Custom(func(t *rapid.T) *time.Duration {
		if rapid.Bool().Draw(t, "none") {
			return nil
		}
		return new(anyDuration.Draw(t, "override"))
	})
)

// However large or small its times are, a decision keeps the laws.
func TestLawsHoldForExtremeTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSituation(t, pick(t, &byDefault, &compatible))
		s.spec.Created = anyTime.Draw(t, "created")
		s.spec.Timeouts = migration.Overrides{Unschedulable: anyOverride.Draw(t, "unschedulable"),
			Target:         anyOverride.Draw(t, "target"),
			UtilityVolumes: anyOverride.Draw(t, "utility volumes")}
		s.seen.Target.Created = anyTime.Draw(t, "target created")
		s.seen.Backoff = anyTime.Draw(t, "backoff")
		s.state.Budget = anyDuration.Draw(t, "budget")
		s.state.Deadline, s.state.AbortBy = anyTime.Draw(t, "due"), anyTime.Draw(t, "abort by")
		if s.state.AbortBy.IsZero() {
			s.state.Deadline, s.state.AbortBy = now, now
		}
		s.state.Budget = min(s.state.Budget, 1<<62)
		d := s.step()
		if broken := breach(&s, &d); broken != "" {
			t.Fatalf("broken: %s\n%s\ncame to %q, %+v", broken, &s, d.State.Phase, d.Requeues())
		}
	})
}

func pick[T any](t *rapid.T, some ...T) T { return rapid.SampledFrom(some).Draw(t, "one of") }

// Where nothing that the modes treat differently is involved, they agree: on the
// phase and on what is to be done.
func TestBothModesAgreeWhereNothingDiffers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSituation(t, &byDefault)
		o := &s.seen
		if s.state.Phase == migration.Unset && o.Ownership == migration.ClaimedByOther ||
			s.state.Phase.Final() {
			o.Ownership, s.state.Phase = migration.Unclaimed, migration.Pending
		}
		s.state.Conditions, s.state.Because = migration.Conditions{}, ""
		s.state.Deadline = now.Add(time.Hour)
		if o.VM.UtilityVolumes {
			o.Backoff = time.Time{}
		}
		o.Impossible, o.Report.Unresolved, o.Refusal = false, false, migration.NotRefused
		o.Canceled, o.VM.Backup, o.VM.Hotplug, o.Attachment = false, false, false,
			migration.Instance{}
		o.VM.Exists, o.VM.Final, o.Target.Down, o.Report.Failed = true, false, false, false
		o.Report.Started = o.Report.Started && s.state.Phase >= migration.TargetReady
		o.Report.Began = o.Report.Started
		o.Report.Completed = o.Report.Completed && o.Report.Started
		if o.Target.Pending {
			o.Target.Created, o.Target.Unschedulable = ago(1), false
		}
		if s.state.Phase.TargetCreated() {
			o.Target.Exists = true
		}
		if s.state.Phase.HandedOver() {
			o.Ownership = migration.ClaimedBySelf
		}
		a := s.step()
		s.config = &compatible
		b := s.step()
		// What differs is only that a look that ends is not acted on any more.
		ends := a.State.Phase.Final()
		if a.State.Phase != b.State.Phase || !ends && a.Actions != b.Actions {
			t.Fatalf("default: %q %b %v\ncompatible: %q %b %v\n%s", a.State.Phase, a.Actions,
				a.Notes(), b.State.Phase, b.Actions, b.Notes(), &s)
		}
		if diff := cmp.Diff(b.Notes(), a.Notes()); diff != "" && !ends {
			t.Fatalf("notes (-compatible +default):\n%s", diff)
		}
	})
}

// A state that was stored is the state that is read.
func TestStateSurvivesTheStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSituation(t, &byDefault)
		s.state.Source = hypervisor.HostName(rapid.String().Draw(t, "source"))
		text, err := json.Marshal(s.state)
		if err != nil {
			t.Fatal(err)
		}
		var back migration.State
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		hidden := cmp.AllowUnexported(migration.Conditions{})
		if diff := cmp.Diff(s.state, back, hidden); diff != "" {
			t.Fatalf("state (-want +got):\n%s", diff)
		}
	})
}

func TestPhaseSurvivesTheStore(t *testing.T) {
	for _, p := range migration.Phases() {
		text, err := p.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back migration.Phase
		if err := back.UnmarshalText(text); err != nil || back != p {
			t.Errorf("%q came back as %q, %v", p, back, err)
		}
	}
	if _, err := (migration.Failed + 1).MarshalText(); err == nil {
		t.Error("a number that is no phase was stored")
	}
}

// The phases' predicates follow from their order.
func TestPhasePredicates(t *testing.T) {
	var got []string
	for _, p := range migration.Phases() {
		row := p.String()
		for _, on := range []bool{p.Final(), p.Active(), p.TargetCreated(), p.HandedOver()} {
			row += map[bool]string{true: " x", false: " -"}[on]
		}
		got = append(got, row)
	}
	want := []string{ // final, active, target created, handed over
		" - - - -", "Pending - - - -", "Scheduling - x x -", "Scheduled - x x -",
		"PreparingTarget - x x x", "TargetReady - x x x", "Running - x x x", "Succeeded x - x x",
		"Failed x - x x"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("predicates (-want +got):\n%s", diff)
	}
}

var anyConditions = rapid.Custom(func(t *rapid.T) migration.Conditions {
	var cs migration.Conditions
	for _, c := range migration.AllConditions() {
		switch rapid.IntRange(0, 2).Draw(t, c.String()) {
		case 1:
			cs = cs.With(c)
		case 2:
			cs = cs.WithStale(c)
		}
	}
	return cs
})

// Each operation on conditions does to one what it says, and nothing to others.
func TestConditionsAlgebra(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cs := anyConditions.Draw(t, "conditions")
		c := rapid.SampledFrom(migration.AllConditions()).Draw(t, "condition")
		for _, k := range []struct {
			name       string
			after      migration.Conditions
			has, holds bool
		}{
			{"With", cs.With(c), true, true},
			{"WithStale", cs.WithStale(c), true, false},
			{"Without", cs.Without(c), false, false},
		} {
			if k.after.Has(c) != k.has || k.after.Holds(c) != k.holds {
				t.Fatalf("%s: has %t, holds %t", k.name, k.after.Has(c), k.after.Holds(c))
			}
			for _, other := range migration.AllConditions() {
				if other != c && (k.after.Has(other) != cs.Has(other) ||
					k.after.Holds(other) != cs.Holds(other)) {
					t.Fatalf("%s of %s changed %s", k.name, c, other)
				}
			}
		}
		if !cs.Has(c) && cs.With(c).Without(c) != cs {
			t.Fatal("Without does not undo With")
		}
	})
}

// What is stored are the words of the conditions that hold.
func TestConditionsSurviveTheStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cs := anyConditions.Draw(t, "conditions")
		text, err := json.Marshal(cs)
		if err != nil {
			t.Fatal(err)
		}
		var back migration.Conditions
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(cs.Words(), back.Words()); diff != "" {
			t.Fatalf("words (-want +got):\n%s", diff)
		}
	})
	var cs migration.Conditions
	for _, bad := range []string{`["nonsense"]`, `{}`, `[1]`} {
		if json.Unmarshal([]byte(bad), &cs) == nil {
			t.Errorf("%s was read without an error", bad)
		}
	}
}

// Actions are a set that is listed in the order of their numbers.
func TestActionsAreASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := rapid.Map(rapid.IntRange(0, int(migration.AbortBackup)),
			func(n int) migration.Action { return migration.Action(n) })
		list := rapid.SliceOf(one).Draw(t, "actions")
		var set migration.Actions
		for _, a := range list {
			set = set.With(a)
		}
		slices.Sort(list)
		list = slices.Compact(list)
		if diff := cmp.Diff(slices.Clip(list), slices.Collect(set.All()), nilIsEmpty); diff != "" {
			t.Fatalf("actions (-want +got):\n%s", diff)
		}
		for a := range migration.AbortBackup + 1 {
			if set.Has(a) != slices.Contains(list, a) {
				t.Fatalf("Has(%s) is %t", a, set.Has(a))
			}
		}
		for first := range set.All() { // a caller may stop early
			if first != list[0] {
				t.Fatalf("the first is %s, not %s", first, list[0])
			}
			break
		}
	})
}

var nilIsEmpty = cmp.Transformer("empty", func(as []migration.Action) string {
	text := ""
	for _, a := range as {
		text += a.String() + " "
	}
	return text
})

// A configuration that is complete stays as it is, and what was set is kept.
func TestCompleteKeepsWhatIsSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := migration.Config{BackoffCap: anyDuration.Draw(t, "cap"),
			Keep:     rapid.Int().Draw(t, "keep"),
			Timeouts: migration.Timeouts{Abort: anyDuration.Draw(t, "abort")}}
		full := c.Complete()
		if !reflect.DeepEqual(full.Complete(), full) {
			t.Fatal("Complete is not idempotent")
		}
		if c.Keep != 0 && full.Keep != c.Keep || c.BackoffCap != 0 &&
			full.BackoffCap != c.BackoffCap || c.Timeouts.Abort != 0 &&
			full.Timeouts.Abort != c.Timeouts.Abort {
			t.Fatalf("%+v became %+v", c, full)
		}
	})
}

// Whole seconds are read as such; no number overflows.
func TestParseSeconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-1000, 1000)).Draw(t, "seconds")
		got := migration.ParseSeconds(rapid.SampledFrom([]string{"", "+", "0"}).
			Draw(t, "sign") + strconv.FormatInt(n, 10))
		most := int64(math.MaxInt64 / int64(time.Second))
		if got == nil {
			if n >= 0 {
				t.Fatalf("%d is no override", n)
			}
			return // "+-1" and "0-1" are no numbers
		}
		if want := time.Duration(min(max(n, -most), most)) * time.Second; *got != want {
			t.Fatalf("%d became %s, not %s", n, *got, want)
		}
	})
	for _, bad := range []string{"", "abc", "1.5", "150s", " 1", "1e3", "99999999999999999999"} {
		if d := migration.ParseSeconds(bad); d != nil {
			t.Errorf("%q became %s", bad, *d)
		}
	}
}
