package agent_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// notebook is a ledger in memory.
type notebook struct {
	all  map[hypervisor.VMID]store.Holding
	full bool // nothing more can be written
}

func (n *notebook) Holding(vm hypervisor.VMID) (store.Holding, bool) {
	h, known := n.all[vm]
	return h, known
}

func (n *notebook) Keep(h store.Holding) error {
	if n.full {
		return errors.New("no space left on device")
	}
	n.all[h.VM] = h
	return nil
}

// withLedger is a harness whose first host has a ledger, and a VM whose moves are counted.
func withLedger(t *testing.T) (*harness, *notebook) {
	s := newHarness(t, store.NewMemory())
	n := &notebook{all: map[hypervisor.VMID]store.Holding{}}
	s.recast(n)
	s.reconciles("n1")
	if v := s.vm(); v.Moves != 1 {
		t.Fatalf("the moves are not counted: %+v", v)
	}
	if h, known := n.Holding(vm); !known || !h.Here() {
		t.Fatalf("what is at home is not known: %+v", h)
	}
	return s, n
}

// recast starts the agent of n1 anew.
func (s *harness) recast(l agent.Ledger) {
	s.agents["n1"] = agent.New("n1", agent.Config{Ledger: l}, s.Host("n1"), s.as("n1", s.store), s)
}

// gone brings a to n2 and takes what is left of it from n1.
func gone(t *testing.T) (*harness, *notebook) {
	s, n := withLedger(t)
	s.sending()
	if h, _ := n.Holding(vm); h.Left == nil || h.Left.To != "n2" || h.Left.Move != job {
		t.Fatalf("it is being sent, and the ledger says %+v", h)
	}
	s.until("n2", hypervisor.Running)
	s.reconciles("n1", "n2")
	s.change(func(m *store.Migration) { m.State.Phase = migration.Succeeded })
	s.changeVM(func(v *store.VM) {
		v.MoveTo("n2")
		v.ActiveMigration = ""
	})
	s.reconciles("n1", "n2")
	s.wantState("n1", hypervisor.Absent)
	return s, n
}

// setBack writes the record of a as it was before it moved, as a restored backup has it.
func (s *harness) setBack() {
	s.changeVM(func(v *store.VM) { v.Host, v.Moves, v.ActiveMigration = "n1", 1, "" })
	s.ok(s.store.Delete(ctx, s.move()))
}

// The store was set back, and no participant has noticed: its record does not overrule what the host knows.
func TestARecordDoesNotOverruleTheLedger(t *testing.T) {
	s, n := gone(t)
	s.setBack()
	s.recast(n)
	for range 5 {
		s.reconciles("n1")
		s.AdvanceTo(s.Now().Add(time.Minute))
	}
	s.wantState("n1", hypervisor.Absent)
	v := s.vm()
	if v.Boots != 0 || !strings.Contains(v.Trouble, "it has gone to n2 by migration "+string(job)) {
		t.Errorf("it was started, or operators are not told: %+v", v)
	}
	// An operator's orders do not change that, although they are newer.
	s.changeVM(func(v *store.VM) { v.Stopped = true })
	s.reconciles("n1")
	if s.vm().Ended {
		t.Error("n1 says of a VM that runs on n2 that it is off")
	}
	s.changeVM(func(v *store.VM) { v.Stopped = false })
	s.reconciles("n1")
	s.wantState("n1", hypervisor.Absent)
	// What is reconciled is of a later life.
	s.changeVM(func(v *store.VM) { v.Moves = 3 })
	s.reconciles("n1")
	s.wantState("n1", hypervisor.Starting)
}

// A VM that comes back by whatever way is started where its record says.
func TestAVMThatCameBackIsStarted(t *testing.T) {
	s, n := gone(t)
	s.changeVM(func(v *store.VM) { v.MoveTo("n1") })
	s.change(func(m *store.Migration) { m.Source.Released = true })
	s.reconciles("n1")
	s.wantState("n1", hypervisor.Starting)
	if h, _ := n.Holding(vm); !h.Here() || h.Record.Moves != 3 {
		t.Errorf("the ledger says %+v", h)
	}
}

// A transfer that fails leaves the VM at home: when it crashes it starts anew.
func TestAVMThatWasKeptIsStartedAgain(t *testing.T) {
	s, n := withLedger(t)
	s.sending()
	s.ok(s.CrashHost("n2"))
	s.change(func(m *store.Migration) {
		m.State.Conditions = m.State.Conditions.With(migration.AbortRequested)
	})
	for range 20 {
		_ = s.act("n1")
		s.AdvanceTo(s.Now().Add(time.Second))
	}
	if !s.move().Source.Failed {
		t.Fatalf("the transfer has not failed: %+v", s.move().Source)
	}
	if h, _ := n.Holding(vm); !h.Here() {
		t.Errorf("it was kept, and the ledger says %+v", h)
	}
}

// What cannot be written to the ledger is not sent.
func TestNothingIsSentThatTheLedgerDoesNotKnow(t *testing.T) {
	s, n := withLedger(t)
	s.begin(migration.TargetReady)
	n.full = true
	s.reconciles("n2")
	for range 5 {
		if s.move().Target.Address != "" {
			break
		}
		s.reconciles("n2")
	}
	err := s.act("n1")
	if m := s.move(); m.Target.Address == "" || m.Source.Started {
		t.Fatalf("%+v; %v", m.Source, err)
	}
	if err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("the error is %v", err)
	}
	n.full = false
	s.AdvanceTo(s.Now().Add(time.Minute))
	s.reconciles("n1")
	if !s.move().Source.Started {
		t.Errorf("it is not sent when there is room again: %+v", s.move().Source)
	}
}

