package agent_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// host changes the record of n1, which is made when there is none.
func (s *harness) host(how func(*store.Host)) {
	s.t.Helper()
	r, err := s.store.Get(ctx, store.Key{Kind: store.HostKind, Name: "n1"})
	s.ok(err)
	h, _ := r.(*store.Host)
	if h == nil {
		h = &store.Host{Host: hypervisor.Host{Name: "n1"}}
	}
	next := *h
	how(&next)
	s.put(&next)
}

// cuts are the ways in which a host is cut off.
var cuts = map[string]func(*store.Host){
	"fencing": func(h *store.Host) { h.Fencing = &store.Fencing{Boot: "b"} },
	"fenced":  func(h *store.Host) { h.Fenced = true },
}

func back(h *store.Host) { h.Fencing, h.Fenced = nil, false }

// A host that is being fenced starts nothing anew: its VMs may be started elsewhere. When
// it is no longer cut off, what had to wait happens.
func TestAHostThatIsCutOffStartsNothing(t *testing.T) {
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			s, e := witnessed(t)
			s.host(cut)
			s.ok(s.KillDomain("n1", vm))
			s.pass(10 * time.Second)
			e.wants()
			if s.vm().Boots != 0 {
				t.Errorf("a start was announced")
			}
			s.host(back)
			_, err := s.agents["n1"].Reconcile(ctx, s.Now()) // no hint is given
			s.ok(err)
			e.wants("start")
		})
	}
}

// What runs is left alone, whatever is asked.
func TestAHostThatIsCutOffLeavesAloneWhatRuns(t *testing.T) {
	s, e := witnessed(t)
	s.host(cuts["fenced"])
	s.changeVM(func(v *store.VM) { v.Stopped = true })
	s.pass(10 * time.Second)
	e.wants()
	s.wantState("n1", hypervisor.Running)
}

// The host is cut off between the agent's look and its start: the announcement fails.
func TestAStartLosesARaceAgainstFencing(t *testing.T) {
	for name, cut := range cuts {
		for _, known := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				records := &racing{Memory: store.NewMemory()}
				s := newHarness(t, records)
				if known {
					s.host(func(*store.Host) {})
				}
				s.reconciles("n1")
				s.ok(s.KillDomain("n1", vm))
				records.first = func() { s.host(cut) }
				s.pass(10 * time.Second)
				s.wantState("n1", hypervisor.Crashed)
				if s.vm().Boots != 0 {
					t.Errorf("the start was announced: %q", s.noted)
				}
				s.host(back)
				s.pass(time.Second)
				s.wantState("n1", hypervisor.Starting)
			})
		}
	}
}

// A host that is cut off announces no transfer, and begins none that it had announced: the
// VM would run on the target, and perhaps on a third host.
func TestAHostThatIsCutOffSendsNothing(t *testing.T) {
	for name, cut := range cuts {
		for _, began := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				s := newHarness(t, store.NewMemory())
				s.begin(migration.PreparingTarget)
				s.changeVM(func(v *store.VM) { v.ActiveMigration = job })
				s.reconciles("n2")
				s.change(func(m *store.Migration) {
					m.State.Phase, m.Source.Began = migration.TargetReady, began
				})
				s.host(cut)
				s.pass(5 * time.Second)
				if p, err := s.Host("n1").Progress(ctx, job); err != nil ||
					p.Status != hypervisor.JobNone || s.move().Source.Began != began {
					t.Fatalf("job %v, source %+v, %v", p.Status, s.move().Source, err)
				}
				s.host(back)
				s.pass(20 * time.Second)
				s.wantState("n2", hypervisor.Running)
			})
		}
	}
}

// The announcement that a transfer begins loses the race against fencing.
func TestATransferLosesARaceAgainstFencing(t *testing.T) {
	records := &racing{Memory: store.NewMemory()}
	s := newHarness(t, records)
	s.begin(migration.PreparingTarget)
	s.changeVM(func(v *store.VM) { v.ActiveMigration = job })
	s.reconciles("n2")
	s.phase(migration.TargetReady)
	records.first = func() { s.host(cuts["fencing"]) }
	s.pass(5 * time.Second)
	if s.move().Source.Began {
		t.Errorf("it was announced: %q", s.noted)
	}
}

