package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/sim/simtest"
)

// What holds when nothing breaks.

func TestAHostThatCanBeEmptiedIsEmptied(t *testing.T) {
	checkWorlds(t, simtest.Calm(), func(t *rapid.T, p *played) {
		r := p.Result()
		if e := r.Evacuations[0]; p.end != sim.AtRest || e.EmptySeconds == nil || len(e.Left) > 0 {
			t.Fatalf("%v: %+v", p.end, e)
		}
		for _, v := range p.scenario.Fleet.VMs { // each moves once, or not at all
			moves := p.Migrations(v.ID)
			if leaves := v.Host == r.Evacuations[0].Host; leaves && len(moves) != 1 ||
				!leaves && len(moves) > 0 {
				t.Errorf("%s was on %s and migrated %d times", v.ID, v.Host, len(moves))
			}
		}
		if m := r.Migrations; m.Succeeded != m.Total {
			t.Errorf("%+v", m)
		}
	})
}

// scratch gives some VMs a disk on their host.
var scratch = simtest.Part{Name: "local disks", Add: func(m *simtest.Builder) {
	for i := range m.World.VMs {
		if size := m.Between("GiB on a local disk", -10, 20); size > 0 {
			m.World.VMs[i].Hardware = &inventory.Hardware{Disks: []inventory.Disk{
				{Name: "scratch", Size: fmt.Sprintf("%dGiB", size)}}}
		}
	}
}}

func TestBytesAndTimeAreAtLeastWhatMustBe(t *testing.T) {
	checkWorlds(t, simtest.Calm().And(scratch), func(t *rapid.T, p *played) {
		least := hypervisor.Bytes(0)
		for _, v := range p.scenario.Fleet.VMs {
			if p.VM(v.ID).Host != v.Host {
				least += v.Memory - v.Memory/1000*hypervisor.Bytes(v.Workload.Zero+1)
				least += v.LocalSize()
			}
		}
		r := p.Result()
		if r.BytesTransferred < least {
			t.Errorf("moved %v, at least %v must be", r.BytesTransferred, least)
		}
		if r.VirtualSeconds < r.LowerBoundSeconds {
			t.Errorf("took %vs, at least %vs must be", r.VirtualSeconds, r.LowerBoundSeconds)
		}
		e := r.Evacuations[0] // all that moves leaves this host
		if e.EmptySeconds != nil && *e.EmptySeconds-e.StartSeconds < r.LowerBoundSeconds-0.002 {
			t.Errorf("%+v, at least %vs must be", e, r.LowerBoundSeconds)
		}
	})
}

// errands ask for a migration of every VM, at some time and with some priority. No more than
// two move at once: a slow link that more of them share is too slow for some loads.
var errands = simtest.Part{Name: "all VMs are to move", Add: func(m *simtest.Builder) {
	*m.World.Limits.PerCluster = min(2, *m.World.Limits.PerCluster)
	for _, vm := range m.World.VMNames() {
		m.Event(m.Time(), "migrate "+vm+m.Priority())
	}
}}

func TestEveryMigrationIsServedHoweverLowItsPriority(t *testing.T) {
	g := simtest.Of(simtest.Roomy(simtest.Small), simtest.Converging(), simtest.Limits(), errands)
	checkWorlds(t, g, func(t *rapid.T, p *played) {
		for _, v := range p.scenario.Fleet.VMs {
			for _, m := range p.Migrations(v.ID) {
				if m.State.Phase != migration.Succeeded {
					t.Errorf("%s is %s %s", m.Spec.ID, m.State.Phase, m.State.Because)
				}
			}
			if p.VM(v.ID).Host == v.Host {
				t.Errorf("%s is still on %s", v.ID, v.Host)
			}
		}
	})
}

// rush asks for everything on one host at nearly the same time; there is room for
// all of it anywhere.
var rush = simtest.Part{Name: "all of one host is to move", Add: func(m *simtest.Builder) {
	cluster, source := m.Between("per cluster", 1, 3), m.Between("per source", 1, 2)
	m.World.Limits.PerCluster, m.World.Limits.PerSource = &cluster, &source
	for i := range m.Between("hosts", 2, 4) {
		m.World.Hosts = append(m.World.Hosts, inventory.HostSpec{Name: fmt.Sprintf("n%d", i+1),
			Memory: "64GiB", CPUs: 64, Link: "1Gbit/s"})
	}
	for i := range m.Between("VMs", 2, 8) {
		vm := fmt.Sprintf("v%d", i+1)
		m.World.VMs = append(m.World.VMs, inventory.VMSpec{Name: vm, Host: "n1",
			Memory: fmt.Sprintf("%dGiB", m.Between("VM size", 1, 4))})
		m.Event(fmt.Sprintf("%dms", m.Choose("ms", 30_000)), "migrate "+vm+m.Priority())
	}
}}

