package controller_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

func TestAVMLeavesItsHostOnlyWhileTheProofStands(t *testing.T) {
	// What happens between the proof's writing and the VM's.
	between := map[string]func(*harness){
		"the host returns": func(s *harness) {
			s.changeHost("n1", func(h *store.Host) { h.Fenced, h.Fencing = false, nil })
			s.fencer.answers["n1"] = failoverAnswer{} // nothing is proved again
		},
		"the host sends a heartbeat": func(s *harness) { s.beats["n1"] = "boot1"; s.beat() },
		"a migration claims it": func(s *harness) {
			s.changeVM("a", func(v *store.VM) { v.ActiveMigration = "x" })
		},
		"the target falls": func(s *harness) {
			for _, h := range []hostName{"n2", "n3"} {
				s.changeHost(h, func(h *store.Host) { h.Cordoned = true })
			}
		},
	}
	for name, happens := range between {
		t.Run(name, func(t *testing.T) {
			s := newHarness(t, controller.FailoverConfig{}, "n1", "n2", "n3")
			line := &attended{Store: s.store, wrote: func() { happens(s) }}
			s.line = line
			s.restart()
			s.addVM("a", "n1", gib)
			s.fencer.works("n1")
			s.run(time.Minute)
			s.silence("n1")
			s.run(2 * time.Minute)
			if line.wrote != nil {
				t.Fatal("no proof was written")
			}
			s.wantOn("a", "n1")
		})
	}
}

// attended is a store at which something happens once, right after a proof was written.
type attended struct {
	store.Store
	wrote func()
}

func (s *attended) Put(ctx context.Context, r store.Record, while ...store.Record) (
	store.Record, error) {
	stored, err := s.Store.Put(ctx, r, while...)
	if happens := s.wrote; err == nil && happens != nil && r.Key().Kind == store.RebuildKind {
		s.wrote = nil
		happens()
	}
	return stored, err
}

// noLeaseChanges is a store that does not tell of what an owner's lease has become.
type noLeaseChanges struct {
	store.Store
	to string
}

func (d *noLeaseChanges) Changes(ctx context.Context, f store.Feed, since store.Revision) (
	store.Changes, error) {
	c, err := d.Store.Changes(ctx, f, since)
	c.Records = slices.DeleteFunc(c.Records, func(r store.Record) bool {
		return r.Key().Name == d.to
	})
	return c, err
}

func TestAStaleViewOfAHostThatSendsHeartbeatsFencesNoHost(t *testing.T) {
	s := newHarness(t, controller.FailoverConfig{}, "n1", "n2", "n3")
	line := &noLeaseChanges{Store: s.store}
	s.line = line
	s.restart()
	s.addVM("a", "n1", gib)
	s.fencer.works("n1")
	s.run(time.Minute)
	line.to = store.HostLease("n1")
	s.run(5 * time.Minute)
	if s.host("n1").NotReady {
		t.Error("n1 beats and is called lost")
	}
	s.changeHost("n1", func(h *store.Host) { h.NotReady = true }) // by mistake
	s.run(5 * time.Minute)
	if s.host("n1").Fencing != nil || len(s.fencer.asked) > 0 {
		t.Errorf("n1 beats and is cut: %q", s.fencer.asked)
	}
}

func TestASignDuringTheCutIsNoProofOfDeath(t *testing.T) {
	s := newHarness(t, controller.FailoverConfig{}, "n1", "n2", "n3")
	s.addVM("a", "n1", gib)
	s.fencer.works("n1")
	s.fencer.during = func() { s.beats["n1"] = "boot1"; s.beat() }
	s.run(time.Minute)
	s.silence("n1")
	s.run(2 * time.Minute)
	s.wantSaid("n1  is to be fenced", 1)
	s.wantSaid("is fenced", 0)
	s.wantSaid("n1  is heard again", 1)
	s.wantOn("a", "n1")
}

func TestASignFromBeforeTheFencingSpeaksNotAgainstIt(t *testing.T) {
	s := newHarness(t, controller.FailoverConfig{}, "n1", "n2", "n3")
	s.addVM("a", "n1", gib)
	s.run(time.Minute)
	s.beat()
	s.silence("n1")
	s.changeHost("n1", func(h *store.Host) { // by another failover controller, which has seen that sign
		h.NotReady, h.Fenced = true, true
		h.Fencing = &store.Fencing{Boot: "boot1", By: "fence_other"}
	})
	s.run(time.Minute)
	s.wantSaid("LIVES", 0)
	s.wantSaid("a is rebuilt", 1)
}