// The source stopped for the switch-over, its target is known never to have run, and the
// source's own host is cut off: it does not go on by itself. An operator's wrong word is
// enough for that.
func TestAHostThatIsCutOffResumesNothing(t *testing.T) {
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			s := newHarness(t, store.NewMemory())
			s.sending()
			s.until("n1", hypervisor.HandingOver)
			s.ok(s.CrashHost("n2"))
			s.change(func(m *store.Migration) {
				m.Evidence = []hypervisor.Evidence{{Proof: hypervisor.OperatorWord, VM: vm,
					Host: "n2", Job: job, By: "alice"}}
			})
			s.host(cut)
			s.pass(5 * time.Second)
			s.wantState("n1", hypervisor.HandingOver)
			s.host(back)
			s.pass(5 * time.Second)
			s.wantState("n1", hypervisor.Running)
		})
	}
}

// held brings a migration to where the target has received everything and is held.
func held(t *testing.T, take bool) *harness {
	s := newHarness(t, store.NewMemory())
	if !take {
		s, _, _ = newForgetful(t)
	}
	_, err := s.Host("n2").Receive(ctx, hypervisor.Incoming{Job: job, VM: aVM, Hold: true})
	s.ok(err)
	address, err := s.Host("n2").Receive(ctx, hypervisor.Incoming{Job: job, VM: aVM, Hold: true})
	s.ok(err)
	s.begin(migration.TargetReady)
	s.change(func(m *store.Migration) { m.Target.Address, m.Target.Ready = address, true })
	s.changeVM(func(v *store.VM) { v.ActiveMigration = job })
	s.reconciles("n1")
	s.phase(migration.Running)
	s.until("n2", hypervisor.Received)
	return s
}

func TestAHostThatIsCutOffActivatesNothing(t *testing.T) {
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			s := held(t, true)
			n2 := &store.Host{Host: hypervisor.Host{Name: "n2"}}
			cut(n2)
			s.put(n2)
			s.pass(5 * time.Second)
			s.wantState("n2", hypervisor.Received)
			r, err := s.store.Get(ctx, n2.Key())
			s.ok(err)
			next := *r.(*store.Host)
			back(&next)
			s.put(&next)
			s.pass(5 * time.Second)
			s.wantState("n2", hypervisor.Running)
		})
	}
}

// A host that keeps what it has handed over has received everything only when the source
// has stopped for good. One without take-back waits until the source is handed over: until
// then its hypervisor may let it run again.
func TestAHeldVMIsActivatedWhenItsSourceCannotGoOn(t *testing.T) {
	for _, r := range []struct {
		name       string
		take       bool
		handedOver bool
		want       hypervisor.DomainState
	}{
		{"with take-back at once", true, false, hypervisor.Running},
		{"without take-back not before the source is handed over", false, false,
			hypervisor.Received},
		{"without take-back when the source is handed over", false, true, hypervisor.Running},
	} {
		t.Run(r.name, func(t *testing.T) {
			s := held(t, r.take)
			s.change(func(m *store.Migration) { m.Source.HandedOver = r.handedOver })
			for range 5 {
				s.reconciles("n2") // the source's agent says nothing more
				s.AdvanceTo(s.Now().Add(time.Second))
			}
			s.wantState("n2", r.want)
			if r.want == hypervisor.Received {
				s.change(func(m *store.Migration) { m.Source.HandedOver = true })
				s.reconciles("n2")
				s.wantState("n2", hypervisor.Running)
			}
		})
	}
}

// rebuilt says that the VM was rebuilt on n2 after n1 was fenced, and brings the copy on n1
// into a state.
func rebuilt(t *testing.T, set func(*harness)) (*harness, *eyewitness) {
	s, e := witnessed(t)
	if set != nil {
		set(s)
	}
	s.put(&store.Rebuild{VM: vm, Source: "n1", Target: "n2",
		Evidence: hypervisor.Evidence{Proof: hypervisor.HostFenced, Host: "n1", By: "fence_x"}})
	s.changeVM(func(v *store.VM) { v.Host, v.Boots = "n2", 1 })
	return s, e
}

func (s *harness) rebuild() *store.Rebuild {
	r, err := s.store.Get(ctx, (&store.Rebuild{VM: vm, Source: "n1"}).Key())
	s.ok(err)
	return r.(*store.Rebuild)
}

func powerCut(s *harness) {
	s.ok(s.CrashHost("n1"))
	s.ok(s.RestartHost("n1"))
}

