package worlds_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/sim/scenario"
	"github.com/godwit-vm/godwit/sim/simtest/worlds"
)

// drawn checks a property of drawn worlds: that they are what their generator guarantees, and
// one more. A world is written when it lacks something.
func drawn(t *testing.T, g worlds.Generator, property func(*rapid.T, *worlds.World,
	*scenario.Scenario) error) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		w := g.Rapid().Draw(t, "world")
		s, err := w.Scenario("world")
		if err == nil {
			err = g.Holds(w)
		}
		if err == nil {
			err = property(t, w, s)
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, w)
		}
	})
}

// play runs a world to its end.
func play(t *rapid.T, s *scenario.Scenario) *sim.World {
	w, err := s.Build(s.Config(s.Seed))
	if err != nil {
		t.Fatal(err)
	}
	w.Run(30 * 24 * time.Hour)
	return w
}

// placed reports whether VMs of these sizes fit into these rooms together, by trying all.
func placed(room, vms []hypervisor.Bytes) bool {
	if len(vms) == 0 {
		return true
	}
	for i := range room {
		if room[i] < vms[0] {
			continue
		}
		room[i] -= vms[0]
		fits := placed(room, vms[1:])
		if room[i] += vms[0]; fits {
			return true
		}
	}
	return false
}

// elsewhere returns the sizes of all VMs, and of the hosts but one.
func elsewhere(s *scenario.Scenario, without int) (room, vms []hypervisor.Bytes) {
	for i, h := range s.Fleet.Hosts {
		if i != without {
			room = append(room, h.Memory)
		}
	}
	for _, v := range s.Fleet.VMs {
		vms = append(vms, v.Memory)
	}
	slices.Sort(vms)
	slices.Reverse(vms)
	return room, vms
}

func TestARoomyFleetHoldsAllItsVMsWithAnyOneHostGone(t *testing.T) {
	g := worlds.Of(worlds.Roomy(worlds.Small))
	drawn(t, g, func(_ *rapid.T, _ *worlds.World, s *scenario.Scenario) error {
		for i, h := range s.Fleet.Hosts {
			if !placed(elsewhere(s, i)) {
				return fmt.Errorf("not without %s", h.Name)
			}
		}
		return nil
	})
}

func TestARoomyFleetIsAsLargeAsAskedFor(t *testing.T) {
	drawn(t, worlds.Of(worlds.Roomy(worlds.Large)), func(_ *rapid.T, w *worlds.World,
		_ *scenario.Scenario) error {
		if len(w.Hosts) != 10 || len(w.VMs) < 20 {
			return fmt.Errorf("%d hosts and %d VMs", len(w.Hosts), len(w.VMs))
		}
		return nil
	})
}

func TestACrampedFleetCannotHoldItsVMsWithAnyHostGone(t *testing.T) {
	g := worlds.Of(worlds.Cramped(worlds.Size{MinHosts: 2, MaxHosts: 3}))
	drawn(t, g, func(_ *rapid.T, _ *worlds.World, s *scenario.Scenario) error {
		for i, h := range s.Fleet.Hosts {
			if placed(elsewhere(s, i)) {
				return fmt.Errorf("it can without %s", h.Name)
			}
		}
		return nil
	})
}

func TestNobodyIsSentToTheOneFullHost(t *testing.T) {
	g := worlds.Of(worlds.OneFull(worlds.Small), worlds.Converging())
	drawn(t, g, func(t *rapid.T, w *worlds.World, s *scenario.Scenario) error {
		free := map[hypervisor.HostName]hypervisor.Bytes{}
		for _, h := range s.Fleet.Hosts {
			free[h.Name] = h.Memory
		}
		for _, v := range s.Fleet.VMs {
			free[v.Host] -= v.Memory
		}
		world := play(t, moving(t, w))
		for host, room := range free {
			here := slices.ContainsFunc(s.Fleet.VMs, func(v inventory.VM) bool {
				return v.Host != host && slices.Contains(world.VMsOn(host), v.ID)
			})
			if room <= 0 && here {
				return fmt.Errorf("somebody came to %s", host)
			}
		}
		return nil
	})
}

