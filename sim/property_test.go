package sim_test

import (
	"context"
	"flag"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/sim/simtest"
	"github.com/godwit-vm/godwit/store"
)

// What fails is printed whole, and reproduced by its seed: a file of rapid's would
// lie among the transcripts.
func init() { _ = flag.Set("rapid.nofailfile", "true") }

// checkWorlds draws worlds and lets a property judge how each was played. All of the world's
// choices are drawn, too: what fails shrinks to little.
func checkWorlds(t *testing.T, g simtest.Generator, judge func(*rapid.T, *played)) {
	rapid.Check(t, func(t *rapid.T) {
		chance := simtest.Drawn(t)
		s := g.Make(chance)
		p := play(t, s, chance)
		if wrong := p.wrong(); wrong != "" {
			t.Fatalf("%s\n%s", wrong, s)
		}
		if judge != nil {
			judge(t, p)
		}
		if t.Failed() {
			t.Logf("%s", s)
		}
	})
}

// The central property: whatever breaks, no invariant is violated, and once it
// has ended to break every migration ends, or is said to be unknown.
func TestWhateverBreaksNoInvariantIsViolated(t *testing.T) {
	checkWorlds(t, simtest.Turmoil(), nil)
}

// It does so while disks are copied, too.
func TestWhateverBreaksDisksMoveWithTheirVMs(t *testing.T) {
	checkWorlds(t, simtest.Turmoil().And(scratch), nil)
}

// Hosts die, are fenced, return, and lose each other.
func TestHostsMayDieReturnAndLoseEachOther(t *testing.T) {
	checkWorlds(t, simtest.Of(simtest.Roomy(simtest.Small), simtest.AnyLoad(), simtest.Means(),
		simtest.Drain(), simtest.Swarm(simtest.HostFaults(), 1, 6)), nil)
}

// Processes die after any of their writes, again and again, and look at stale stores.
func TestProcessesMayDieAfterAnyOfTheirWrites(t *testing.T) {
	checkWorlds(t, simtest.Of(simtest.AnyFleet(simtest.Small), simtest.AnyLoad(), simtest.Limits(),
		simtest.Means(), simtest.Drain(), simtest.Swarm(simtest.ProcessFaults(), 2, 10)), nil)
}

// restless is about owners, who start, stop, reboot and resize few VMs all the time while
// they are moved and processes die.
func restless() simtest.Generator {
	few := simtest.Part{Name: "few VMs", Add: func(m *simtest.Builder) {
		m.World.VMs = m.World.VMs[:min(len(m.World.VMs), 3)]
	}}
	wishes := simtest.Part{Name: "owners who want things", Add: func(m *simtest.Builder) {
		all := simtest.Wishes()
		for range m.Between("wishes", 2, 10) {
			m.Event(m.Moment(), all[m.Choose("wish", len(all))](m))
		}
	}}
	return simtest.Of(simtest.AnyFleet(simtest.Small), few, simtest.AnyLoad(), simtest.Limits(),
		simtest.Means(), simtest.Drain(), wishes, simtest.Swarm(simtest.Faults(), 0, 3))
}

func TestOwnersMayChangeTheirVMsWhileTheyMove(t *testing.T) { checkWorlds(t, restless(), nil) }

// The links of a VM are cut or reset in the middle of a long switch-over, or of a post-copy.
func TestLinksMayBreakInTheSwitchOver(t *testing.T) {
	severed := simtest.Part{Name: "whose links break", Add: func(m *simtest.Builder) {
		home := m.World.VMs[0].Host
		m.Event("0s", "drain "+home)
		for _, h := range m.World.HostNames() {
			if ends := home + " " + h; h != home {
				m.Event(m.Moment(), m.OneOf("how", "reset "+ends, "cut "+ends+" "+m.Lasting()))
			}
		}
	}}
	checkWorlds(t, simtest.Of(simtest.Roomy(simtest.Small), simtest.Endless(), simtest.Means(),
		severed, simtest.Swarm(simtest.Orders(), 0, 3)), nil)
}

