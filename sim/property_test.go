package sim_test

import (
	"flag"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/record"
	"github.com/godwit-vm/godwit/sim"
)

// What fails is printed whole, and reproduced by its seed: a file of rapid's would
// lie among the transcripts.
func init() { _ = flag.Set("rapid.nofailfile", "true") }

// checkStories draws stories and lets a property judge how each was played. All
// of the world's choices are drawn, too: what fails shrinks to little.
func checkStories(t *testing.T, tell func(maker) *story, judge func(*rapid.T, *played)) {
	rapid.Check(t, func(t *rapid.T) {
		s := tell(maker{drawn{t}})
		p := play(t, s, drawn{t})
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
	checkStories(t, maker.turmoil, nil)
}

// upheaval is about hosts: they die, are fenced, return, and lose each other.
func (m maker) upheaval() *story {
	s := m.spacious(slices.Concat(calm, wild))
	m.means(s)
	s.events = append(s.events, "0s drain "+m.host(s))
	m.swarm(s, hostFaults, 1, 6)
	return s
}

func TestHostsMayDieReturnAndLoseEachOther(t *testing.T) {
	checkStories(t, maker.upheaval, nil)
}

// amnesia is about processes: they die after any of their writes, again and
// again, and look at stale stores.
func (m maker) amnesia() *story {
	s := m.anyFleet()
	m.rules(s)
	m.means(s)
	s.events = append(s.events, "0s drain "+m.host(s))
	m.swarm(s, storeFaults, 2, 10)
	return s
}

func TestProcessesMayDieAfterAnyOfTheirWrites(t *testing.T) {
	checkStories(t, maker.amnesia, nil)
}

// restless is about owners, who start, stop, reboot and resize few VMs all the time while
// they are moved and processes die.
func (m maker) restless() *story {
	s := m.anyFleet()
	s.vms = s.vms[:min(len(s.vms), 3)]
	m.rules(s)
	m.means(s)
	s.events = append(s.events, "0s drain "+m.host(s))
	for range m.between("orders", 2, 10) {
		s.events = append(s.events, m.moment(s)+" "+lives[m.Choose("order", len(lives))](m, s))
	}
	m.swarm(s, faults, 0, 3)
	return s
}

func TestOwnersMayChangeTheirVMsWhileTheyMove(t *testing.T) {
	checkStories(t, maker.restless, nil)
}

// severed cuts or resets the links of a VM in the middle of a long switch-over,
// or of a post-copy.
func (m maker) severed() *story {
	s := m.spacious(wild)
	m.means(s)
	s.events = append(s.events, "0s drain "+s.vms[0].host)
	for _, h := range s.hosts {
		if h.name != s.vms[0].host {
			ends := s.vms[0].host + " " + h.name
			s.events = append(s.events, m.moment(s)+m.oneOf("how", " reset "+ends,
				" cut "+ends+" "+m.lasting()))
		}
	}
	m.swarm(s, orders, 0, 3)
	return s
}

func TestLinksMayBreakInTheSwitchOver(t *testing.T) {
	checkStories(t, maker.severed, nil)
}

// strict plays by KubeVirt's rules, which lose some of godwit's promises, but
// not these.
func (m maker) strict() *story {
	s := m.turmoil()
	s.fields = append(s.fields, "compatible: true")
	return s
}

func TestCompatibleModeKeepsSafety(t *testing.T) {
	safety := []string{"runs-once", "never-lost", "keeps-memory", "limits", "one-move"}
	rapid.Check(t, func(t *rapid.T) {
		s := maker{drawn{t}}.strict()
		for _, v := range play(t, s, drawn{t}).Violations() {
			if slices.Contains(safety, v.Invariant) {
				t.Fatalf("%s: %s\n%s", v.Invariant, v.Detail, s)
			}
		}
	})
}

func TestResultsAddUp(t *testing.T) {
	checkStories(t, maker.turmoil, func(t *rapid.T, p *played) {
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

// Counted independently of the simulator's books: from the records, whenever
// anybody says anything.
func TestLimitsHoldWhateverBreaks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := maker{drawn{t}}.turmoil()
		var over string
		play(t, s, drawn{t}, func(p *played, _ sim.Entry) { over = max(over, p.overLimits()) })
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

// After everything has come to rest a restart of everybody changes nothing: what
// participants know is in the store. Only how much room a refused resize lacks may be said
// anew, since others have come or gone.
func TestRestartsAtRestChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := maker{drawn{t}}.turmoil()
		p := play(t, s, drawn{t})
		if p.end != sim.AtRest {
			t.SkipNow() // what is futile never rests
		}
		before := p.stored(t)
		p.At(p.Now(), sim.CrashController{})
		for _, h := range p.scenario.Hosts() {
			p.At(p.Now(), sim.CrashAgent{Host: h})
		}
		end := p.Run(p.Now() + forever)
		if wrong := p.wrong(); end != sim.AtRest || wrong != "" {
			t.Fatalf("%v %s\n%s", end, wrong, s)
		}
		if changes := p.writtenSince(t, before); len(changes) > 0 {
			t.Fatalf("written again: %v\n%s", changes, s)
		}
	})
}

// stored returns everything in the store.
func (p *played) stored(t *rapid.T) map[record.Key]record.Record {
	c, err := p.Store().Changes(t.Context(), record.Everything, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := map[record.Key]record.Record{}
	for _, r := range c.Records {
		all[r.Key()] = r
	}
	return all
}

// writtenSince names what is not stored as it was before.
func (p *played) writtenSince(t *rapid.T, before map[record.Key]record.Record) (keys []string) {
	now := p.stored(t)
	for key, r := range now {
		if old := before[key]; old == nil || old.At() != r.At() && !reworded(old, r) {
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

// reworded reports whether two versions of a VM differ in the words of its trouble alone.
func reworded(before, after record.Record) bool {
	a, is := before.(*record.VM)
	b, both := after.(*record.VM)
	if !is || !both || a.Trouble == "" || b.Trouble == "" {
		return false
	}
	same := *a
	same.Trouble, same.Version = b.Trouble, b.Version
	return reflect.DeepEqual(&same, b)
}

// Somebody's changes of mind leave nothing half done: every VM runs where its
// record says, nobody has it, and nobody waits without a drain.
func TestUndrainLeavesNothingHalfDone(t *testing.T) {
	checkStories(t, maker.secondThoughts, func(t *rapid.T, p *played) {
		for _, v := range p.scenario.Fleet.VMs {
			r, copies := p.VM(v.ID), p.Fabric().Copies(v.ID)
			if r.Claim != "" || len(copies) != 1 || copies[0].Host != r.Host {
				t.Errorf("%s at %s claimed by %q: %v", v.ID, r.Host, r.Claim, copies)
			}
			for _, m := range p.Migrations(v.ID) {
				if s := &m.State; !s.Phase.Final() ||
					s.Phase == migration.Failed && s.Because != "canceled" {
					t.Errorf("%s: %s %s", m.Spec.ID, s.Phase, s.Because)
				}
			}
		}
	})
}

// secondThoughts drains hosts and takes all of it back.
func (m maker) secondThoughts() *story {
	s := m.spacious(calm)
	m.rules(s)
	for _, host := range s.hostNames()[:m.between("drains", 1, 2)] {
		s.events = append(s.events, "0s drain "+host, m.time()+" undrain "+host)
	}
	return s
}
