package agent_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/store"
)

// sendingBy is sending with options that how changes.
func (s *harness) sendingBy(how func(*store.Migration)) {
	s.t.Helper()
	s.begin(migration.PreparingTarget, func(m *store.Migration) {
		m.Options = &migration.Options{}
		how(m)
	})
	s.changeVM(func(v *store.VM) { v.ActiveMigration = job })
	s.reconciles("n2")
	s.phase(migration.TargetReady)
	s.reconciles("n1")
	s.phase(migration.Running)
}

// An able hypervisor can do what it is told it can.
type able struct {
	sender
	abilities hypervisor.Abilities
}

// Host implements hypervisor.Hypervisor.
func (h *able) Host(ctx context.Context) (hypervisor.Host, error) {
	host, err := h.sender.Host(ctx)
	host.Abilities = h.abilities
	return host, err
}

// Several connections are used only where they can be used, and lost.
func TestSeveralConnectionsAreUsedWhereTheyCanBeLost(t *testing.T) {
	for _, r := range []struct {
		abilities hypervisor.Abilities
		channels  int
	}{
		{0, 0}, {hypervisor.CanUseChannels, 0}, {hypervisor.CanLoseChannels, 0},
		{hypervisor.CanUseChannels | hypervisor.CanLoseChannels, 8},
	} {
		records := store.NewMemory()
		s := newHarness(t, records)
		h := &able{sender{machine: s.Host("n1")}, r.abilities}
		s.agents["n1"] = agent.New("n1", agent.Config{}, h, records, s)
		s.sendingBy(func(*store.Migration) {})
		if len(h.sent) != 1 || h.sent[0].Channels != r.channels {
			t.Errorf("with %v it was sent with %+v, want %d connections", r.abilities.Names(),
				h.sent, r.channels)
		}
	}
}

// A reluctant hypervisor does not take a limit as long as it refuses.
type reluctant struct {
	*machine
	refuses error
	told    []hypervisor.Bandwidth
}

// Adjust implements hypervisor.Hypervisor.
func (h *reluctant) Adjust(ctx context.Context, id hypervisor.JobID, a hypervisor.Adjustment) error {
	limit, is := a.(hypervisor.SetBandwidth)
	if !is {
		return h.machine.Adjust(ctx, id, a)
	}
	h.told = append(h.told, limit.Limit)
	return h.refuses
}

// A limit that is not taken now is not stored as taken, and told again after a while, however many hints come.
// One that the hypervisor can never take is not.
func TestALimitThatIsNotTakenIsToldAgain(t *testing.T) {
	for _, kind := range []hypervisor.Kind{hypervisor.Conflict, hypervisor.Unsupported} {
		s := newHarness(t, store.NewMemory())
		h := &reluctant{machine: s.Host("n1"), refuses: &hypervisor.Error{Op: "SetBandwidth", Kind: kind}}
		s.agents["n1"] = agent.New("n1", agent.Config{}, h, s.as("n1", s.store), s)
		s.sendingBy(func(m *store.Migration) { m.Options.Bandwidth = 1e6 })
		const limit = 2e6
		s.change(func(m *store.Migration) {
			options := *m.Options
			m.Options, options.Bandwidth = &options, limit
		})
		for range 30 { // 3 s
			s.AdvanceTo(s.Now().Add(100 * ms))
			s.reconciles("n1")
		}
		taken := kind == hypervisor.Unsupported
		if n := len(h.told); n != 1 || (s.move().Source.Cap == limit) != taken {
			t.Fatalf("%v: told %d times, and %v is stored as taken", kind, n, s.move().Source.Cap)
		}
		h.refuses = nil
		for range 150 {
			s.AdvanceTo(s.Now().Add(100 * ms))
			s.reconciles("n1")
		}
		if want := map[bool]int{true: 1, false: 2}[taken]; len(h.told) != want || s.move().Source.Cap != limit {
			t.Errorf("%v: told %v, and %v is stored", kind, h.told, s.move().Source.Cap)
		}
	}
}