// KubeVirt's rules lose some of godwit's promises, but not these.
func TestCompatibleModeKeepsSafety(t *testing.T) {
	safety := []string{"runs-once", "never-lost", "never-older", "keeps-memory", "limits",
		"one-move"}
	strict := simtest.Turmoil().And(simtest.Part{Name: "by KubeVirt's rules",
		Add: func(m *simtest.Builder) { m.World.Compatible = true }})
	rapid.Check(t, func(t *rapid.T) {
		chance := simtest.Drawn(t)
		s := strict.Make(chance)
		for _, v := range play(t, s, chance).Violations() {
			if slices.Contains(safety, v.Invariant) {
				t.Fatalf("%s: %s\n%s", v.Invariant, v.Detail, s)
			}
		}
	})
}

func TestResultsAddUp(t *testing.T) {
	checkWorlds(t, simtest.Turmoil(), func(t *rapid.T, p *played) {
		r, unfinished := p.Result(), 0
		for _, v := range p.scenario.Fleet.VMs {
			for _, m := range p.Migrations(v.ID) {
				if !m.State.Phase.Final() {
					unfinished++
				}
			}
		}
		m := r.Migrations
		if sum := m.Succeeded + m.Failed + m.Aborted + unfinished; sum != m.Total {
			t.Errorf("%+v and %d unfinished", m, unfinished)
		}
		if done, total := p.Done(); done != m.Total-unfinished || total != m.Total {
			t.Errorf("done %d of %d, of %+v", done, total, m)
		}
		if d := r.Downtime; d.P50 > d.P99 || d.P99 > d.Max || d.P50 < 0 {
			t.Errorf("downtime %+v", d)
		}
		for _, e := range r.Evacuations {
			if e.EmptySeconds != nil && (*e.EmptySeconds < e.StartSeconds || len(e.Left) > 0) {
				t.Errorf("evacuation %+v", e)
			}
		}
	})
}

// Counted independently of the simulator's statistics: from the records, whenever
// anything is recorded.
func TestLimitsHoldWhateverBreaks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chance := simtest.Drawn(t)
		s := simtest.Turmoil().Make(chance)
		var over string
		play(t, s, chance, func(p *played, _ sim.Entry) { over = max(over, p.overLimits()) })
		if over != "" {
			t.Fatalf("%s\n%s", over, s)
		}
	})
}

// overLimits returns which limit is exceeded now; "" is none.
func (p *played) overLimits() string {
	limits := p.scenario.Controller.Limits()
	running, from, to := 0, map[string]int{}, map[string]int{}
	for _, v := range p.scenario.Fleet.VMs {
		for _, m := range p.Migrations(v.ID) {
			s := &m.State
			if s.Phase.Final() || s.Target == "" {
				continue
			}
			running++
			from[string(s.Source)]++
			to[string(s.Target)]++
			switch {
			case running > limits.PerCluster:
				return "too many in the cluster"
			case from[string(s.Source)] > limits.PerSource:
				return "too many from " + string(s.Source)
			case to[string(s.Target)] > limits.PerTarget:
				return "too many to " + string(s.Target)
			}
		}
	}
	return ""
}

// After everything has come to rest a restart of all participants changes nothing: what
// participants know is in the store. Only which room a VM lacks may be said anew, and whether
// it lacks any for the size that it is to have at its next start: others have come or gone
// since the last look.
func TestRestartsAtRestChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chance := simtest.Drawn(t)
		s := simtest.Turmoil().Make(chance)
		p := play(t, s, chance)
		if p.end != sim.AtRest {
			t.SkipNow() // what is futile never rests
		}
		p.restart(t, s)
	})
}

// restart restarts all daemons of a world at rest, in which nothing may change.
func (p *played) restart(t fataler, world fmt.Stringer) {
	before := p.stored(t)
	p.At(p.Now(), sim.CrashController{})
	for _, h := range p.scenario.Hosts() {
		p.At(p.Now(), sim.CrashAgent{Host: h})
	}
	end := p.Run(p.Now() + forever)
	if wrong := p.wrong(); end != sim.AtRest || wrong != "" {
		t.Fatalf("%v %s\n%s", end, wrong, world)
	}
	if changes := p.writtenSince(t, before); len(changes) > 0 {
		t.Fatalf("written again: %v\n%s", changes, world)
	}
}

