package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// boot lets a VM run on n1 without a record of it.
func (s *harness) boot(v hypervisor.VM) error { return s.Host("n1").Boot(v, fake.Workload{}) }

// A counting store counts the writings.
type counting struct {
	*store.Memory
	writes int
}

// Put implements store.Store.
func (c *counting) Put(ctx context.Context, r store.Record, while ...store.Record) (
	store.Record, error) {
	c.writes++
	return c.Memory.Put(ctx, r, while...)
}

// The agent is dead for an hour, and its VMs run on. Meanwhile one of them has come here and
// its migration has ended, one has left, and one has crashed. When the agent returns, one
// Reconcile puts everything right: nothing is touched that runs, and nothing is left to do.
func TestAnAgentAdoptsWhatRunsInOneReconcile(t *testing.T) {
	records := &counting{Memory: store.NewMemory()}
	s := newHarness(t, records)
	for i := range 20 {
		v := hypervisor.VM{ID: hypervisor.VMID(fmt.Sprintf("vm-%02d", i)), Memory: gib, CPUs: 1}
		s.ok(s.boot(v))
		s.put(&store.VM{VM: v, Host: "n1", Size: store.SizeOf(v)})
	}
	s.sending() // the VM a leaves n1, and its agent dies when it has sent
	s.until("n2", hypervisor.Running)
	s.reconciles("n2")
	s.change(func(m *store.Migration) {
		m.State.Phase, m.State.Released, m.Source.HandedOver = migration.Succeeded, true, true
	})
	s.changeVM(func(v *store.VM) { v.Host, v.ActiveMigration = "n2", "" })
	comes := s.comes(hypervisor.VM{ID: "comer", Memory: gib, CPUs: 1})
	s.ok(s.KillDomain("n1", "vm-07"))
	s.AdvanceTo(s.Now().Add(time.Hour))

	e := &eyewitness{machine: s.Host("n1"), s: s}
	s.agents["n1"] = agent.New("n1", agent.Config{}, e, s.as("n1", s.store), s)
	_, err := s.agents["n1"].Reconcile(ctx, s.Now())
	s.ok(err)
	e.wants("other", "start") // the one that left is released, the crashed one starts
	s.wantState("n1", hypervisor.Absent)
	if !s.move().Source.Released {
		t.Errorf("the source says %+v", s.move().Source)
	}
	if r, err := s.store.Get(ctx, comes); err != nil || !r.(*store.Migration).Target.Completed {
		t.Errorf("the arrival was not told: %+v, %v", r, err)
	}
	for _, c := range s.Copies("vm-07") {
		if c.State != hypervisor.Starting {
			t.Errorf("the VM that had crashed is %v", c.State)
		}
	}

	s.AdvanceTo(s.Now().Add(time.Minute))
	_, err = s.agents["n1"].Reconcile(ctx, s.Now()) // vm-07 runs again
	s.ok(err)
	written, done := records.writes, len(e.done)
	for range 3 {
		s.AdvanceTo(s.Now().Add(time.Hour))
		_, err = s.agents["n1"].Reconcile(ctx, s.Now())
		s.ok(err)
	}
	if records.writes != written || len(e.done) != done {
		t.Errorf("%d more writings and %d more commands; %q", records.writes-written,
			len(e.done)-done, s.noted)
	}
}

// VMs that simply run cost nothing: no writing, and no command.
func TestAdoptingWhatRunsDoesNothing(t *testing.T) {
	store := &counting{Memory: store.NewMemory()}
	s := newHarness(t, store)
	s.AdvanceTo(s.Now().Add(time.Hour))
	e := &eyewitness{machine: s.Host("n1"), s: s}
	s.agents["n1"] = agent.New("n1", agent.Config{}, e, s.as("n1", s.store), s)
	before := store.writes
	_, err := s.agents["n1"].Reconcile(ctx, s.Now())
	s.ok(err)
	if store.writes != before || len(e.done) > 0 || len(s.noted) > 0 {
		t.Errorf("%d writings, %q, %q", store.writes-before, e.names(), s.noted)
	}
}

// The hypervisor starts no VM by itself that is at home here: one that runs when the agent begins, and one
// that comes later. Each is asked for once, and what fails is told, once, and asked for again.
func TestOnlyTheAgentStartsItsVMs(t *testing.T) {
	s := newHarness(t, store.NewMemory())
	s.AdvanceTo(s.Now().Add(time.Minute))
	var asked []hypervisor.VMID
	broken := errors.New("the disk is full")
	s.agents["n1"] = agent.New("n1", agent.Config{DisableAutostart: func(_ context.Context, vm hypervisor.VMID) error {
		asked = append(asked, vm)
		return broken
	}}, s.Host("n1"), s.as("n1", s.store), s)
	reconcile := func(want ...hypervisor.VMID) {
		t.Helper()
		asked = nil
		s.reconciles("n1")
		if !slices.Equal(asked, want) {
			t.Errorf("asked for %q, want %q", asked, want)
		}
	}
	reconcile(vm)
	s.changeVM(func(v *store.VM) { v.Reboots++ })
	reconcile(vm)
	if told := strings.Count(strings.Join(s.noted, "\n"), "the disk is full"); told != 1 {
		t.Errorf("it was told %d times: %q", told, s.noted)
	}
	broken = nil
	s.changeVM(func(v *store.VM) { v.Reboots++ })
	reconcile(vm)
	s.changeVM(func(v *store.VM) { v.Reboots++ })
	reconcile()
	other := hypervisor.VM{ID: "other", Memory: gib, CPUs: 1}
	s.ok(s.Host("n1").Boot(other, fake.Workload{}))
	s.put(&store.VM{VM: other, Host: "n1"})
	reconcile("other")
}