func TestNoMigrationWaitsBehindALowerPriority(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chance := simtest.Drawn(t)
		s := simtest.Of(rush, simtest.Converging()).Make(chance)
		unjust := ""
		play(t, s, chance, func(p *played, e sim.Entry) {
			if strings.HasPrefix(e.What, "Pending → Scheduling") {
				unjust = max(unjust, p.overtaken(e.VM))
			}
		})
		if unjust != "" {
			t.Fatalf("%s\n%s", unjust, s)
		}
	})
}

// overtaken returns who waited when a VM got its slot, and should have had it.
// Who has come just now may not have been seen.
func (p *played) overtaken(by hypervisor.VMID) string {
	winner := p.Migrations(by)[0]
	for _, v := range p.scenario.Fleet.VMs {
		for _, m := range p.Migrations(v.ID) {
			waits := m.State.Phase == migration.Pending && m.State.Target == "" &&
				p.Now()-m.Spec.Created.Sub(sim.Epoch) > 100*time.Millisecond
			if waits && migration.ByPrecedence(m.Spec, winner.Spec) < 0 {
				return fmt.Sprintf("%s waits behind %s", m.Spec.ID, winner.Spec.ID)
			}
		}
	}
	return ""
}

func TestOperatorsAloneBreakNothing(t *testing.T) { checkWorlds(t, simtest.Busy(), nil) }

func TestNoVMIsSentToADrainedHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chance := simtest.Drawn(t)
		s := simtest.Busy().Make(chance)
		since, wrong := map[string]time.Duration{}, ""
		play(t, s, chance, func(p *played, e sim.Entry) {
			if host, ok := strings.CutPrefix(e.What, "drain "); ok {
				if _, again := since[host]; !again {
					since[host] = e.At
				}
			}
			if host, ok := strings.CutPrefix(e.What, "stop draining "); ok {
				delete(since, host)
			}
			if e.What != "Pending → Scheduling" {
				return
			}
			moves := p.Migrations(e.VM)
			move := moves[len(moves)-1]
			target := string(move.State.Target)
			if move.Spec.Force == placement.Yes ||
				move.Spec.Compat && move.Spec.Force == placement.Absent {
				return // a forced target overrules its drain
			}
			if began, drained := since[target]; drained && e.At > began+100*time.Millisecond {
				wrong = fmt.Sprintf("%s goes to %s at %s", e.VM, target, sim.Clock(e.At))
			}
		})
		if wrong != "" {
			t.Fatalf("%s\n%s", wrong, s)
		}
	})
}

// A store that loses answers costs time, and changes nothing else.
func TestLostAnswersDoNotChangeTheOutcome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &simtest.Builder{Chooser: simtest.Drawn(t)}
		s := simtest.Calm().Make(m.Chooser)
		want := play(t, s, sim.Seeded(1)).outcome()
		m.World = s
		for _, who := range append([]string{"controller"}, s.HostNames()...) {
			m.Event(m.Time(), fmt.Sprintf("mute %s times=%d", who, m.Between("times", 1, 5)))
		}
		p := play(t, s, m.Chooser)
		if got := p.outcome(); got != want || p.wrong() != "" {
			t.Fatalf("want %s, got %s %s\n%s", want, got, p.wrong(), s)
		}
	})
}

// outcome says who has left, and what failed.
func (p *played) outcome() string {
	var left []string
	for _, v := range p.scenario.Fleet.VMs {
		if p.VM(v.ID).Host != v.Host {
			left = append(left, string(v.ID))
		}
	}
	slices.Sort(left)
	r := p.Result()
	return fmt.Sprintf("%v left, %d failed, %v", left, r.Migrations.Failed, p.end)
}

// With higher limits idle VMs leave at least as fast, but for what it costs to
// share a link and to choose other targets: links differ by a factor of ten, so
// only fleets with equal ones are compared.
func TestHigherLimitsAreNotMuchSlower(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &simtest.Builder{Chooser: simtest.Drawn(t)}
		s := simtest.Of(simtest.Roomy(simtest.Small), simtest.Drain()).Make(m.Chooser) // all idle
		for i := range s.Hosts {
			s.Hosts[i].Link = "1Gbit/s"
		}
		took := func(limit int) float64 {
			s.Limits.PerCluster, s.Limits.PerSource = &limit, &limit
			return play(t, s, sim.Seeded(1)).Result().VirtualSeconds
		}
		low := m.Between("limit", 1, 4)
		if few, many := took(low), took(low+m.Between("more", 1, 4)); many > few*1.1+1 {
			t.Fatalf("%vs with fewer, %vs with more\n%s", few, many, s)
		}
	})
}
