package sim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/sim/simtest"
)

// Whatever is asked of a world, at whatever moment, agrees with what its records and its
// hypervisors say one by one.
func TestWhatIsReadAgreesWithTheRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chance := simtest.Drawn(t)
		s := simtest.Turmoil().Make(chance)
		parsed, err := s.Scenario("world")
		if err != nil {
			t.Fatal(err)
		}
		wrong, c := error(nil), parsed.Config(s.Seed)
		c.After = func(w *sim.World) bool {
			wrong = agrees(w)
			return wrong == nil
		}
		w, err := parsed.Build(c)
		if err != nil {
			t.Fatal(err)
		}
		w.Run(time.Hour)
		if wrong != nil {
			t.Fatalf("%v\n%s", wrong, s)
		}
	})
}

func agrees(w *sim.World) error {
	moving := w.Moving()
	at, under := 0, 0
	for _, host := range w.Hosts() {
		home, coming := w.Demand(host)
		for _, vm := range w.VMsOn(host) {
			v := w.VM(vm)
			if at++; v == nil || v.Host != host {
				return fmt.Errorf("%s is not on %s: %+v", vm, host, v)
			}
			if !v.Ended {
				home -= v.Place().Demand()
			}
		}
		for _, m := range moving {
			if v := w.VM(m.Spec.VM); m.State.Target == host && v.Host != host {
				coming -= v.Place().Demand()
			}
		}
		if home != 0 || coming != 0 {
			return fmt.Errorf("%s: %v and %v too much", host, home, coming)
		}
	}
	for _, vm := range w.VMs() {
		all := w.Migrations(vm)
		succeeded, failed := w.Ended(vm)
		for _, m := range all {
			is := !m.State.Phase.Final() && m.State.Target != ""
			if is != slices.Contains(moving, m) {
				return fmt.Errorf("%s moves: %v", m.Spec.ID, is)
			}
			if is {
				under++
			}
			if m.State.Phase.Final() {
				succeeded--
			}
		}
		if succeeded+failed != 0 {
			return fmt.Errorf("%s: %d attempts have ended or have not", vm, succeeded+failed)
		}
		for _, host := range w.RunsOn(vm) {
			if !slices.ContainsFunc(w.Network().Copies(vm), func(c fake.Copy) bool {
				return c.Host == host && c.State.Executes()
			}) {
				return fmt.Errorf("%s does not run on %s", vm, host)
			}
		}
	}
	if at != len(w.VMs()) || under != len(moving) {
		return fmt.Errorf("%d of %d VMs, %d of %d migrations", at, len(w.VMs()), under, len(moving))
	}
	return nil
}

func TestWhatIsBrokenAndWhatIsDrainedIsSaid(t *testing.T) {
	calm := simtest.Calm().Make(sim.Seeded(3))
	p := play(t, calm, sim.Seeded(3))
	var drained []hypervisor.HostName
	for _, host := range p.Hosts() {
		if p.Draining(host) {
			drained = append(drained, host)
		}
	}
	if want := "0s drain " + string(drained[0]); p.Faulty() || len(drained) != 1 ||
		calm.Events[0] != want {
		t.Errorf("broken: %v, drained: %v of %v", p.Faulty(), drained, calm.Events)
	}
	calm.Events = append(calm.Events, "1s conflict v1")
	if p := play(t, calm, sim.Seeded(3)); !p.Faulty() {
		t.Error("nothing is said to be broken")
	}
}
