package simtest_test

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
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/sim/simtest"
)

// drawn checks a property of drawn worlds: that they are what their generator guarantees, and
// one more. A world is written when it lacks something.
func drawn(t *testing.T, g simtest.Generator, property func(*rapid.T, *simtest.World,
	*config.Scenario) error) {
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
func play(t *rapid.T, s *config.Scenario) *sim.World {
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
func elsewhere(s *config.Scenario, without int) (room, vms []hypervisor.Bytes) {
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
	g := simtest.Of(simtest.Roomy(simtest.Small))
	drawn(t, g, func(_ *rapid.T, _ *simtest.World, s *config.Scenario) error {
		for i, h := range s.Fleet.Hosts {
			if !placed(elsewhere(s, i)) {
				return fmt.Errorf("not without %s", h.Name)
			}
		}
		return nil
	})
}

func TestARoomyFleetIsAsLargeAsAskedFor(t *testing.T) {
	drawn(t, simtest.Of(simtest.Roomy(simtest.Large)), func(_ *rapid.T, w *simtest.World,
		_ *config.Scenario) error {
		if len(w.Hosts) != 10 || len(w.VMs) < 20 {
			return fmt.Errorf("%d hosts and %d VMs", len(w.Hosts), len(w.VMs))
		}
		return nil
	})
}

func TestACrampedFleetCannotHoldItsVMsWithAnyHostGone(t *testing.T) {
	g := simtest.Of(simtest.Cramped(simtest.Size{MinHosts: 2, MaxHosts: 3}))
	drawn(t, g, func(_ *rapid.T, _ *simtest.World, s *config.Scenario) error {
		for i, h := range s.Fleet.Hosts {
			if placed(elsewhere(s, i)) {
				return fmt.Errorf("it can without %s", h.Name)
			}
		}
		return nil
	})
}

func TestNoVMIsSentToTheOneFullHost(t *testing.T) {
	g := simtest.Of(simtest.OneFull(simtest.Small), simtest.Converging())
	drawn(t, g, func(t *rapid.T, w *simtest.World, s *config.Scenario) error {
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
				return fmt.Errorf("a VM came to %s", host)
			}
		}
		return nil
	})
}

// moving asks every VM of a host that is not full to move.
func moving(t *rapid.T, w *simtest.World) *config.Scenario {
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
	g := simtest.Of(simtest.Roomy(simtest.Small), simtest.Generations(), simtest.Converging(),
		simtest.Drain())
	drawn(t, g, func(t *rapid.T, w *simtest.World, s *config.Scenario) error {
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
	testutil.Unraced(t)
	for _, row := range []struct {
		load simtest.Part
		ends migration.Phase
	}{
		{simtest.Converging(), migration.Succeeded}, {simtest.Endless(), migration.Failed},
	} {
		t.Run(row.load.Name, func(t *testing.T) {
			g := simtest.Of(simtest.Roomy(simtest.Small), row.load)
			drawn(t, g, func(t *rapid.T, w *simtest.World, _ *config.Scenario) error {
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
	g := simtest.Of(simtest.Roomy(simtest.Small), simtest.ConflictingPolicies())
	drawn(t, g, func(_ *rapid.T, _ *simtest.World, s *config.Scenario) error {
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

func TestAChangeOfMindLeavesNothingToBeDone(t *testing.T) {
	g := simtest.Of(simtest.Roomy(simtest.Small), simtest.Converging(), simtest.SecondThoughts())
	drawn(t, g, func(t *rapid.T, _ *simtest.World, s *config.Scenario) error {
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
	kinds := len(simtest.Faults())
	fewest, most := kinds, 0
	drawn(t, simtest.Of(simtest.Roomy(simtest.Small), simtest.Swarm(simtest.Faults(), 40, 40)),
		func(_ *rapid.T, w *simtest.World, _ *config.Scenario) error {
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
	if fewest > kinds/2 || most < kinds/2 || fewest == most { // however few worlds are drawn
		t.Errorf("of %d kinds between %d and %d happen in a world", kinds, fewest, most)
	}
}

// A check plays worlds as they were made, and writes only the one that fails: a reader of
// what was written must play the same. With -rapid.checks=3000 in as many worlds.
func TestAWorldThatIsWrittenIsTheOneThatIsPlayed(t *testing.T) {
	testutil.Unraced(t)
	g := simtest.Turmoil().And(simtest.Generations(), simtest.ConflictingPolicies())
	drawn(t, g, func(_ *rapid.T, w *simtest.World, made *config.Scenario) error {
		text := w.String()
		again, err := simtest.Parse("again", []byte(text))
		if err != nil {
			return err
		}
		if diff := cmp.Diff(text, again.String()); diff != "" {
			return fmt.Errorf("(-written +read):\n%s", diff)
		}
		read, err := config.Parse("world", []byte(text))
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
func plainly(s *config.Scenario) {
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
		a, b := simtest.Turmoil().Make(sim.Seeded(seed)), simtest.Turmoil().Make(sim.Seeded(seed))
		if diff := cmp.Diff(a.String(), b.String()); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestAGuaranteeThatIsBrokenIsNamed(t *testing.T) {
	for _, row := range []struct {
		g      simtest.Generator
		spoil  func(*simtest.World)
		lacked string
	}{
		{simtest.Of(simtest.Roomy(simtest.Small)), func(w *simtest.World) { w.Hosts = w.Hosts[:1] },
			"a fleet that holds all its VMs with any one host gone"},
		{simtest.Of(simtest.Cramped(simtest.Small)), func(w *simtest.World) { w.VMs = w.VMs[:1] },
			"a fleet that cannot hold its VMs"},
		{simtest.Of(simtest.OneFull(simtest.Small)), func(w *simtest.World) { w.VMs = w.VMs[8:] },
			"a fleet with one full host"},
		{simtest.Of(simtest.Roomy(simtest.Small), simtest.Generations()),
			func(w *simtest.World) {
				for i := range w.Hosts {
					w.Hosts[i].CPUModels = w.Hosts[0].CPUModels
				}
			},
			"with hosts of different CPU generation"},
		{simtest.Of(simtest.Roomy(simtest.Small), simtest.Converging()),
			func(w *simtest.World) { w.VMs[0].LoadSpec.Dirty = "9GiB/s" }, "VMs that converge"},
		{simtest.Of(simtest.Roomy(simtest.Small), simtest.Endless()),
			func(w *simtest.World) { w.VMs[0].LoadSpec.Dirty = "1MiB/s" },
			"VMs that do not converge"},
		{simtest.Of(simtest.Roomy(simtest.Small), simtest.ConflictingPolicies()),
			func(w *simtest.World) { w.Policies = w.Policies[:1] }, "with policies that conflict"},
		{simtest.Calm(), func(w *simtest.World) { w.Events = nil }, "one host is drained"},
		{simtest.Of(simtest.Roomy(simtest.Small), simtest.SecondThoughts()),
			func(w *simtest.World) { w.Events = append(w.Events, "9m drain n1") },
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