// ready is the moment before the source begins.
func ready(t *testing.T, records store.Store) *harness {
	s := newHarness(t, records)
	s.begin(migration.PreparingTarget)
	s.changeVM(func(v *store.VM) { v.ActiveMigration = job })
	s.reconciles("n2")
	s.phase(migration.TargetReady)
	return s
}

func TestNothingBeginsThatIsNoLongerWanted(t *testing.T) {
	for _, r := range []struct {
		name string
		how  func(*store.Migration)
	}{
		{"cancelled", func(m *store.Migration) { m.Cancel = true }},
		{"asked to abort", func(m *store.Migration) {
			m.State.Conditions = m.State.Conditions.With(migration.AbortRequested)
		}},
		{"the target is down", func(m *store.Migration) { m.Target.Down = true }},
		{"failed", func(m *store.Migration) { m.State.Phase = migration.Failed }},
		{"not ready", func(m *store.Migration) { m.State.Phase = migration.PreparingTarget }},
		{"no target listens", func(m *store.Migration) { m.Target.Address = "" }},
	} {
		t.Run(r.name, func(t *testing.T) {
			s := ready(t, store.NewMemory())
			s.change(r.how)
			s.reconciles("n1")
			if m := s.move(); m.Source.Began {
				t.Errorf("the source began: %+v", m.Source)
			}
		})
	}
}

// racing lets another process write the record before the next Put of an agent.
type racing struct {
	*store.Memory
	first func()
}

// Put implements store.Store.
func (r *racing) Put(ctx context.Context, rec store.Record, while ...store.Record) (
	store.Record, error) {
	if f := r.first; f != nil {
		r.first = nil
		f()
	}
	return r.Memory.Put(ctx, rec, while...)
}

func TestTheSourceLosesTheRaceAgainstTheEndOfItsMigration(t *testing.T) {
	store := &racing{Memory: store.NewMemory()}
	s := ready(t, store)
	store.first = func() { s.phase(migration.Failed) }
	s.reconciles("n1")
	for range 5 {
		s.AdvanceTo(s.Now().Add(time.Second))
		s.reconciles("n1")
	}
	p, err := s.Host("n1").Progress(ctx, job)
	if s.ok(err); p.Status != hypervisor.JobNone || s.move().Source.Began {
		t.Errorf("the source sends (%v) what has failed", p.Status)
	}
}

// What the source says when it has announced that it begins and its hypervisor
// knows of no job.
func TestASourceWithoutAJob(t *testing.T) {
	abort := func(m *store.Migration) {
		m.State.Conditions = m.State.Conditions.With(migration.AbortRequested)
	}
	kill := func(s *harness) { s.ok(s.Host("n1").Do(ctx, vm, hypervisor.Kill{})) }
	for _, r := range []struct {
		name string
		how  func(*store.Migration)
		set  func(*harness)
		want string
	}{
		{"starts when the VM is here", func(*store.Migration) {}, func(*harness) {}, "started"},
		{"kept the VM when the hypervisor forgot the job",
			func(m *store.Migration) { m.Source.Started = true }, func(*harness) {}, "kept"},
		{"asks the target when it shall abort what may have begun", abort, func(*harness) {},
			"unresolved"},
		{"asks the target when the VM is not here, although no start is remembered",
			func(*store.Migration) {}, kill, "unresolved"},
		{"asks the target when the VM is gone",
			func(m *store.Migration) { m.Source.Started = true }, kill, "unresolved"},
		{"kept the VM when the target was discarded", func(m *store.Migration) {
			abort(m)
			m.Source.Unresolved, m.Target.Discarded = true, true
		}, func(*harness) {}, "kept"},
	} {
		t.Run(r.name, func(t *testing.T) {
			s := ready(t, store.NewMemory())
			r.set(s)
			s.change(func(m *store.Migration) {
				m.Source.Began = true
				r.how(m)
			})
			s.reconciles("n1")
			if got := saysOf(s.move().Source); got != r.want {
				t.Errorf("the source says %s, want %s; %q", got, r.want, s.noted)
			}
		})
	}
}

