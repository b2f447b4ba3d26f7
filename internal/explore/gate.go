package explore

import (
	"math"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/store"
)

// Gate is what is known of the past of the store, where a scene says "marks".
//
// That is what package internal/daemon does in production: each process keeps on its disk the newest
// moment of the store that it has seen, and shows it with every call. [store.History.Judge] decides.
// The first that is refused says so in the store, and from then on all are. What a leader hears before
// it admits an agent is played: every process that lives shows its mark in that time.
type Gate struct {
	Marks    [1 + maxHosts]store.Mark
	History  store.History
	Unmarked bool // the controller remembers nothing of the store
}

// cluster is the id of the only one.
const cluster = "c"

// objects returns why a process refuses the store; nil is that it does not.
func (w *World) objects(p int) *store.StoreError {
	if !w.Scene.Marks {
		return nil
	}
	return w.History.Judge(w.Marks[p], "", math.MaxInt64)
}

// refuse answers why a process refuses the store, and lets all others know.
func (w *World) refuse(p int) error {
	why := w.objects(p)
	if why == nil {
		return nil
	}
	if w.History.Doubt == nil {
		w.History.Doubt = &store.Doubt{By: string(w.hostOf(p)), Why: why.Error()}
	}
	return why
}

// saw takes in that a process has seen a version of a record.
func (w *World) saw(p int, v store.Version) {
	if m := &w.Marks[p]; w.Scene.Marks {
		m.Cluster, m.Revision = cluster, max(m.Revision, store.Revision(v))
	}
}

// doubted ends all processes once one refuses the store: they wait for an operator.
func (w *World) doubted() {
	if w.History.Doubt == nil {
		return
	}
	for p := range w.lines {
		if w.Procs[p].Brain != nil {
			w.kill(p)
		}
		w.Procs[p].Gone = true
	}
}

// newer reports whether a process has seen what the store has lost, or will have lost when it is set
// back.
func (w *World) newer(p int) bool {
	lost := store.Jump{After: w.saved, Before: math.MaxInt64}
	if w.Back && w.Scene.Marks {
		lost = w.History.Jumps[0]
	}
	return w.Scene.Marks && lost.After < w.Marks[p].Revision && w.Marks[p].Revision < lost.Before
}

// revision is the last one that the store has given.
func (w *World) revision() store.Revision {
	c, _ := w.Store.Changes(w.ctx, store.Everything, 0) // memory does not fail
	return c.Next
}

// restored takes in that the store is a backup now. Everything was stopped for that, and is started in
// any order.
func (w *World) restored(lost store.Jump) {
	w.History.Jumps = []store.Jump{lost}
	for p := range w.Procs[:len(w.lines)] {
		w.kill(p)
	}
	if w.Scene.Forgotten {
		w.Marks[0], w.Unmarked = store.Mark{}, true
	}
}

// live reports whether a process runs, and shows what it has seen.
func (w *World) live(p int) bool { return w.Procs[p].Brain != nil && !w.Procs[p].Hung }

// hearing is what a leader has heard after a Grace.
func (w *World) hearing(c *controller.FailoverConfig) controller.HeartbeatObservation {
	h := controller.HeartbeatObservation{Lasted: c.Grace}
	for p := 1; p < len(w.lines); p++ {
		rec := w.record(uint8(p))
		off := rec.Fenced && rec.Refuted() == ""
		if !w.second(p) && !w.live(p) && !off {
			h.Unheard = append(h.Unheard, w.hostOf(p))
		}
	}
	return h
}

// objector returns a process that lives and refuses the store; -1 is none.
func (w *World) objector() int {
	for p := range w.lines {
		if w.live(p) && w.objects(p) != nil {
			return p
		}
	}
	return -1
}

// mayAdmit reports whether a leader has heard enough to admit the agent of a host, or to refuse the
// store.
func (w *World) mayAdmit(p int) bool {
	if !w.Scene.Marks || p == 0 || w.second(p) || !w.live(0) || w.History.Doubt != nil ||
		!w.record(uint8(p)).Unadmitted() {
		return false
	}
	c := controller.FailoverConfig{Unmarked: w.Unmarked}.Complete()
	h := w.hearing(&c)
	return c.Doubts(&h) == "" || w.objector() >= 0
}

// admit lets a leader admit the agent of a host, unless one of those that it hears refuses the store.
func (w *World) admit(p int) {
	if q := w.objector(); q >= 0 {
		_ = w.refuse(q) // all know of it now
		return
	}
	w.Unmarked = false
	w.change(p, func(h *store.Host) { h.Admitted = h.Session })
	w.saw(0, w.record(uint8(p)).Version)
}

// admission returns the step that admits an agent; it is false when none waits.
func (w *World) admission() (Step, bool) {
	for p := 1; p < len(w.lines) && w.Scene.Marks; p++ {
		if w.mayAdmit(p) {
			return Step{Op: Admit, A: uint8(p)}, true
		}
	}
	return Step{}, false
}