// comes lets a VM arrive on n1 from n2, which is not reported yet.
func (s *harness) comes(v hypervisor.VM) store.Key {
	s.t.Helper()
	const id = "comer#1"
	s.ok(s.Host("n2").Boot(v, fake.Workload{}))
	s.put(&store.VM{VM: v, Host: "n2", ActiveMigration: id})
	address, err := s.Host("n1").Receive(ctx, hypervisor.Incoming{Job: id, VM: v})
	s.ok(err)
	s.ok(s.Host("n2").Migrate(ctx, hypervisor.Outgoing{Job: id, VM: v.ID, Target: "n1",
		Address: address}))
	m := &store.Migration{Spec: migration.Spec{ID: id, VM: v.ID},
		State:  migration.State{Phase: migration.Running, Source: "n2", Target: "n1"},
		Source: store.SourceReport{Began: true, Started: true},
		Target: store.TargetReport{Ready: true, Address: address}}
	s.put(m)
	return m.Key()
}

// A picky hypervisor has trouble with one VM, and counts how often it was asked for it.
type picky struct {
	*machine
	with  hypervisor.VMID
	asked int
}

var errPicky = &hypervisor.Error{Op: "Domain", Kind: hypervisor.Transient,
	Err: errors.New("not now")}

// Domain implements hypervisor.Hypervisor.
func (p *picky) Domain(ctx context.Context, id hypervisor.VMID) (hypervisor.Domain, error) {
	if id == p.with {
		p.asked++
		return hypervisor.Domain{}, errPicky
	}
	return p.machine.Domain(ctx, id)
}

// What fails is tried again ever less often, and keeps no other record waiting. When it has
// worked, the next failure is tried again soon.
func TestErrorsOfOneVMDelayNoOther(t *testing.T) {
	s := newHarness(t, store.NewMemory())
	other := hypervisor.VM{ID: "other", Memory: gib, CPUs: 1}
	s.ok(s.boot(other))
	s.put(&store.VM{VM: other, Host: "n1"})
	p := &picky{machine: s.Host("n1"), with: vm}
	s.agents["n1"] = agent.New("n1", agent.Config{}, p, s.as("n1", s.store), s)
	look := func() time.Duration {
		t.Helper()
		wake, err := s.agents["n1"].Reconcile(ctx, s.Now())
		if !errors.Is(err, hypervisor.Transient) {
			t.Fatalf("error %v", err)
		}
		return wake.Sub(s.Now())
	}
	var waits []time.Duration
	for range 8 {
		w := look()
		waits = append(waits, w/time.Second)
		s.AdvanceTo(s.Now().Add(w))
	}
	if got := fmt.Sprint(waits); got != "[1ns 2ns 4ns 8ns 16ns 30ns 30ns 30ns]" {
		t.Errorf("waited %s", got)
	}
	asked := p.asked
	s.ok(s.KillDomain("n1", "other"))
	s.agents["n1"].Hint("other")
	_, err := s.agents["n1"].Reconcile(ctx, s.Now().Add(-time.Second))
	s.ok(err)
	if c := s.Copies("other"); c[0].State != hypervisor.Starting || p.asked != asked {
		t.Errorf("the other is %v; the first was asked for %d times more", c, p.asked-asked)
	}

	p.with = ""
	s.AdvanceTo(s.Now().Add(time.Minute))
	_, err = s.agents["n1"].Reconcile(ctx, s.Now())
	s.ok(err)
	p.with = vm
	s.agents["n1"].Hint(vm)
	if w := look(); w > time.Second {
		t.Errorf("after a success it waits %v", w)
	}
}

// A lost race is no failure: it is looked at again as soon as ever.
func TestALostRaceIsNoFailure(t *testing.T) {
	records := &racing{Memory: store.NewMemory()}
	s := newHarness(t, records)
	s.ok(s.KillDomain("n1", vm))
	for range 5 {
		records.first = func() { s.changeVM(func(*store.VM) {}) }
		wake, err := s.agents["n1"].Reconcile(ctx, s.Now())
		s.ok(err)
		if w := wake.Sub(s.Now()); w > time.Second {
			t.Fatalf("it waits %v", w)
		}
		s.AdvanceTo(wake)
	}
}