// moving asks every VM of a host that is not full to move.
func moving(t *rapid.T, w *worlds.World) *scenario.Scenario {
	w = w.Clone()
	for _, v := range w.VMs {
		if v.Memory != "6GiB" {
			w.Events = append(w.Events, "0s migrate "+v.Name)
		}
	}
	s, err := w.Scenario("world")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestHostsOfDifferentGenerationRunTheVMsThatTheyCan(t *testing.T) {
	g := worlds.Of(worlds.Roomy(worlds.Small), worlds.Generations(), worlds.Converging(),
		worlds.Drain())
	drawn(t, g, func(t *rapid.T, w *worlds.World, s *scenario.Scenario) error {
		world, models := play(t, s), map[string][]string{}
		for _, h := range w.Hosts {
			models[h.Name] = h.CPUModels
		}
		for _, v := range w.VMs {
			home := world.VM(hypervisor.VMID("default/" + v.Name)).Host
			if !slices.Contains(models[string(home)], v.Platform.CPUModel) {
				return fmt.Errorf("%s is on %s", v.Name, home)
			}
		}
		return nil
	})
}

func TestVMsThatConvergeMoveAndEndlessOnesDoNot(t *testing.T) {
	for _, row := range []struct {
		load worlds.Part
		ends migration.Phase
	}{
		{worlds.Converging(), migration.Succeeded}, {worlds.Endless(), migration.Failed},
	} {
		t.Run(row.load.Name, func(t *testing.T) {
			g := worlds.Of(worlds.Roomy(worlds.Small), row.load)
			drawn(t, g, func(t *rapid.T, w *worlds.World, _ *scenario.Scenario) error {
				off, downtime := false, int64(300)
				w.Config.AllowAutoConverge, w.Config.MaxDowntimeMs = &off, &downtime
				w.Events = append(w.Events, "0s migrate "+w.VMs[0].Name)
				s, err := w.Scenario("world")
				if err != nil {
					return err
				}
				for _, m := range play(t, s).Migrations(s.Fleet.VMs[0].ID) {
					if m.State.Phase != row.ends {
						return fmt.Errorf("%s has %v because %v", m.Spec.ID, m.State.Phase,
							m.State.Because)
					}
				}
				return nil
			})
		})
	}
}

func TestPoliciesThatConflictMatchOneVM(t *testing.T) {
	g := worlds.Of(worlds.Roomy(worlds.Small), worlds.ConflictingPolicies())
	drawn(t, g, func(_ *rapid.T, _ *worlds.World, s *scenario.Scenario) error {
		for _, v := range s.Fleet.VMs {
			says := map[bool]bool{}
			for _, p := range s.Fleet.Policies {
				if p.AllowPostCopy != nil && matches(p.Selectors.VM, v.Labels) {
					says[*p.AllowPostCopy] = true
				}
			}
			if len(says) == 2 {
				return nil
			}
		}
		return errors.New("no VM is told two things")
	})
}

func matches(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return true
}

func TestWhoeverThinksAgainLeavesNothingToBeDone(t *testing.T) {
	g := worlds.Of(worlds.Roomy(worlds.Small), worlds.Converging(), worlds.SecondThoughts())
	drawn(t, g, func(t *rapid.T, _ *worlds.World, s *scenario.Scenario) error {
		w := play(t, s)
		for _, host := range w.Hosts() {
			if w.Draining(host) {
				return fmt.Errorf("%s is drained", host)
			}
		}
		if n := len(w.Moving()); n > 0 {
			return fmt.Errorf("%d are moving", n)
		}
		return nil
	})
}

func TestASwarmSwitchesKindsOff(t *testing.T) {
	kinds := len(worlds.Faults())
	fewest, most := kinds, 0
	drawn(t, worlds.Of(worlds.Roomy(worlds.Small), worlds.Swarm(worlds.Faults(), 40, 40)),
		func(_ *rapid.T, w *worlds.World, _ *scenario.Scenario) error {
			verbs := map[string]bool{}
			for _, e := range w.Events {
				words := strings.Fields(strings.TrimPrefix(e, "when "))
				verbs[words[1]] = true
			}
			fewest, most = min(fewest, len(verbs)), max(most, len(verbs))
			if len(w.Events) != 40 {
				return fmt.Errorf("%d events", len(w.Events))
			}
			return nil
		})
	if fewest > kinds/3 || most < kinds/2 {
		t.Errorf("of %d kinds between %d and %d happen in a world", kinds, fewest, most)
	}
}

// A check plays worlds as they were made, and writes only the one that fails: whoever reads
// what was written must play the same. With -rapid.checks=3000 in as many worlds.
func TestAWorldThatIsWrittenIsTheOneThatIsPlayed(t *testing.T) {
	g := worlds.Turmoil().And(worlds.Generations(), worlds.ConflictingPolicies())
	drawn(t, g, func(_ *rapid.T, w *worlds.World, made *scenario.Scenario) error {
		text := w.String()
		again, err := worlds.Parse("again", []byte(text))
		if err != nil {
			return err
		}
		if diff := cmp.Diff(text, again.String()); diff != "" {
			return fmt.Errorf("(-written +read):\n%s", diff)
		}
		read, err := scenario.Parse("world", []byte(text))
		if err != nil {
			return err
		}
		plainly(made)
		if plainly(read); !reflect.DeepEqual(made, read) {
			return fmt.Errorf("scenario (-made +read):\n%s", cmp.Diff(made, read))
		}
		lines := strings.Count(text, "\n")
		if n := w.Commands(); n > lines || n < lines-6 {
			return fmt.Errorf("%d commands in %d lines", n, lines)
		}
		return nil
	})
}

// plainly replaces functions by nothing: what they do follows from the text of their event.
func plainly(s *scenario.Scenario) {
	for i := range s.Events {
		switch e := s.Events[i].What.(type) {
		case sim.Change:
			e.How = nil
			s.Events[i].What = e
		case sim.When:
			if c, is := e.Do.(sim.Change); is {
				c.How = nil
				e.Do = c
			}
			s.Events[i].What = e
		}
	}
}

func TestTheSameChoicesMakeTheSameWorld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		a, b := worlds.Turmoil().Make(sim.Seeded(seed)), worlds.Turmoil().Make(sim.Seeded(seed))
		if diff := cmp.Diff(a.String(), b.String()); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestAGuaranteeThatIsBrokenIsNamed(t *testing.T) {
	for _, row := range []struct {
		g      worlds.Generator
		spoil  func(*worlds.World)
		lacked string
	}{
		{worlds.Of(worlds.Roomy(worlds.Small)), func(w *worlds.World) { w.Hosts = w.Hosts[:1] },
			"a fleet that holds all its VMs with any one host gone"},
		{worlds.Of(worlds.Cramped(worlds.Small)), func(w *worlds.World) { w.VMs = w.VMs[:1] },
			"a fleet that cannot hold its VMs"},
		{worlds.Of(worlds.OneFull(worlds.Small)), func(w *worlds.World) { w.VMs = w.VMs[8:] },
			"a fleet with one full host"},
		{worlds.Of(worlds.Roomy(worlds.Small), worlds.Generations()),
			func(w *worlds.World) {
				for i := range w.Hosts {
					w.Hosts[i].CPUModels = w.Hosts[0].CPUModels
				}
			},
			"with hosts of different CPU generation"},
		{worlds.Of(worlds.Roomy(worlds.Small), worlds.Converging()),
			func(w *worlds.World) { w.VMs[0].LoadSpec.Dirty = "9GiB/s" }, "VMs that converge"},
		{worlds.Of(worlds.Roomy(worlds.Small), worlds.Endless()),
			func(w *worlds.World) { w.VMs[0].LoadSpec.Dirty = "1MiB/s" },
			"VMs that do not converge"},
		{worlds.Of(worlds.Roomy(worlds.Small), worlds.ConflictingPolicies()),
			func(w *worlds.World) { w.Policies = w.Policies[:1] }, "with policies that conflict"},
		{worlds.Calm(), func(w *worlds.World) { w.Events = nil }, "one host is drained"},
		{worlds.Of(worlds.Roomy(worlds.Small), worlds.SecondThoughts()),
			func(w *worlds.World) { w.Events = append(w.Events, "9m drain n1") },
			"operators who change their mind"},
	} {
		w := row.g.Make(sim.Seeded(4))
		if err := row.g.Holds(w); err != nil {
			t.Errorf("before: %v\n%s", err, w)
			continue
		}
		row.spoil(w)
		if err := row.g.Holds(w); err == nil || !strings.Contains(err.Error(), row.lacked) {
			t.Errorf("%s: %v", row.lacked, err)
		}
	}
}
