package agent_test

import (
	"slices"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

func TestKeepingAVMRunning(t *testing.T) {
	kill := func(s *harness) { s.ok(s.KillDomain("n1", vm)) }
	with := func(how func(*store.VM)) func(*harness) {
		return func(s *harness) {
			kill(s)
			s.changeVM(how)
		}
	}
	for _, r := range []struct {
		name  string
		set   func(*harness)
		want  hypervisor.DomainState
		boots int
	}{
		{"a VM that runs is left alone", func(*harness) {}, hypervisor.Running, 0},
		{"a VM that crashed starts anew", kill, hypervisor.Starting, 1},
		{"a VM that is claimed is left alone", with(func(v *store.VM) { v.ActiveMigration = job }),
			hypervisor.Crashed, 0},
		{"a VM that is at home elsewhere is left alone", with(func(v *store.VM) { v.Host = "n2" }),
			hypervisor.Crashed, 0},
		{"a VM whose record is gone is left alone", func(s *harness) {
			s.reconciles("n1")
			kill(s)
			s.ok(s.store.Delete(ctx, s.vm()))
		}, hypervisor.Crashed, 0},
		{"a VM that has ended is left alone",
			with(func(v *store.VM) { v.Ended, v.Stopped = true, true }), hypervisor.Crashed, 0},
		{"a VM that has ended and shall run again starts",
			with(func(v *store.VM) { v.Ended = true }), hypervisor.Starting, 1},
		{"a VM that crashed while it was to be stopped stays down",
			with(func(v *store.VM) { v.Stopped, v.Operation = true, store.Stopping }),
			hypervisor.Crashed, 0},
		{"a VM that shall not run stays down", with(func(v *store.VM) { v.Stopped = true }),
			hypervisor.Crashed, 0},
		{"a VM that shall not run is shut down",
			func(s *harness) { s.changeVM(func(v *store.VM) { v.Stopped = true }) },
			hypervisor.Stopping, 0},
		{"a VM that is to leave its host by a restart is shut down", func(s *harness) {
			s.changeVM(func(v *store.VM) { v.Evicted = &store.Eviction{Restart: true} })
		}, hypervisor.Stopping, 0},
		{"a VM that is to start elsewhere does not start here", with(func(v *store.VM) {
			v.Ended, v.Evicted = true, &store.Eviction{Restart: true, Target: "n2"}
		}), hypervisor.Crashed, 0},
	} {
		t.Run(r.name, func(t *testing.T) {
			s := newHarness(t, store.NewMemory())
			r.set(s)
			s.reconciles("n1")
			s.wantState("n1", r.want)
			if v := s.vm(); v != nil && v.Boots != r.boots {
				t.Errorf("it was started %d times, want %d", v.Boots, r.boots)
			}
		})
	}
}

func TestAVMThatWasShutDownHasEnded(t *testing.T) {
	s := newHarness(t, store.NewMemory())
	s.changeVM(func(v *store.VM) { v.Stopped = true })
	s.pass(3 * time.Second)
	s.wantState("n1", hypervisor.Shutoff)
	if !s.vm().Ended {
		t.Error("it is not said that it has ended")
	}
}

// The VM is claimed, or has moved, between the agent's look and its start: the
// announcement loses the race, and nothing starts.
func TestAVMStartsOnlyAfterTheStartWasAnnounced(t *testing.T) {
	for _, r := range []struct {
		name string
		how  func(*store.VM)
	}{
		{"it is claimed meanwhile", func(v *store.VM) { v.ActiveMigration = job }},
		{"it has moved meanwhile", func(v *store.VM) { v.Host = "n2" }},
	} {
		t.Run(r.name, func(t *testing.T) {
			store := &racing{Memory: store.NewMemory()}
			s := newHarness(t, store)
			s.ok(s.KillDomain("n1", vm))
			store.first = func() { s.changeVM(r.how) }
			s.reconciles("n1")
			s.AdvanceTo(s.Now().Add(time.Minute))
			s.reconciles("n1")
			s.wantState("n1", hypervisor.Crashed)
		})
	}
}

// A VM and a migration of the same name are two things: that one is gone says
// nothing about the other.
func TestTheEndOfAMigrationIsNotTheEndOfAVMOfThatName(t *testing.T) {
	records := store.NewMemory()
	s := newHarness(t, records)
	m, err := records.Put(ctx, &store.Migration{Spec: migration.Spec{ID: migration.ID(vm), VM: vm},
		State: migration.State{Phase: migration.Failed, Source: "n1", Target: "n2"}})
	s.ok(err)
	s.reconciles("n1")
	s.ok(records.Delete(ctx, m))
	s.reconciles("n1")
	s.ok(s.KillDomain("n1", vm))
	s.reconciles("n1")
	s.wantState("n1", hypervisor.Starting)
}

func TestAnAgentSaysWhatItDoes(t *testing.T) {
	s := newHarness(t, store.NewMemory())
	s.ok(s.KillDomain("n1", vm))
	s.reconciles("n1")
	if !slices.Contains(s.noted, "starts anew") {
		t.Errorf("it said %q", s.noted)
	}
}
