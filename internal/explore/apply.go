package explore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// apply lets a step happen. It reports false when it cannot, or when a fate was not met.
func (w *World) apply(s Step) bool {
	if int(s.A) >= len(w.lines) || !w.enabled(s) || w.cost(s) != 0 && w.Faults == 0 {
		return false
	}
	if w.cost(s) != 0 {
		w.Faults--
		w.hurt = true
	}
	w.Look = LookStep{}
	if w.cost(s) != 0 || s.Op == Postpone {
		w.Since = w.Now
	}
	switch s.Op {
	case Look:
		return w.takeLook(int(s.A), LookStep{fate: WriteResult(s.B), at: int(s.C)})
	case Stale:
		return w.takeLook(int(s.A), LookStep{stale: true})
	case Late:
		return w.takeLook(int(s.A), LookStep{})
	case Repeat:
		w.Procs[s.A].Told = true
		return w.takeLook(int(s.A), LookStep{})
	case Forget:
		w.Procs[s.A].Told, w.Procs[s.A].Hints = false, 0
	case Crash:
		w.kill(int(s.A))
	case Restart:
		w.restart(int(s.A))
	case Time:
		next, _ := w.Network.Next()
		w.advance(next)
	case Postpone:
		w.Waits = true
	case Hang:
		w.Procs[s.A].Hung = true
	case GoOn:
		w.Procs[s.A].Hung = false
		w.heard(int(s.A))
	case Script:
		w.Script++
		w.Waits = false
		w.operate(w.Scene.Script[w.Script-1])
	case Admit:
		w.admit(int(s.A))
	case Give:
		w.give(int(s.A), int(s.B))
	case Word, Empty, Return, Adopt, Lapse, SetBack:
		w.err(s)
	default:
		w.harm(s)
	}
	w.doubted()
	w.settle(-1)
	w.judge()
	return true
}

// restart starts a dead process; a host whose agent is heard is not lost.
func (w *World) restart(p int) {
	w.spawn(p)
	if !w.Scene.Claims { // else it is heard once it has its name
		w.heard(p)
	}
}

// heard takes back that a host is lost, unless it is being fenced, or that it is off.
func (w *World) heard(p int) {
	switch {
	case p == 0 || w.second(p):
	case w.believed(p):
		w.refuted(p)
	case w.record(uint8(p)).NotReady && w.record(uint8(p)).Fencing == nil:
		w.change(p, func(h *store.Host) { h.NotReady = false })
	}
}

// harm lets something happen to a host, a link or a VM.
func (w *World) harm(s Step) {
	w.touch(theFabric)
	a, b := w.hostOf(int(s.A)), hypervisor.HostName("")
	if s.Op == Cut || s.Op == Heal || s.Op == Reset {
		b = w.hostOf(int(s.B))
	}
	bit := uint(1) << pair(int(s.A), int(s.B))
	switch s.Op {
	case Kill:
		_ = w.Network.KillDomain(a, w.Scene.VMs[s.B].Name) // one that is gone is no harm
	case Cut:
		w.Cut |= bit
		_ = w.Network.CutLink(a, b)
	case Heal:
		w.Cut &^= bit
		_ = w.Network.HealLink(a, b)
	case Reset:
		_ = w.Network.ResetLink(a, b)
	case Lost:
		w.change(int(s.A), func(h *store.Host) { h.NotReady = true })
	case Off:
		w.powerOff(int(s.A))
	case Ask:
		asked := &store.Fencing{Asked: w.Now}
		w.change(int(s.A), func(h *store.Host) { h.Fencing, h.NotReady = asked, true })
	case Fence:
		w.powerOff(int(s.A))
		w.change(int(s.A), func(h *store.Host) { h.Fenced, h.NotReady = true, true })
	case On:
		w.Procs[s.A].Off = false
		w.Procs[s.A].boots++
		_ = w.Network.RestartHost(a)
		w.change(int(s.A), func(h *store.Host) {
			h.Fenced, h.NotReady, h.Fencing, h.ConfirmedDownBy = false, false, nil, ""
		})
		if w.Scene.Claims {
			w.lapse(int(s.A))
		}
		w.spawn(int(s.A))
	}
}