func TestAClockThatIsSetBackHidesNoSilence(t *testing.T) {
	s := newHarness(t, controller.FailoverConfig{}, "n1", "n2", "n3")
	s.run(time.Minute)
	s.silence("n1")
	s.now = s.now.Add(-time.Hour)
	s.run(40 * time.Second)
	s.wantSaid("n1  is lost", 1)
}

func TestACrashAfterAnyWriteLosesNothing(t *testing.T) {
	for writes := range 12 {
		s := newHarness(t, controller.FailoverConfig{}, "n1", "n2", "n3")
		line := &sim.FlakyStore{Real: s.store}
		s.line = line
		s.restart()
		s.addVM("a", "n1", gib)
		s.addVM("b", "n1", gib)
		s.fencer.works("n1")
		s.run(time.Minute)
		s.silence("n1")
		line.Dies, line.After = true, writes
		for range 40 {
			s.beat()
			_, err := s.failover.Reconcile(ctx, s.now)
			if s.now = s.now.Add(5 * time.Second); err != nil {
				break
			}
		}
		s.line = s.store
		s.restart()
		s.run(3 * time.Minute)
		for _, vm := range []string{"a", "b"} {
			if r := s.rebuild(vm, "n1"); s.vm(vm).Host == "n1" || r == nil ||
				r.Target != s.vm(vm).Host {
				t.Errorf("crash after %d writes: %s is on %s, rebuilt as %+v", writes, vm,
					s.vm(vm).Host, r)
			}
		}
	}
}

func TestTheRecordOfARebuildThatDidNotHappenIsRemoved(t *testing.T) {
	s := newHarness(t, controller.FailoverConfig{}, "n1", "n2", "n3")
	s.addVM("a", "n1", gib)
	s.addVM("moved", "n2", gib)
	for _, r := range []store.Rebuild{{VM: "a", Source: "n1"}, {VM: "gone", Source: "n1"},
		{VM: "moved", Source: "n1"}, {VM: "moved", Source: "n3", Cleaned: true}} {
		s.put(&r)
	}
	s.run(10 * time.Second)
	for name, want := range map[string]bool{"a": false, "gone": false, "moved": true} {
		if got := s.rebuild(name, "n1") != nil; got != want {
			t.Errorf("the rebuild of %s is there: %v, want %v", name, got, want)
		}
	}
	if s.rebuild("moved", "n3") != nil {
		t.Error("n3 has cleaned up, and the record is there")
	}
}

// An operator gives their word, and then the host gives one sign, before the controller looks, and
// falls silent: the confirmation is older than the heartbeat, and does not count. Nor does a heartbeat count that
// is older than the word.
func TestAWordDoesNotOutliveASignThatIsYounger(t *testing.T) {
	word := func(s *harness) { s.changeHost("n1", func(h *store.Host) { h.ConfirmedDownBy = "alice" }) }
	sign := func(s *harness) { s.beats["n1"] = "boot2"; s.beat(); s.silence("n1") }
	for _, r := range []struct {
		name  string
		known bool // a heartbeat of n1 was seen before
		first func(*harness)
		then  func(*harness)
		leave bool
	}{
		{"of a host that was heard before", true, word, sign, false},
		{"of a host that was never heard", false, word, sign, false},
		{"which came before", true, sign, word, true},
		{"which came before, and is the first", false, sign, word, true},
	} {
		t.Run(r.name, func(t *testing.T) {
			s := newHarness(t, controller.FailoverConfig{}, "n1", "n2")
			s.addVM("a", "n1", gib)
			if s.silence("n1"); r.known {
				s.beats["n1"] = "boot1"
				s.run(time.Minute)
				s.silence("n1")
			}
			r.first(s)
			r.then(s)
			s.run(3 * time.Minute)
			if on := s.vm("a").Host; (on == "n2") != r.leave {
				t.Errorf("the VM is on %s; %q", on, s.notes)
			}
		})
	}
}