// What is left on a host that returns, by the state of its copy.
func TestWhatARebuiltVMHasLeftIsRemovedOnlyWhenItIsDead(t *testing.T) {
	for _, r := range []struct {
		name    string
		set     func(*harness)
		after   func(*harness)
		want    hypervisor.DomainState
		cleaned bool
		says    string
	}{
		{"shut off: it is removed", powerCut, nil, hypervisor.Absent, true, "removed"},
		{"crashed: it is removed", func(s *harness) { s.ok(s.KillDomain("n1", vm)) }, nil,
			hypervisor.Absent, true, "removed"},
		{"nothing is there: that is what is said", func(s *harness) {
			s.ok(s.KillDomain("n1", vm))
			s.ok(s.Host("n1").Do(ctx, vm, hypervisor.Forget{}))
		}, nil, hypervisor.Absent, true, ""},
		{"it is not yet started elsewhere: it is kept", powerCut, func(s *harness) {
			s.changeVM(func(v *store.VM) { v.Boots = 0 })
		}, hypervisor.Shutoff, false, ""},
		{"it is about to start elsewhere: it is kept", powerCut, func(s *harness) {
			s.changeVM(func(v *store.VM) { v.Operation = store.Starting })
		}, hypervisor.Shutoff, false, ""},
		{"it executes: left alone", nil, nil, hypervisor.Running, false, "left alone"},
		{"it is paused: left alone", func(s *harness) {
			s.ok(s.Host("n1").Do(ctx, vm, hypervisor.Pause{}))
		}, nil, hypervisor.Paused, false, "left alone"},
		{"it had stopped for a switch-over: left alone", func(s *harness) {
			s.sending()
			s.until("n1", hypervisor.HandingOver)
			s.phase(migration.Failed)
			s.changeVM(func(v *store.VM) { v.ActiveMigration = "" })
		}, nil, hypervisor.HandedOver, false, "left alone"},
		{"it is at home here again: it is left alone", powerCut, func(s *harness) {
			s.changeVM(func(v *store.VM) { v.Host, v.Stopped = "n1", true })
		}, hypervisor.Shutoff, false, ""},
		{"it is on the move again: nothing yet", powerCut, func(s *harness) {
			s.changeVM(func(v *store.VM) { v.ActiveMigration = "a#9" })
		}, hypervisor.Shutoff, false, ""},
		{"its record is gone: its place is not known", powerCut, func(s *harness) {
			s.ok(s.store.Delete(ctx, s.vm()))
		}, hypervisor.Shutoff, false, ""},
	} {
		t.Run(r.name, func(t *testing.T) {
			s, e := rebuilt(t, r.set)
			if r.after != nil {
				r.after(s)
			}
			for range 3 {
				s.reconciles("n1")
				s.AdvanceTo(s.Now().Add(10 * time.Minute))
			}
			s.wantState("n1", r.want)
			if got := s.rebuild().Cleaned; got != r.cleaned {
				t.Errorf("cleaned is %v; %q", got, s.noted)
			}
			said := slices.DeleteFunc(slices.Clone(s.noted), func(n string) bool {
				return r.says == "" || !strings.Contains(n, r.says)
			})
			if want := min(1, len(r.says)); len(said) != want {
				t.Errorf("it said %q, want %q once", s.noted, r.says)
			}
			for _, c := range e.done {
				if c != (hypervisor.Forget{Outdated: true}) { // its memory goes, too
					t.Errorf("it did %#v", c)
				}
			}
		})
	}
}

// The rebuild is stored before the VM's record changes: until it has, it says nothing.
func TestARebuildSaysNothingBeforeTheVMHasMoved(t *testing.T) {
	s, e := witnessed(t)
	powerCut(s)
	s.host(cuts["fenced"])
	s.put(&store.Rebuild{VM: vm, Source: "n1", Target: "n2"})
	s.pass(5 * time.Second)
	e.wants()
	s.changeVM(func(v *store.VM) { v.Host, v.Boots = "n2", 1 })
	s.put(s.rebuild()) // the rebuilder writes it again, or the agent looks later
	s.reconciles("n1")
	s.wantState("n1", hypervisor.Absent)
}