func (w *World) powerOff(p int) {
	w.Procs[p].Off = true
	_ = w.Network.CrashHost(w.hostOf(p)) // one that is off stays so
	w.kill(p)
}

// record returns a process's host's record.
func (w *World) record(p uint8) *store.Host { return w.HostRecord(w.hostOf(int(p))) }

func (w *World) change(p int, how func(*store.Host)) {
	next := *w.record(uint8(p))
	how(&next)
	w.put(&next)
}

// operate does what an operator does, as the script says.
func (w *World) operate(line string) {
	verb, name, _ := strings.Cut(line, " ")
	drain := placement.Taint{Key: w.config.Evacuation.DrainKey, Effect: placement.NoSchedule}
	switch verb {
	case "drain":
		w.change(w.Scene.hostIndex(name)+1, func(h *store.Host) {
			h.Taints = append(slices.Clip(h.Taints), drain)
		})
	case "undrain":
		w.change(w.Scene.hostIndex(name)+1, func(h *store.Host) {
			h.Taints = slices.DeleteFunc(slices.Clone(h.Taints),
				func(t placement.Taint) bool { return t.Key == drain.Key })
		})
	case "dead":
		if s := (Step{Op: Word, A: uint8(w.Scene.hostIndex(name) + 1)}); w.mayErr(s) {
			w.hurt = true
			w.err(s)
		}
	case "mark", "stop", "start", "pause", "resume":
		next := *w.VM(hypervisor.VMID(name))
		switch verb {
		case "mark":
			next.EvacuateFrom = next.Host
		case "pause", "resume":
			next.Pause = verb == "pause"
		default:
			next.Stopped = verb == "stop"
		}
		w.put(&next)
	case "renew":
		w.renew(hypervisor.VMID(name))
	case "migrate":
		w.put(&store.Migration{Spec: migration.Spec{Created: w.Now, VM: hypervisor.VMID(name),
			ID: migration.ID(fmt.Sprintf("%s#u%d", name, w.Script))}})
	case "cancel":
		for _, m := range w.Migrations(hypervisor.VMID(name)) {
			if !m.State.Phase.Final() && !m.Cancel {
				next := *m
				next.Cancel = true
				w.put(&next)
			}
		}
	}
}

// renew deletes a VM, if that is not refused, and adds another one of its name where the scene had it.
// Source: internal/client (Client.DeleteVM, Client.AddVM).
func (w *World) renew(name hypervisor.VMID) {
	old := w.VM(name)
	if old.ActiveMigration != "" || !old.Stopped || !old.Ended {
		return
	}
	must(w.Store.Delete(w.ctx, old))
	w.put(&store.VM{VM: old.VM, Life: life(w.Script), Moves: 1,
		Host: w.Scene.VMs[w.Scene.vmIndex(string(name))].Host, Migratable: true, Strategy: old.Strategy})
}

// life is that of a VM which was added by a line of the script; 0 is before all.
func life(line int) *store.Life {
	return &store.Life{ID: fmt.Sprint(line), After: store.Revision(line + 1)}
}

// quiet is how long nothing may happen before a world has come to rest: longer than any
// agent waits before it looks at everything again.
const quiet = 70 * time.Minute

// mostLooks bounds the looks of a world that is to come to rest: one in which the same
// migration fails for ever is left alone.
const mostLooks = 2000

