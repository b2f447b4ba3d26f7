package migration_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/migration"
)

// TestVectors replays what the real KubeVirt decided: the status machine, and
// the gates and actions. The configuration that restores its decisions is
// Config{Compatible: true}.
func TestVectors(t *testing.T) {
	testutil.Replay(t, "updatestatus*.jsonl", func(in vectorIn, out vectorOut) testutil.Outcome {
		return replay(in, out, func(w *recorded) vectorOut {
			d := w.config.Judge(&w.spec, &w.state, &w.seen)
			return w.out(d)
		})
	})
	testutil.Replay(t, "sync*.jsonl", func(in vectorIn, out vectorOut) testutil.Outcome {
		return replay(in, out, func(w *recorded) vectorOut {
			if in.Fn == "execute" {
				return w.execute()
			}
			return w.out(w.config.Act(&w.spec, &w.state, &w.seen))
		})
	})
}

func replay(in vectorIn, want vectorOut, decide func(*recorded) vectorOut) testutil.Outcome {
	w, skip := in.read()
	if skip != "" {
		return testutil.Skip(skip)
	}
	return testutil.Diff(diff(want, decide(w)))
}

// diff compares two decisions in their normal form.
func diff(want, got vectorOut) string {
	var loose []migration.Priority
	for _, r := range want.Requeue {
		if r.Arbitrary {
			loose = append(loose, migration.Priority(r.Priority))
		}
	}
	want.nameHandOver()
	return cmp.Diff(want.normal(loose), got.normal(loose))
}

// nameHandOver names a recorded hand-over by its event. The recording derives
// actions from what a write contains, and the write that hands a VM over whose
// state still tells of an earlier, ended migration contains that one's outcome,
// too: it was taken for a report of failure, or for nothing.
func (o *vectorOut) nameHandOver() {
	if slices.Contains(o.Events, event("handedOff")) {
		o.Actions = []string{migration.HandOff.String()}
	}
}

// vectorOut is what was decided, as vectors/README.md documents it.
type vectorOut struct {
	Phase            string
	Conditions       *[]string
	FinalizerRemoved bool
	Events           []string
	Requeue          []requeue
	Actions          []string
	Refused          string
}

type requeue struct {
	After       int
	Priority    int
	RateLimited bool
	Name        string
	Arbitrary   bool `json:"arbitraryAmongEqualPriority"`
}

// normal sorts what has no order and drops what is not to be compared.
func (o vectorOut) normal(loose []migration.Priority) vectorOut {
	var kept []requeue
	for _, r := range o.Requeue {
		if r.RateLimited {
			continue
		}
		if r.Name != "" && slices.Contains(loose, migration.Priority(r.Priority)) {
			r.Name = ""
		}
		r.Arbitrary = false
		kept = append(kept, r)
	}
	slices.SortFunc(kept, func(a, b requeue) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
	o.Requeue = kept
	o.Actions = slices.Sorted(slices.Values(o.Actions))
	return o
}

// recorded is a vector in godwit's terms.
type recorded struct {
	in       vectorIn
	config   migration.Config
	limits   migration.Limits
	spec     migration.Spec
	state    migration.State
	seen     migration.Observation
	attempts []migration.Attempt
	pending  []migration.Spec
}

// execute is KubeVirt's whole look: act, judge, then collect and wake.
// Source: KubeVirt v1.9.0 migration.go:369 (execute).
func (w *recorded) execute() vectorOut {
	if w.in.VMI == nil {
		if w.in.Migration.Deleted {
			return vectorOut{}
		}
		return vectorOut{Actions: []string{"forget:m0"}}
	}
	d := w.config.Step(&w.spec, &w.state, &w.seen)
	out := w.out(d)
	out.Refused = "" // in a whole look the recording shows it as an error retry
	if !w.state.Phase.Final() || d.Refused || d.Stuck || w.writesTwice(out) {
		return out
	}
	for _, c := range w.config.Collect(w.attempts) {
		out.Actions = append(out.Actions, "forget:"+string(c.ID))
	}
	// Those that a freed slot wakes: the first in line.
	// Source: KubeVirt v1.9.0 migration.go:452 (reEnqueueHighestPriorityPendingMigrations).
	line := slices.SortedFunc(slices.Values(w.pending), migration.ByPrecedence)
	for _, s := range line[:min(w.limits.PerCluster, len(line))] {
		out.Requeue = append(out.Requeue, requeue{Name: string(s.ID), Priority: int(s.Priority)})
	}
	return out
}

// writesTwice reports whether KubeVirt writes status and finalizer of the same
// object in one look: the second write conflicts with the first, and the look
// ends before anything is collected or woken.
// Source: KubeVirt v1.9.0 migration.go:653.
func (w *recorded) writesTwice(out vectorOut) bool {
	copied := w.seen.Ownership == migration.ClaimedBySelf // the VM's state, into the status
	return out.FinalizerRemoved && (out.Conditions != nil || copied)
}

// out puts a decision into the recording's terms.
func (w *recorded) out(d migration.Decision) vectorOut {
	var o vectorOut
	if d.State.Phase != w.state.Phase {
		o.Phase = d.State.Phase.String()
	}
	if d.State.Conditions != w.state.Conditions {
		list := w.in.conditionsAfter(d.State.Conditions)
		o.Conditions = &list
	}
	o.FinalizerRemoved = d.State.Released && (w.in.Migration.Finalizer == nil ||
		*w.in.Migration.Finalizer)
	for _, n := range d.Notes() {
		o.Events = append(o.Events, event(n))
	}
	for _, wake := range d.Requeues() {
		o.Requeue = append(o.Requeue, requeue{
			After: int(wake.After / time.Second), Priority: int(wake.Priority)})
	}
	for a := range d.Actions.All() {
		if a != migration.TellTarget {
			o.Actions = append(o.Actions, a.String())
		}
	}
	if d.Refused {
		o.Refused = "anotherMigration"
	}
	return o
}

func event(n migration.Note) string {
	kind, on := "Normal", ""
	if n.Warning() {
		kind = "Warning"
	}
	if n.OnVM() {
		on = " @vmi"
	}
	return fmt.Sprintf("%s %s %s%s", kind, n.Reason(), n, on)
}

// slots counts what the other migrations hold.
func (in *vectorIn) slots(home hypervisor.HostName) *migration.Slots {
	var slots migration.Slots
	for _, o := range in.Others {
		p, _ := parsePhase(o.Phase)
		if o.Mode == "source" && o.Phase == "Scheduling" {
			p = migration.Pending // a cross-cluster source holds no slot that early
		}
		exists := !o.VMIMissing
		if o.SameVMI {
			exists = in.VMI != nil
		}
		if !migration.HoldsSlot(p, o.Target, exists) {
			continue
		}
		slot := migration.Slot{}
		if exists {
			slot.Source = hypervisor.HostName(or(o.Node, "n1"))
			slot.Recorded = hypervisor.HostName(or(o.SourceNode, string(slot.Source)))
			if o.SameVMI {
				slot = migration.Slot{Source: home, Recorded: home}
			}
		}
		slots.Take(slot)
	}
	return &slots
}

func or(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

func parsePhase(word string) (migration.Phase, bool) {
	if word == "WaitingForSync" || word == "Synchronizing" {
		return migration.Pending, true
	}
	var p migration.Phase
	return p, p.UnmarshalText([]byte(word)) == nil
}