// A host has failed a migration, and the outcome of another, which would show whether it works again, is never known.
// The others wait for that one until the failure is forgotten, and not until the controller is restarted.
func TestWhatWaitsForAMigrationWithoutAnEndIsTriedAgain(t *testing.T) {
	waited := 0
	for seed := range uint64(20) {
		p := playText(t, seed, `
hosts:
- {name: n1, memory: 64GiB, cpus: 64, link: 1Gbit/s}
- {name: "n[2-3]", memory: 16GiB, cpus: 64, link: 10Gbit/s}
vms:
- {name: v1, host: n2, memory: 2GiB, class: busy}
- {name: v2, host: n2, memory: 2GiB, class: idle}
- {name: v3, host: n2, memory: 2GiB, class: busy}
- {name: v4, host: n2, memory: 6GiB, class: web}
- {name: v5, host: n3, memory: 6GiB, class: idle}
config: {allowPostCopy: true, allowWorkloadDisruption: true, completionTimeoutPerGiB: 5s, maxDowntimeMs: 30000}
limits: {perCluster: 5, perSource: 2, perTarget: 2}
mode: QueueAll
events:
- 0s drain n2
- when v1=Running crash n2
- 1s cordon n3
`)
		if p.end == sim.AtRest {
			p.restart(t, &p.trace)
		}
		if strings.Contains(p.trace.String(), "outcome unknown") && strings.Contains(p.trace.String(), "overdue") {
			waited++
		}
	}
	if waited == 0 {
		t.Error("in no world does a VM wait so")
	}
}

// stored returns everything in the store.
func (p *played) stored(t fataler) map[store.Key]store.Record {
	c, err := p.Store().Changes(context.Background(), store.Everything, 0)
	if err != nil {
		t.Fatalf("%v", err)
	}
	all := map[store.Key]store.Record{}
	for _, r := range c.Records {
		all[r.Key()] = r
	}
	return all
}

// writtenSince names what is not stored as it was before.
func (p *played) writtenSince(t fataler, before map[store.Key]store.Record) (keys []string) {
	now := p.stored(t)
	for key, r := range now {
		if old := before[key]; old == nil || old.RecordVersion() != r.RecordVersion() && !reworded(old, r) {
			keys = append(keys, key.Name)
		}
	}
	for key := range before {
		if now[key] == nil {
			keys = append(keys, key.Name)
		}
	}
	return keys
}

// reworded reports whether two versions of a VM differ in the words of its trouble alone; one
// that waits for another size may have none.
func reworded(before, after store.Record) bool {
	a, is := before.(*store.VM)
	b, both := after.(*store.VM)
	if !is || !both || !a.Resized() && (a.Trouble == "" || b.Trouble == "") {
		return false
	}
	same := *a
	same.Trouble, same.Version = b.Trouble, b.Version
	return reflect.DeepEqual(&same, b)
}

// Changes of an operator's mind leave nothing half done: every VM runs where its
// record says, no migration has it, and no VM waits without a drain.
func TestUndrainLeavesNothingHalfDone(t *testing.T) {
	g := simtest.Of(simtest.Roomy(simtest.Small), simtest.Converging(), simtest.Limits(),
		simtest.SecondThoughts())
	checkWorlds(t, g, func(t *rapid.T, p *played) {
		for _, v := range p.scenario.Fleet.VMs {
			r, copies := p.VM(v.ID), p.Network().Copies(v.ID)
			if r.ActiveMigration != "" || len(copies) != 1 || copies[0].Host != r.Host {
				t.Errorf("%s at %s claimed by %q: %v", v.ID, r.Host, r.ActiveMigration, copies)
			}
			for _, m := range p.Migrations(v.ID) {
				// The host that was chosen may be the next to be drained.
				if s := &m.State; !s.Phase.Final() ||
					s.Phase == migration.Failed && !migration.Withdrawn(s.Because) &&
						s.Because != "other-in-progress" && s.Because != "target-outdated" {
					t.Errorf("%s: %s %s", m.Spec.ID, s.Phase, s.Because)
				}
			}
		}
	})
}
