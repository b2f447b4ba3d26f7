package agent_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// gauging is a harness whose agents measure every hour, with so many VMs more on n1.
func gauging(t *testing.T, more int, able hypervisor.Abilities) *harness {
	s := harnessWithAbilities(t, store.NewMemory(), able)
	for _, n := range []name{"n1", "n2"} {
		s.agents[n] = agent.New(n, agent.Config{MeasureEvery: time.Hour}, s.Host(n), s.as(n, s.store), s)
	}
	s.ok(s.Host("n1").SetWorkload(vm, fake.Workload{Rate: 30e6, Hot: gib}))
	for i := range more {
		v := hypervisor.VM{ID: hypervisor.VMID(fmt.Sprintf("b%d", i)), Memory: gib, CPUs: 1}
		s.ok(s.Host("n1").Boot(v, fake.Workload{Rate: 1e6, Hot: gib}))
		s.put(&store.VM{VM: v, Host: "n1", Migratable: true})
	}
	return s
}

// run lets the agents look whenever they want to.
func (s *harness) run(span time.Duration) {
	s.t.Helper()
	for end := s.Now().Add(span); s.Now().Before(end); {
		wake := end
		for _, n := range []name{"n1", "n2"} {
			at, err := s.agents[n].Reconcile(ctx, s.Now())
			s.ok(err)
			if !at.IsZero() && at.Before(wake) {
				wake = at
			}
		}
		s.AdvanceTo(max2(wake, s.Now().Add(ms)))
	}
}

func max2(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// The judge is the workload: a guest that writes 30 MB/s is measured to do so, once an hour.
func TestAgentsMeasureHowFastGuestsWrite(t *testing.T) {
	s := gauging(t, 0, hypervisor.CanMeasureDirtyRate)
	s.run(10 * time.Second)
	first := s.vm().Dirtied
	if first == nil || first.Rate < 29e6 || first.Rate > 31e6 || first.At.Sub(epoch) > 10*time.Second {
		t.Fatalf("%+v", first)
	}
	s.ok(s.Host("n1").SetWorkload(vm, fake.Workload{Rate: 60e6, Hot: gib}))
	s.run(50 * time.Minute)
	if got := s.vm().Dirtied; got != first && !got.At.Equal(first.At) {
		t.Errorf("measured again before its hour: %+v", got)
	}
	s.run(11 * time.Minute)
	got := s.vm().Dirtied
	if got.Rate < 57e6 || got.Rate > 61e6 || len(got.Hours) != 2 || got.Hours[1].Hour != 1 || got.At.Sub(first.At) < time.Hour {
		t.Errorf("%+v", got)
	}
	if s.vm().Trouble != "" || len(s.noted) > 0 {
		t.Errorf("%q, %q", s.vm().Trouble, s.noted)
	}
}

// One guest at a time: no two measurements end within the time that one takes, and all are made.
func TestOneGuestIsMeasuredAtATime(t *testing.T) {
	s := gauging(t, 20, hypervisor.CanMeasureDirtyRate)
	s.run(2 * time.Minute)
	seen := map[time.Time]bool{s.vm().Dirtied.Last(): true}
	for i := range 20 {
		r, err := s.store.Get(ctx, store.Key{Kind: store.VMKind, Name: fmt.Sprintf("b%d", i)})
		s.ok(err)
		at := r.(*store.VM).Dirtied.Last()
		if at.IsZero() {
			t.Fatalf("b%d was not measured", i)
		}
		for other := range seen {
			if (at.Sub(other)).Abs() < time.Second {
				t.Errorf("b%d is measured at %v, another one at %v", i, at, other)
			}
		}
		seen[at] = true
	}
}

// A host that cannot measure, and a VM that migrates, are left alone.
func TestWhatIsNotMeasured(t *testing.T) {
	s := gauging(t, 0, hypervisor.CanResize)
	s.run(2 * time.Hour)
	if s.vm().Dirtied != nil || s.vm().Trouble != "" {
		t.Errorf("%+v", s.vm())
	}
	s = gauging(t, 0, hypervisor.CanMeasureDirtyRate)
	s.begin(migration.Scheduling)
	s.changeVM(func(v *store.VM) { v.ActiveMigration = migration.ID(job) })
	s.run(10 * time.Minute)
	if s.vm().Dirtied != nil {
		t.Errorf("%+v", s.vm().Dirtied)
	}
}