// A VM that runs astray and comes home is no stray any more, at once.
func TestAStrayThatComesHomeIsNoStray(t *testing.T) {
	s := newHarness(t, store.NewMemory())
	s.put(&store.Host{Host: hypervisor.Host{Name: "n1"}})
	s.changeVM(func(v *store.VM) { v.Host = "n2" })
	s.recast(nil)
	s.reconciles("n1")
	strays := func() int {
		h, err := store.HostNamed(ctx, s.store, "n1")
		s.ok(err)
		return len(h.Strays)
	}
	if strays() != 1 {
		t.Fatal("it runs astray, and operators are not told")
	}
	s.changeVM(func(v *store.VM) { v.Host = "n1" })
	s.reconciles("n1")
	s.reconciles("n1")
	if strays() != 0 {
		t.Error("it is at home, and still told as a stray")
	}
}

// renew deletes the VM, and adds another one of its name on n1.
func (s *harness) renew(l *store.Life) {
	old := s.vm()
	s.ok(s.store.Delete(ctx, old))
	s.put(&store.VM{VM: old.VM, Life: l, Host: "n1", Moves: 1, Migratable: true,
		Strategy: old.Strategy})
}

// A VM of before there were lives is given one, and what is added under its name starts.
func TestAVMThatWasAddedAnewStarts(t *testing.T) {
	for name, seen := range map[string]bool{"the agent sees that it is deleted": true,
		"the agent is down meanwhile": false} {
		t.Run(name, func(t *testing.T) {
			s, n := withLedger(t)
			first := s.vm()
			if first.Life == nil || first.Life.After == 0 {
				t.Fatalf("it was given no life: %+v", first)
			}
			s.changeVM(func(v *store.VM) { v.Stopped, v.Kill = true, true })
			for range 3 {
				s.reconciles("n1")
				s.AdvanceTo(s.Now().Add(time.Minute))
			}
			if !s.vm().Ended {
				t.Fatal("it has not stopped")
			}
			life, err := store.NewLife(ctx, s.store, "second")
			s.ok(err)
			if seen {
				old := s.vm()
				s.ok(s.store.Delete(ctx, old))
				s.reconciles("n1")
				if h, _ := n.Holding(vm); h.Left == nil {
					t.Fatalf("it was deleted, and the ledger says %+v", h)
				}
				s.put(&store.VM{VM: old.VM, Life: life, Host: "n1", Moves: 1})
			} else {
				s.renew(life)
				s.recast(n)
			}
			s.reconciles("n1")
			s.wantState("n1", hypervisor.Starting)
			if h, _ := n.Holding(vm); !h.Here() || !h.Record.Life.Is(life) {
				t.Errorf("the ledger says %+v", h)
			}
			// A backup of before is restored, and no participant has noticed: the second is left alone,
			// whatever was wanted of the first.
			s.AdvanceTo(s.Now().Add(time.Minute))
			s.reconciles("n1")
			s.wantState("n1", hypervisor.Running)
			s.changeVM(func(v *store.VM) { v.Life, v.Stopped, v.Kill = first.Life, true, true })
			for range 3 {
				s.reconciles("n1")
				s.AdvanceTo(s.Now().Add(time.Minute))
			}
			s.wantState("n1", hypervisor.Running)
			if v := s.vm(); !strings.Contains(v.Trouble, "deleted and added anew since: godwit store reconcile") {
				t.Errorf("operators are not told: %q", v.Trouble)
			}
		})
	}
}

// A VM that was deleted is not started on the word of its own record.
func TestAVMThatWasDeletedIsNotStarted(t *testing.T) {
	s, n := withLedger(t)
	old := s.vm()
	s.changeVM(func(v *store.VM) { v.Stopped, v.Kill = true, true })
	for range 3 {
		s.reconciles("n1")
		s.AdvanceTo(s.Now().Add(time.Minute))
	}
	s.ok(s.store.Delete(ctx, s.vm()))
	s.reconciles("n1")
	s.put(old.WithVersion(0))
	s.recast(n)
	s.reconciles("n1")
	s.wantState("n1", hypervisor.Shutoff)
	if v := s.vm(); !strings.Contains(v.Trouble, "it was deleted since") {
		t.Errorf("operators are not told: %q", v.Trouble)
	}
}

// A writer of before there were lives drops that of a VM: it is managed on, and what the host knows
// stays later than every backup.
func TestALifeThatWasDroppedIsGivenAnew(t *testing.T) {
	s, n := withLedger(t)
	first := s.vm()
	s.changeVM(func(v *store.VM) { v.Life = nil })
	s.recast(n)
	s.reconciles("n1")
	switch v := s.vm(); {
	case v.Trouble != "":
		t.Errorf("it is in trouble: %s", v.Trouble)
	case !v.Life.Follows(first.Life):
		t.Errorf("its life is %+v, and was %+v", v.Life, first.Life)
	}
}