func saysOf(r store.SourceReport) string {
	switch {
	case r.Failed:
		return "kept"
	case r.Unresolved:
		return "unresolved"
	case r.Started:
		return "started"
	}
	return "nothing"
}

func TestStarting(t *testing.T) {
	for _, r := range []struct {
		name string
		set  func(*harness)
		want string
	}{
		{"a lost answer is asked for again", func(s *harness) {
			s.ok(s.Inject(fake.Fault{Host: "n1", Op: "Migrate", How: fake.FailAfter}))
		}, "started"},
		{"a failure without effect is tried again", func(s *harness) {
			s.ok(s.Inject(fake.Fault{Host: "n1", Op: "Migrate", How: fake.FailBefore}))
		}, "started"},
		{"a VM that shuts down is not sent", func(s *harness) {
			s.ok(s.Host("n1").Do(ctx, vm, hypervisor.Stop{Grace: time.Hour}))
		}, "kept"},
		{"a target that is gone is asked for in vain", func(s *harness) {
			s.ok(s.KillDomain("n2", vm))
		}, "nothing"},
	} {
		t.Run(r.name, func(t *testing.T) {
			s := ready(t, store.NewMemory())
			r.set(s)
			for range 2 {
				err := s.act("n1")
				var e *hypervisor.Error
				if err != nil && !errors.As(err, &e) {
					t.Fatal(err)
				}
				s.AdvanceTo(s.Now().Add(1500 * ms))
			}
			if got := saysOf(s.move().Source); got != r.want {
				t.Errorf("the source says %s, want %s; %q", got, r.want, s.noted)
			}
		})
	}
}

// The link is lost after the source has stopped. What may run where depends on
// what is known, and on nothing else.
func TestASourceThatIsStuckNeedsEvidence(t *testing.T) {
	about := func(e hypervisor.Evidence) func(*store.Migration) {
		return func(m *store.Migration) { m.Evidence = []hypervisor.Evidence{e} }
	}
	for _, r := range []struct {
		name string
		how  func(*store.Migration)
		want hypervisor.DomainState
		says string
	}{
		{"nothing is known", func(*store.Migration) {}, hypervisor.HandingOver, "unresolved"},
		{"the target was discarded", func(m *store.Migration) { m.Target.Discarded = true },
			hypervisor.Running, "kept"},
		{"the target's host was fenced, and may have run it",
			about(hypervisor.Evidence{Proof: hypervisor.HostFenced, Host: "n2"}),
			hypervisor.Crashed, "kept"},
		{"another host was fenced",
			about(hypervisor.Evidence{Proof: hypervisor.HostFenced, Host: "n3"}),
			hypervisor.HandingOver, "unresolved"},
		{"another VM's copy is dead", about(hypervisor.Evidence{VM: "b", Host: "n2",
			Proof: hypervisor.ProcessReaped}), hypervisor.HandingOver, "unresolved"},
	} {
		t.Run(r.name, func(t *testing.T) {
			s := newHarness(t, store.NewMemory())
			s.sending()
			s.until("n1", hypervisor.HandingOver)
			s.ok(s.CutLink("n1", "n2"))
			s.reconciles("n1")
			if got := saysOf(s.move().Source); got != "unresolved" {
				t.Fatalf("the source says %s", got)
			}
			s.change(r.how)
			s.reconciles("n1", "n1")
			s.wantState("n1", r.want)
			if got := saysOf(s.move().Source); got != r.says {
				t.Errorf("the source says %s, want %s; %q", got, r.says, s.noted)
			}
		})
	}
}

