package mutant_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/sim"
)

// What the owners of some policies ask of the world besides. Each is an invariant that holds
// with godwit's own decisions.

// emptied: a host is drained, and no VM is on it.
func emptied(w *sim.World) error {
	drained := false
	for _, h := range w.Hosts() {
		if !w.Draining(h) {
			continue
		}
		drained = true
		if left := w.VMsOn(h); len(left) > 0 {
			return fmt.Errorf("%v are on %s", left, h)
		}
	}
	if !drained {
		return errors.New("no host is drained")
	}
	return nil
}

func twoAtOnce(w *sim.World) error {
	leaving := map[hypervisor.HostName]int{}
	for _, m := range w.Moving() {
		leaving[m.State.Source]++
		if leaving[m.State.Source] > 2 {
			return fmt.Errorf("three leave %s", m.State.Source)
		}
	}
	return nil
}

// noneRefuses: a target that the controller has chosen does not refuse.
func noneRefuses(w *sim.World) error {
	for _, m := range w.Moving() {
		if len(m.Target.Refused) > 0 {
			return fmt.Errorf("%s refuses %s: %v", m.State.Target, m.Spec.ID, m.Target.Refused)
		}
	}
	return nil
}

func noneOntoDrained(w *sim.World) error {
	for _, m := range w.Moving() {
		if w.Draining(m.State.Target) {
			return fmt.Errorf("%s goes to %s, which is drained", m.Spec.ID, m.State.Target)
		}
	}
	return nil
}

// pausesBetween: what the system repeats has a target a second after the last failure, at the
// soonest.
func pausesBetween(w *sim.World) error {
	for _, id := range w.VMs() {
		var failed time.Time
		for _, m := range w.Migrations(id) {
			switch s := &m.State; {
			case s.Phase == migration.Failed && migration.Withdrawn(s.Because):
				// Nothing went wrong: an operator's request took its place, say.
			case s.Phase == migration.Failed && m.Spec.By != migration.User:
				failed = s.Entered
			case s.Phase == migration.Scheduling && m.Spec.By != migration.User &&
				!failed.IsZero() && s.Entered.Sub(failed) < time.Second:
				return fmt.Errorf("%s has a target %v after the last attempt has failed",
					m.Spec.ID, s.Entered.Sub(failed))
			}
		}
	}
	return nil
}

// fewKept: of a VM no more attempts that have ended are kept than the default says.
func fewKept(w *sim.World) error {
	for _, id := range w.VMs() {
		if succeeded, failed := w.Ended(id); succeeded+failed > 5 {
			return fmt.Errorf("%d attempts of %s are kept", succeeded+failed, id)
		}
	}
	return nil
}