// The VM comes back between the look at its record and the word that nothing is left.
func TestThatNothingIsLeftIsSaidOnlyWhileTheVMIsElsewhere(t *testing.T) {
	records := &racing{Memory: store.NewMemory()}
	s := newHarness(t, records)
	powerCut(s)
	s.put(&store.Rebuild{VM: vm, Source: "n1", Target: "n2"})
	s.changeVM(func(v *store.VM) { v.Host = "n2" })
	records.first = func() { s.changeVM(func(v *store.VM) { v.Host = "n1" }) }
	s.reconciles("n1")
	if s.rebuild().Cleaned {
		t.Errorf("it says that it has cleaned up; %q", s.noted)
	}
	s.pass(2 * time.Second)
	s.wantState("n1", hypervisor.Starting)
}

// Domains that this host was not told to have are listed and never touched. One that
// executes although its record says another host is said aloud, once.
func TestStrangersAreListedAndLeftAlone(t *testing.T) {
	s, e := witnessed(t)
	at := func(id hypervisor.VMID) hypervisor.VM {
		return hypervisor.VM{ID: id, Memory: gib, CPUs: 1}
	}
	s.put(&store.Host{Host: hypervisor.Host{Name: "n1", Memory: 64 * gib, CPUs: 64}})
	for _, id := range []hypervisor.VMID{"lonely", "others", "resting", "moving"} {
		s.ok(s.boot(at(id)))
	}
	s.ok(s.KillDomain("n1", "resting"))
	for _, id := range []hypervisor.VMID{"others", "resting", "moving"} {
		s.put(&store.VM{VM: at(id), Host: "n2"})
	}
	s.put(&store.Migration{Spec: migration.Spec{ID: "moving#1", VM: "moving"},
		State: migration.State{Phase: migration.Running, Source: "n2", Target: "n1"}})
	for range 4 {
		s.reconciles("n1")
		s.AdvanceTo(s.Now().Add(time.Hour))
	}
	want := []agent.UnmanagedDomain{
		{VM: "lonely", State: hypervisor.Running, Why: "it has no record"},
		{VM: "others", State: hypervisor.Running, Why: "its record says that it is on n2",
			Elsewhere: "n2"},
		{VM: "resting", State: hypervisor.Crashed, Why: "its record says that it is on n2",
			Elsewhere: "n2"}}
	strays := func() []store.Stray {
		h, err := store.HostNamed(ctx, s.store, "n1")
		s.ok(err)
		return h.Strays
	}
	second := []store.Stray{{VM: "others", Why: "its record says that it is on n2"}}
	if got := strays(); !slices.Equal(got, second) {
		t.Errorf("operators see %+v", got)
	}
	if got := s.agents["n1"].UnmanagedDomains(); !slices.Equal(got, want) {
		t.Errorf("strangers: %+v", got)
	}
	aloud := slices.DeleteFunc(slices.Clone(s.noted), func(n string) bool {
		return !strings.Contains(n, "runs here, and")
	})
	if len(aloud) != 1 {
		t.Errorf("it said %q", s.noted)
	}
	e.wants()
	// An operator ends the second copy: that is seen at once.
	s.ok(s.KillDomain("n1", "others"))
	s.agents["n1"].Hint("others")
	s.reconciles("n1")
	if got := strays(); len(got) > 0 {
		t.Errorf("when it has ended operators see %+v", got)
	}
}

// An unmanaged domain whose record cannot be read keeps no other waiting.
func TestAStrangerWithoutAReadableRecordIsListed(t *testing.T) {
	s, _ := witnessed(t)
	s.ok(s.boot(hypervisor.VM{ID: "damaged", Memory: gib, CPUs: 1}))
	s.agents["n1"] = agent.New("n1", agent.Config{}, s.Host("n1"), unreadable{s.store}, s)
	s.ok(s.KillDomain("n1", vm))
	s.reconciles("n1")
	s.wantState("n1", hypervisor.Starting)
	if got := s.agents["n1"].UnmanagedDomains(); len(got) != 1 || !strings.Contains(got[0].Why, "damaged") {
		t.Errorf("strangers: %+v", got)
	}
}

// unreadable is a store in which the record of one VM is damaged.
type unreadable struct{ store.Store }

// Get implements store.Store.
func (u unreadable) Get(ctx context.Context, key store.Key) (store.Record, error) {
	if key.Name == "damaged" {
		return nil, &store.StoreError{Op: "Get", Key: key, Kind: store.Unreadable}
	}
	return u.Store.Get(ctx, key)
}