func TestReleasing(t *testing.T) {
	home := func(s *harness) {
		s.changeVM(func(v *store.VM) { v.Host, v.ActiveMigration = "n2", "" })
	}
	reboot := func(s *harness) {
		s.ok(s.CrashHost("n1"))
		s.ok(s.RestartHost("n1"))
	}
	for _, r := range []struct {
		name string
		set  func(*harness)
		want hypervisor.DomainState
		done bool
	}{
		{"a source that was handed over", home, hypervisor.Absent, true},
		{"a source that is gone", func(s *harness) {
			home(s)
			s.ok(s.Host("n1").Do(ctx, vm, hypervisor.Release{Job: job, Moved: hypervisor.Evidence{
				Proof: hypervisor.RunsAtTarget, VM: vm, Host: "n2"}}))
		}, hypervisor.Absent, true},
		{"a source whose host lost power meanwhile", func(s *harness) {
			home(s)
			reboot(s)
		}, hypervisor.Absent, true},
		{"a source of which another migration is known now", func(s *harness) {
			s.ok(s.Host("n1").Do(ctx, vm, hypervisor.Release{Job: job, Moved: hypervisor.Evidence{
				Proof: hypervisor.RunsAtTarget, VM: vm, Host: "n2"}}))
			_, err := s.Host("n1").Receive(ctx, hypervisor.Incoming{Job: "a#2", VM: aVM})
			s.ok(err)
		}, hypervisor.Receiving, true},
	} {
		t.Run(r.name, func(t *testing.T) {
			s := newHarness(t, store.NewMemory())
			s.sending()
			s.until("n1", hypervisor.HandedOver)
			s.reconciles("n1", "n2")
			s.phase(migration.Succeeded)
			s.change(func(m *store.Migration) { m.Source.Monitor = &convergence.State{} })
			r.set(s)
			s.reconciles("n1", "n1")
			s.wantState("n1", r.want)
			if m := s.move(); m.Source.Released != r.done || (m.Source.Monitor == nil) != r.done {
				t.Errorf("the source says %+v; %q", m.Source, s.noted)
			}
		})
	}
}

// The target had the VM, and died with it before it could say so: the memory here
// is older than the disks, whatever the evidence.
func TestAVMThatWasHandedOverDoesNotGoOnHere(t *testing.T) {
	for _, r := range []struct {
		name string
		how  func(*store.Migration)
	}{
		{"the target's host was fenced", func(m *store.Migration) {
			m.Evidence = []hypervisor.Evidence{{Proof: hypervisor.HostFenced, Host: "n2"}}
		}},
		{"the target says that it never ran", func(m *store.Migration) {
			m.Target.Discarded = true
		}},
	} {
		t.Run(r.name, func(t *testing.T) {
			s := newHarness(t, store.NewMemory())
			s.sending()
			s.until("n1", hypervisor.HandedOver)
			s.reconciles("n1")
			s.ok(s.CrashHost("n2"))
			s.change(r.how)
			s.reconciles("n1", "n1")
			s.wantState("n1", hypervisor.Crashed)
			if got := saysOf(s.move().Source); got != "kept" {
				t.Errorf("the source says %s; %q", got, s.noted)
			}
		})
	}
}

// A source says that an outcome is unknown and resolves it in one go when its target has
// already denied the VM: nothing but itself would wake it for what it has just said.
func TestASourceNeedsNoEchoOfItsOwnWord(t *testing.T) {
	s := newHarness(t, store.NewMemory())
	s.sending()
	s.until("n1", hypervisor.HandingOver)
	s.ok(s.KillDomain("n2", vm))
	s.change(func(m *store.Migration) { m.Target.Down, m.Target.Discarded = true, true })
	s.reconciles("n1")
	s.wantState("n1", hypervisor.Running)
	if m := s.move(); !m.Source.Failed || m.Source.Unresolved {
		t.Errorf("the source says %+v, want that it kept the VM", m.Source)
	}
}

// A transfer that may switch to post-copy takes one connection, and is not compressed: QEMU refuses both.
func TestATransferThatMaySwitchToPostCopyTakesOneConnection(t *testing.T) {
	const able = hypervisor.CanUseChannels | hypervisor.CanLoseChannels | hypervisor.CanCompress
	o := migration.Options{Compression: migration.CompressionZstd}
	if got := agent.TransferOptions(&o, able); got.Channels != 8 || !got.Compression {
		t.Errorf("without post-copy: %+v", got)
	}
	o.AllowPostCopy = true
	if got := agent.TransferOptions(&o, able); got.Channels > 1 || got.Compression || !got.PostCopy {
		t.Errorf("with post-copy: %+v", got)
	}
}
