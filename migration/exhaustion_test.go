package migration_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/migration"
)

// TestExhaustion looks at every combination of what can matter together and
// holds each decision against all laws. The full product is out of reach, so it
// is taken in four groups; within a group nothing is left out. That suffices,
// because a look consists of parts that read different things:
//
//   - endings: the rules. They read phase, claim, whether the VM lives, cancel and
//     hand-over, target and attachment, the reports that tell of an end, the abort
//     and the deadline: 16.5 million combinations, a quarter of them in compatible
//     mode, which reads neither Began nor PostCopy. Of the ways in which a target
//     may wait, the rules know none: those are in the next group.
//   - gates: what is due before the hand-over. It reads besides why a target may
//     not be created yet, how old it is, and what held the migration up before:
//     21.2 million.
//   - refusals: what was decided about the target. Nothing else reads it.
//   - reports: progress from the hand-over on. It reads besides every single
//     report and what a finished migration still has to apply: 7.1 million.
//
// What only times and lengths decide is drawn in TestLawsHoldForExtremeTimes.
// With -race or -short it takes every 389th combination; the stride is prime, and
// no dial has 389 ways, so that no dial stands still.
func TestExhaustion(t *testing.T) {
	for _, config := range []*migration.Config{&byDefault, &compatible} {
		mode := "default"
		ends := bits("reports", began, started, completed, reportedFailed, postCopy)
		if config.Compatible {
			mode, ends = "compatible", bits("reports", started, completed, reportedFailed)
		}
		for _, g := range groupsOf(ends) {
			t.Run(mode+"/"+g.name, func(t *testing.T) {
				t.Parallel()
				t.Logf("%d combinations", exhaust(t, healthy(config), g.dials))
			})
		}
	}
}

// A group is what is combined in full.
type group struct {
	name  string
	dials []dial
}

func groupsOf(ends dial) []group {
	all := migration.Phases()
	return []group{
		{"endings", []dial{
			deadline, abort, ends,
			bits("attachment", hotplug, attachment, attachmentDown), target(7),
			bits("asked", canceled, handedOff),
			bits("vm", vmExists, vmFinal, vmDeleting, vmStopping),
			claims, phases(all...)}},
		{"gates", []dial{
			bits("vm", vmRunning, utilityVolumes, backup, hotplug, running),
			bits("asked", canceled, handedOff, impossible), instances, gate, backoff, trouble,
			urgency,
			heldUp, bits("attachment", attachment, attached), target(len(targets)), claims,
			phases(migration.Pending, migration.Scheduling, migration.Scheduled)}},
		{"turns", []dial{
			deadline, abort, gate, backoff, bits("queued", queued),
			bits("vm", vmExists, vmRunning, running), bits("asked", canceled, handedOff),
			target(7), claims, phases(all...)}},
		{"refusals", []dial{
			refusal, deadline, abort, bits("reports", began, completed, reportedFailed),
			bits("asked", canceled, handedOff, impossible), bits("vm", vmExists, vmRunning),
			target(7), claims, phases(all...)}},
		{"reports", []dial{
			deadline, abort, bits("vm", cpuChange, memoryChange, moveRequired),
			bits("reports", targetNamed, address, began, started, completed, reportedFailed,
				aborting, postCopy, hasArrived, unresolved),
			dial{"target", 3, func(s *situation, v int) {
				s.seen.Target = targets[[...]int{0, 2, 7}[v]]
			}},
			claims, phases(all...)}},
	}
}

var (
	instances = dial{"instances", 2, func(s *situation, v int) { s.seen.Instances = v + 1 }}
	gate      = dial{"gate: not asked, open", 2, func(s *situation, v int) {
		s.seen.Gate = migration.Gate(v)
	}}
	backoff = dial{"back-off: over, lasts", 2, func(s *situation, v int) {
		s.seen.Backoff = now.Add(time.Duration(2*v-1) * time.Minute)
	}}
	trouble = dial{"trouble", 3, func(s *situation, v int) {
		s.seen.TargetError = migration.TargetError(v)
	}}
	refusal = dial{"refusal", 4, func(s *situation, v int) {
		s.seen.Refusal = migration.Refusal(v)
	}}
	urgency = dial{"priority and age", 3, func(s *situation, v int) {
		s.spec.Priority, s.spec.Created = migration.Lowest, ago(60)
		if v > 0 {
			s.spec.Priority = migration.SystemCritical
		}
		if v > 1 {
			s.spec.Created = ago(1000) // utility volumes have held it for too long
		}
	}}
	heldUp = dial{"held up before", 2, func(s *situation, v int) {
		s.state.Conditions = migration.Conditions{}
		if v > 0 {
			for _, c := range []migration.Condition{migration.RejectedByQuota,
				migration.BlockedByBackup, migration.BlockedByUtilityVolumes} {
				s.state.Conditions = s.state.Conditions.With(c)
			}
		}
	}}
)

// exhaust turns the dials through all their positions, the first one fastest,
// and returns how many decisions it has looked at.
func exhaust(t *testing.T, s situation, dials []dial) int {
	stride := testutil.Rounds(t, 11, 1) // every eleventh situation, or all
	if testutil.Raced || testing.Short() {
		stride = 389
	}
	at := make([]int, len(dials))
	for _, d := range dials {
		d.turn(&s, 0)
	}
	for n := 0; ; n++ {
		checkOne(t, &s, n)
		if !turn(&s, dials, at, stride) {
			return n + 1
		}
	}
}

// same compares two decisions, but not what is behind their last notes and wakes.
func same(a, b *migration.Decision) bool {
	return a.State == b.State && a.Actions == b.Actions && a.Rule == b.Rule &&
		a.Refused == b.Refused && a.Stuck == b.Stuck && slices.Equal(a.Notes(), b.Notes()) &&
		slices.Equal(a.Requeues(), b.Requeues())
}

// turn moves the dials on by some positions, like an odometer; it reports false
// after the last.
func turn(s *situation, dials []dial, at []int, by int) bool {
	for i, d := range dials {
		if by == 0 {
			return true
		}
		by += at[i]
		at[i], by = by%d.n, by/d.n
		d.turn(s, at[i])
	}
	return by == 0
}

// checkOne holds one decision against the laws; every 64th is made twice.
func checkOne(t *testing.T, s *situation, n int) {
	twice := n%64 == 0
	var before situation
	if twice {
		before = *s
	}
	d := s.step()
	if broken := breach(s, &d); broken != "" {
		t.Fatalf("broken: %s\n%s\ncame to %q, rule %q, actions %b, notes %v, wakes %v", broken, s,
			d.State.Phase, d.Rule, d.Actions, d.Notes(), d.Requeues())
	}
	if !twice {
		return
	}
	if again := s.step(); d != again {
		t.Fatalf("a second look at the same differs:\n%s", s)
	}
	used := migration.Decision{State: s.state, Actions: ^d.Actions, Rule: "used", Refused: true,
		Stuck: true}
	for range 2 { // the second time there are notes and wakes, too
		s.config.StepIn(&s.spec, &s.state, &s.seen, &used)
	}
	if !same(&d, &used) {
		t.Fatalf("what was in a decision's memory shows:\n%s\nwant %+v\ngot %+v", s, d, used)
	}
	if before != *s {
		t.Fatalf("Step changed its arguments (-want +got):\n%s", cmp.Diff(before.seen, s.seen))
	}
}