// Rest ends all faults, lets the world come to rest, and checks what then holds. Hosts
// without power get it back if so wanted; the others are called lost.
func (w *World) Rest(back bool) {
	defer func() { w.Touched = ^uint(0) }()
	w.Faults = 0
	for p := range w.lines {
		if w.Empty>>p&1 == 1 {
			w.apply(Step{Op: Return, A: uint8(p)})
		}
	}
	for w.Script < len(w.Scene.Script) {
		w.apply(Step{Op: Script})
	}
	for a := range w.lines {
		if w.second(a) {
			continue
		}
		switch h := w.record(uint8(a)); {
		case a == 0 || h.Fencing == nil:
		case !h.ByOperator():
			w.apply(Step{Op: Fence, A: uint8(a)})
		case back: // what operators do about a wrong word
			w.touch(theFabric)
			w.powerOff(a)
		}
		switch proc := &w.Procs[a]; {
		case proc.Off && back:
			w.apply(Step{Op: On, A: uint8(a)})
		case proc.Off:
			w.apply(Step{Op: Lost, A: uint8(a)})
		case proc.Brain == nil:
			w.apply(Step{Op: Restart, A: uint8(a)})
		case proc.Hung:
			w.apply(Step{Op: GoOn, A: uint8(a)})
		}
		for b := a + 1; b < len(w.lines); b++ {
			if w.Cut>>pair(a, b)&1 == 1 {
				w.apply(Step{Op: Heal, A: uint8(a), B: uint8(b)})
			}
		}
	}
	changed := w.Now
	for range mostLooks {
		if s, ok := w.adoption(); ok {
			w.apply(s)
			continue
		}
		if s, ok := w.admission(); ok {
			w.apply(s)
			continue
		}
		s, at, ok := w.earliest()
		if !ok || at.Sub(changed) > quiet {
			w.checkAtRest()
			return
		}
		w.Touched &^= 1 << theStore
		w.apply(s)
		if w.Touched>>theStore&1 == 1 || s.Op == Time {
			changed = w.Now
		}
	}
}

// earliest returns the step that happens first when no participant is late.
func (w *World) earliest() (s Step, at time.Time, ok bool) {
	if next, some := w.Network.Next(); some {
		s, at, ok = Step{Op: Time}, next, true
	}
	for p := range w.lines {
		proc := &w.Procs[p]
		wake := proc.Wake
		if w.due(p) {
			wake = w.Now
		}
		if proc.Brain != nil && !proc.Hung && !wake.IsZero() && (!ok || wake.Before(at)) {
			s, at, ok = Step{Op: Look, A: uint8(p)}, wake, true
		}
	}
	return s, at, ok
}

// enough is how long whatever is broken stays so, unless it can make no difference before.
const enough = 20 * time.Second

// Usual returns what happens next when nothing breaks, no participant is late, and what was
// broken is mended as soon as nothing else is to be done; it is false when nothing is.
func (w *World) Usual() (Step, bool) {
	for p := range w.lines {
		if w.due(p) {
			return Step{Op: Look, A: uint8(p)}, true
		}
	}
	if s, ok := w.admission(); ok {
		return s, true
	}
	if w.Script < len(w.Scene.Script) && !w.Waits {
		return Step{Op: Script}, true
	}
	for p := 1; p < len(w.lines); p++ {
		if w.second(p) {
			continue
		}
		switch host := w.record(uint8(p)); {
		case host.Fencing != nil && !host.Fenced:
			return Step{Op: Fence, A: uint8(p)}, true
		case w.Procs[p].Off && !host.NotReady:
			return Step{Op: Lost, A: uint8(p)}, true
		case !host.Fenced:
			continue
		}
		for v := range w.Scene.VMs {
			if w.mayGive(p, v) {
				return Step{Op: Give, A: uint8(p), B: uint8(v)}, true
			}
		}
	}
	if s, ok := w.adoption(); ok {
		return s, true
	}
	if _, goesOn := w.Network.Next(); goesOn && w.Now.Sub(w.Since) < enough {
		s, _, _ := w.earliest()
		return s, true
	}
	return w.mend()
}

// mend returns the step that mends what is broken, or, when nothing is, the next.
func (w *World) mend() (Step, bool) {
	for a := range w.lines {
		switch proc := &w.Procs[a]; {
		case proc.Off:
			return Step{Op: On, A: uint8(a)}, true
		case proc.Brain == nil && !proc.Gone:
			return Step{Op: Restart, A: uint8(a)}, true
		case proc.Hung:
			return Step{Op: GoOn, A: uint8(a)}, true
		case w.Empty>>a&1 == 1:
			return Step{Op: Return, A: uint8(a)}, true
		}
		for b := a + 1; b < len(w.lines); b++ {
			if w.Cut>>pair(a, b)&1 == 1 {
				return Step{Op: Heal, A: uint8(a), B: uint8(b)}, true
			}
		}
	}
	if w.Script < len(w.Scene.Script) {
		return Step{Op: Script}, true
	}
	s, _, ok := w.earliest()
	return s, ok && !w.idle()
}
