package agent_test

import (
	"context"
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

// An eyewitness is a hypervisor that keeps what it was told to do, and what the store said
// then about the VM.
type eyewitness struct {
	*machine
	s       *harness
	done    []hypervisor.Command
	doing   []store.Operation
	refuses func(hypervisor.Command) error
}

// Do implements hypervisor.Hypervisor.
func (e *eyewitness) Do(ctx context.Context, id hypervisor.VMID, c hypervisor.Command) error {
	e.done = append(e.done, c)
	v := e.s.vm()
	e.doing = append(e.doing, v.Operation)
	if _, forget := c.(hypervisor.Forget); id == vm && !forget && v.Host == "n1" &&
		v.Operation == store.Nothing {
		e.s.t.Errorf("%T was not announced", c)
	}
	if start, is := c.(hypervisor.Start); is && id == vm && start.Boot != v.Boots {
		e.s.t.Errorf("start %d was announced, and %d is asked for", v.Boots, start.Boot)
	}
	if e.refuses != nil {
		if err := e.refuses(c); err != nil {
			return err
		}
	}
	return e.machine.Do(ctx, id, c)
}

// witnessed is a harness whose first host is watched.
func witnessed(t *testing.T) (*harness, *eyewitness) {
	s := newHarness(t, store.NewMemory())
	e := &eyewitness{machine: s.Host("n1"), s: s}
	s.agents["n1"] = agent.New("n1", agent.Config{}, e, s.as("n1", s.store), s)
	return s, e
}

// names are the commands by their names.
func (e *eyewitness) names() (list []string) {
	for _, c := range e.done {
		switch c.(type) {
		case hypervisor.Start:
			list = append(list, "start")
		case hypervisor.Stop:
			list = append(list, "stop")
		case hypervisor.Kill:
			list = append(list, "kill")
		case hypervisor.Reboot:
			list = append(list, "reboot")
		case hypervisor.Resize:
			list = append(list, "resize")
		case hypervisor.Pause:
			list = append(list, "pause")
		case hypervisor.Unpause:
			list = append(list, "unpause")
		default:
			list = append(list, "other")
		}
	}
	return list
}

func (e *eyewitness) wants(commands ...string) {
	e.s.t.Helper()
	if got := e.names(); !slices.Equal(got, commands) {
		e.s.t.Errorf("the hypervisor was told to %q, want %q; %q", got, commands, e.s.noted)
	}
}

// sized asks for another size.
func sized(memory hypervisor.Bytes, cpus int) func(*store.VM) {
	return func(v *store.VM) { v.VM.Memory, v.VM.CPUs = memory, cpus }
}

func rebooted(v *store.VM) { v.Reboots++ }

// wantSize checks what the hypervisor runs, and what the record says that it runs.
func (s *harness) wantSize(memory hypervisor.Bytes, cpus int) {
	s.t.Helper()
	d, err := s.Host("n1").Domain(ctx, vm)
	s.ok(err)
	now := s.vm().Now()
	if d.VM.Memory != memory || d.VM.CPUs != cpus || now.Memory != memory || now.CPUs != cpus {
		s.t.Errorf("it runs with %v and %d CPUs, its record says %v and %d, want %v and %d; %q",
			d.VM.Memory, d.VM.CPUs, now.Memory, now.CPUs, memory, cpus, s.noted)
	}
}

// off and on are an owner's words.
func off(s *harness) {
	s.changeVM(func(v *store.VM) { v.Stopped = true })
	s.pass(3 * time.Second)
}

func on(s *harness) { s.changeVM(func(v *store.VM) { v.Stopped = false }) }

// orders are every order, what the hypervisor is told for it, and what is left in the end.
var orders = []struct {
	name  string
	order func(*harness)
	want  []string
	doing store.Operation // stored when the first command is given
	state hypervisor.DomainState
	boots int
}{
	{"nothing is asked", func(*harness) {}, nil, "", hypervisor.Running, 0},
	{"stop", off, []string{"stop"}, store.Stopping, hypervisor.Shutoff, 0},
	{"kill", func(s *harness) {
		s.changeVM(func(v *store.VM) { v.Stopped, v.Kill = true, true })
	}, []string{"kill"}, store.Stopping, hypervisor.Shutoff, 0},
	{"stop, and then kill as it takes too long", func(s *harness) {
		s.changeVM(func(v *store.VM) { v.Stopped = true })
		s.reconciles("n1")
		s.changeVM(func(v *store.VM) { v.Kill = true })
		s.reconciles("n1")
		s.wantState("n1", hypervisor.Shutoff)
	}, []string{"stop", "kill"}, store.Stopping, hypervisor.Shutoff, 0},
	{"kill a VM that is paused", func(s *harness) {
		s.ok(s.Host("n1").Do(ctx, vm, hypervisor.Pause{}))
		s.changeVM(func(v *store.VM) { v.Stopped, v.Kill = true, true })
	}, []string{"kill"}, store.Stopping, hypervisor.Shutoff, 0},
	{"stop and start", func(s *harness) { off(s); on(s) }, []string{"stop", "start"},
		store.Stopping, hypervisor.Running, 1},
	{"start while it stops", func(s *harness) {
		s.changeVM(func(v *store.VM) { v.Stopped = true })
		s.reconciles("n1")
		on(s)
	}, []string{"stop", "start"}, store.Stopping, hypervisor.Running, 1},
	{"reboot", func(s *harness) { s.changeVM(rebooted) }, []string{"reboot"},
		store.Rebooting, hypervisor.Running, 0},
	{"reboot, and again while it does", func(s *harness) {
		s.changeVM(rebooted)
		s.reconciles("n1")
		s.changeVM(rebooted)
	}, []string{"reboot"}, store.Rebooting, hypervisor.Running, 0},
	{"reboot twice", func(s *harness) {
		s.changeVM(rebooted)
		s.pass(20 * time.Second)
		s.changeVM(rebooted)
	}, []string{"reboot", "reboot"}, store.Rebooting, hypervisor.Running, 0},
	{"reboot a VM that is off: nothing when it starts", func(s *harness) {
		off(s)
		s.changeVM(rebooted)
		s.pass(time.Second)
		on(s)
	}, []string{"stop", "start"}, store.Stopping, hypervisor.Running, 1},
}

func TestOrders(t *testing.T) {
	for _, r := range orders {
		t.Run(r.name, func(t *testing.T) {
			s, e := witnessed(t)
			r.order(s)
			s.pass(30 * time.Second)
			e.wants(r.want...)
			s.wantState("n1", r.state)
			v := s.vm()
			if len(e.doing) > 0 && e.doing[0] != r.doing {
				t.Errorf("the store said %q when it was done, want %q", e.doing[0], r.doing)
			}
			if v.Operation != store.Nothing || v.Rebooted != v.Reboots && r.boots > 0 ||
				v.Ended != v.Stopped || v.Boots != r.boots || v.Trouble != "" {
				t.Errorf("its record: %+v", v)
			}
		})
	}
}

// resizes are what an owner may ask for, and the size that goes on.
var resizes = []struct {
	name  string
	order func(*harness)
	want  []string
	gib   hypervisor.Bytes
	cpus  int
	why   string // the trouble contains it
}{
	{"a running VM goes on as it is", func(s *harness) { s.changeVM(sized(8*gib, 2)) },
		nil, 4, 1, ""},
	{"a reboot with another size is a stop, a resize and a start", func(s *harness) {
		s.changeVM(sized(8*gib, 2))
		s.pass(time.Second)
		s.changeVM(rebooted)
	}, []string{"stop", "resize", "start"}, 8, 2, ""},
	{"a size in one breath with the reboot", func(s *harness) {
		s.changeVM(func(v *store.VM) { sized(2*gib, 1)(v); rebooted(v) })
	}, []string{"stop", "resize", "start"}, 2, 1, ""},
	{"a VM that is off has its new size when it starts", func(s *harness) {
		s.changeVM(func(v *store.VM) { v.Stopped = true })
		s.pass(3 * time.Second)
		s.changeVM(func(v *store.VM) { sized(8*gib, 2)(v); v.Stopped = false })
	}, []string{"stop", "resize", "start"}, 8, 2, ""},
	{"a host cannot hold the size: it says why, and the old size goes on", func(s *harness) {
		s.changeVM(sized(100*gib, 100))
	}, nil, 4, 1, "memory needs 100GiB has 64GiB; cpus needs 100 has 64"},
	{"a reboot with a size that does not fit is a reboot", func(s *harness) {
		s.changeVM(func(v *store.VM) { sized(100*gib, 1)(v); rebooted(v) })
	}, []string{"reboot"}, 4, 1, "memory needs 100GiB has 64GiB"},
	{"a VM that is off starts with its old size when the new one does not fit",
		func(s *harness) {
			s.changeVM(func(v *store.VM) { v.Stopped = true })
			s.pass(3 * time.Second)
			s.changeVM(func(v *store.VM) { sized(100*gib, 1)(v); v.Stopped = false })
		}, []string{"stop", "start"}, 4, 1, "memory needs 100GiB has 64GiB"},
	{"a VM whose wish is taken back is no longer in trouble", func(s *harness) {
		s.changeVM(sized(100*gib, 1))
		s.pass(time.Second)
		s.changeVM(sized(4*gib, 1))
	}, nil, 4, 1, ""},
	{"a VM that crashes starts with its old size", func(s *harness) {
		s.changeVM(sized(8*gib, 2))
		s.pass(time.Second)
		s.ok(s.KillDomain("n1", vm))
	}, []string{"start"}, 4, 1, ""},
	{"a VM that crashes while it is being resized starts with its old size",
		func(s *harness) {
			s.changeVM(func(v *store.VM) { sized(8*gib, 2)(v); rebooted(v) })
			s.reconciles("n1")
			s.ok(s.KillDomain("n1", vm))
		}, []string{"stop", "start"}, 4, 1, ""},
	{"a VM whose host lost power has its new size when it starts", func(s *harness) {
		s.changeVM(sized(8*gib, 2))
		s.pass(time.Second)
		s.ok(s.CrashHost("n1"))
		s.ok(s.RestartHost("n1"))
	}, []string{"resize", "start"}, 8, 2, ""},
}

func TestResizing(t *testing.T) {
	for _, r := range resizes {
		t.Run(r.name, func(t *testing.T) {
			s, e := witnessed(t)
			s.changeVM(func(v *store.VM) { v.Size = store.SizeOf(v.VM) })
			r.order(s)
			s.pass(30 * time.Second)
			e.wants(r.want...)
			s.wantState("n1", hypervisor.Running)
			s.wantSize(r.gib*gib, r.cpus)
			v := s.vm()
			if (r.why == "") != (v.Trouble == "") || !strings.Contains(v.Trouble, r.why) {
				t.Errorf("its trouble is %q, want %q", v.Trouble, r.why)
			}
			if v.Operation != store.Nothing || v.Reboots != v.Rebooted {
				t.Errorf("its record: %+v", v)
			}
		})
	}
}

// A VM that was started with room to grow grows while it runs; what there is no room for waits for its
// next start. The resize is stored before it is done, so that no migration begins meanwhile.
func TestAVMThatRunsGrows(t *testing.T) {
	s, e := witnessed(t)
	s.changeVM(func(v *store.VM) {
		v.Size = store.SizeOf(v.VM)
		v.VM.Hardware = &hypervisor.Hardware{MaxMemory: 16 * gib, MaxCPUs: 4}
		rebooted(v)
	})
	s.pass(30 * time.Second)
	e.wants("stop", "resize", "start")
	tries := 0
	e.refuses = func(c hypervisor.Command) error {
		if _, resize := c.(hypervisor.Resize); resize && tries == 0 {
			tries++
			return &hypervisor.Error{Op: "Resize", Kind: hypervisor.Unknown}
		}
		return nil
	}
	s.changeVM(sized(8*gib, 2))
	s.pass(30 * time.Second)
	e.wants("stop", "resize", "start", "resize", "resize")
	s.wantSize(8*gib, 2)
	for _, doing := range e.doing[3:] {
		if doing != store.Resizing {
			t.Errorf("the store said %q when it was resized", doing)
		}
	}
	s.changeVM(sized(4*gib, 2))
	s.pass(30 * time.Second)
	s.changeVM(sized(32*gib, 2))
	s.pass(30 * time.Second)
	e.wants("stop", "resize", "start", "resize", "resize")
	s.wantSize(8*gib, 2)
	v := s.vm()
	if got := v.Now(); v.Operation != store.Nothing || v.Trouble != "" || v.Boots != 1 ||
		!slices.Equal(got.Hardware.DIMMs, []hypervisor.Bytes{4 * gib}) {
		t.Errorf("its record: %+v, and it has %+v", v, got.Hardware)
	}
	s.changeVM(rebooted)
	s.pass(30 * time.Second)
	s.wantSize(32*gib, 2)
	if got := s.vm().Now(); got.Hardware.DIMMs != nil {
		t.Errorf("it has started with %v", got.Hardware.DIMMs)
	}
}

// The disks of a VM grow while it runs, also one that came later; what it shall have when it is off, it
// starts with.
func TestTheDisksOfAVMGrow(t *testing.T) {
	s, e := witnessed(t)
	disk := func(name string, size hypervisor.Bytes) hypervisor.Disk {
		return hypervisor.Disk{Name: name, Size: size}
	}
	with := func(disks ...hypervisor.Disk) func(*store.VM) {
		return func(v *store.VM) { v.VM = v.VM.WithDisks(disks) }
	}
	has := func(want ...hypervisor.Disk) {
		t.Helper()
		d, err := s.Host("n1").Domain(ctx, vm)
		s.ok(err)
		if now := s.vm().Now().Hardware.Disks; !slices.Equal(d.VM.Hardware.Disks, want) || !slices.Equal(now, want) {
			t.Errorf("it has %+v, its record says %+v, want %+v", d.VM.Hardware.Disks, now, want)
		}
	}
	s.changeVM(func(v *store.VM) {
		v.Size = store.SizeOf(v.VM)
		v.DiskChanges = []store.DiskChange{attach(disk("data", gib))}
	})
	s.pass(30 * time.Second)
	s.changeVM(with(disk("data", 2*gib)))
	s.pass(30 * time.Second)
	has(disk("data", 2*gib))
	if !slices.ContainsFunc(s.noted, func(text string) bool {
		return strings.Contains(text, "resized to 4GiB and 1 CPUs, disk data of 2GiB while it runs")
	}) {
		t.Errorf("it is noted %q", s.noted)
	}
	s.changeVM(func(v *store.VM) { v.Stopped = true })
	s.pass(30 * time.Second)
	s.changeVM(func(v *store.VM) { with(disk("data", 3*gib))(v); v.Stopped = false })
	s.pass(30 * time.Second)
	has(disk("data", 3*gib))
	e.wants("other", "resize", "stop", "resize", "start")
}

// A VM that was put into the store while it ran has no size there. When the operator wants
// another one, its agent says which it has: the room that it takes is that.
func TestTheSizeOfAVMThatWasNotStartedHereIsFound(t *testing.T) {
	s, _ := witnessed(t)
	s.changeVM(sized(8*gib, 2))
	s.pass(time.Second)
	s.wantSize(4*gib, 1)
	if got := s.vm().Place().Memory; got != 4*gib {
		t.Errorf("it takes %v", got)
	}
}

// The host has the room by its own count, and its hypervisor refuses nevertheless.
func TestASizeThatTheHypervisorRefusesIsNotTaken(t *testing.T) {
	for _, kind := range []hypervisor.Kind{hypervisor.NoRoom, hypervisor.Invalid,
		hypervisor.Unsupported, hypervisor.Conflict} {
		s, e := witnessed(t)
		e.refuses = func(c hypervisor.Command) error {
			if _, resize := c.(hypervisor.Resize); resize {
				return &hypervisor.Error{Op: "Resize", Kind: kind}
			}
			return nil
		}
		s.changeVM(func(v *store.VM) {
			v.Size = store.SizeOf(v.VM)
			sized(8*gib, 2)(v)
			rebooted(v)
		})
		s.pass(30 * time.Second)
		e.wants("stop", "resize", "start")
		s.wantState("n1", hypervisor.Running)
		s.wantSize(4*gib, 1)
	}
}

// A VM that was off has kept no room. While others are in it, it stays off, and says why; when
// they have gone it starts.
func TestAVMThatWasOffWaitsForRoom(t *testing.T) {
	s, e := witnessed(t)
	s.changeVM(func(v *store.VM) { v.Stopped = true })
	s.pass(3 * time.Second)
	large := hypervisor.VM{ID: "large", Memory: 62 * gib, CPUs: 1}
	s.ok(s.Host("n1").Boot(large, fake.Workload{}))
	s.changeVM(func(v *store.VM) { v.Stopped = false })
	s.pass(3 * time.Minute)
	e.wants("stop")
	if v := s.vm(); !v.Ended || !strings.Contains(v.Trouble, "memory needs 4GiB has 2GiB") ||
		v.Boots != 0 {
		t.Errorf("its record: %+v", v)
	}
	s.ok(s.Host("n1").Do(ctx, "large", hypervisor.Kill{}))
	s.pass(2 * time.Minute)
	e.wants("stop", "start")
	if v := s.vm(); v.Ended || v.Trouble != "" {
		t.Errorf("its record: %+v", v)
	}
	s.wantState("n1", hypervisor.Running)
}

// The hypervisor refuses to start a VM: it is tried again, less and less often, and its
// record says why.
func TestAStartThatIsRefusedIsSaidAndTriedAgain(t *testing.T) {
	s, e := witnessed(t)
	e.refuses = func(hypervisor.Command) error {
		return &hypervisor.Error{Op: "Start", Kind: hypervisor.NoRoom}
	}
	s.ok(s.KillDomain("n1", vm))
	for end := s.Now().Add(2 * time.Minute); s.Now().Before(end); {
		wake, err := s.agents["n1"].Reconcile(ctx, s.Now())
		if err == nil || s.vm().Trouble == "" {
			t.Fatalf("error %v, trouble %q", err, s.vm().Trouble)
		}
		s.AdvanceTo(wake)
	}
	if n := len(e.done); n < 5 || n > 12 {
		t.Errorf("it was tried %d times in two minutes", n)
	}
	if n := strings.Count(strings.Join(s.noted, "\n"), "starts anew"); n != 1 {
		t.Errorf("it was said %d times: %q", n, s.noted)
	}
	e.refuses = nil
	s.pass(time.Minute)
	s.wantState("n1", hypervisor.Running)
	if v := s.vm(); v.Trouble != "" || v.Operation != store.Nothing {
		t.Errorf("its record: %+v", v)
	}
}

// Whatever is ordered, a VM that a migration has claimed is left alone.
func TestOrdersWaitForAMigration(t *testing.T) {
	for name, order := range map[string]func(*store.VM){
		"stop": func(v *store.VM) { v.Stopped = true }, "reboot": rebooted,
		"kill":   func(v *store.VM) { v.Stopped, v.Kill = true, true },
		"resize": func(v *store.VM) { sized(8*gib, 1)(v); rebooted(v) },
	} {
		t.Run(name, func(t *testing.T) {
			s, e := witnessed(t)
			s.changeVM(func(v *store.VM) { v.ActiveMigration = job; order(v) })
			s.pass(10 * time.Second)
			e.wants()
		})
		t.Run(name+", and the claim comes between", func(t *testing.T) {
			records := &racing{Memory: store.NewMemory()}
			s := newHarness(t, records)
			e := &eyewitness{machine: s.Host("n1"), s: s}
			s.agents["n1"] = agent.New("n1", agent.Config{}, e, s.as("n1", s.store), s)
			s.changeVM(order)
			records.first = func() { s.changeVM(func(v *store.VM) { v.ActiveMigration = job }) }
			s.pass(10 * time.Second)
			e.wants()
		})
	}
}

// The memory that the target reserves is that which the VM has, not the one that the operator
// wants. When the record has the other one, nothing is sent.
func TestAVMThatIsToBeResizedMovesAsItIs(t *testing.T) {
	s, _ := witnessed(t)
	s.changeVM(func(v *store.VM) { v.Size = store.SizeOf(v.VM) })
	s.changeVM(sized(8*gib, 2))
	s.sending()
	s.pass(20 * time.Second)
	s.wantState("n2", hypervisor.Running)
	d, err := s.Host("n2").Domain(ctx, vm)
	s.ok(err)
	if d.VM.Memory != 4*gib {
		t.Errorf("it arrived with %v", d.VM.Memory)
	}

	s, _ = witnessed(t)
	s.changeVM(sized(8*gib, 2)) // no agent has said that it has 4 GiB
	s.begin(migration.PreparingTarget)
	s.changeVM(func(v *store.VM) { v.ActiveMigration = job })
	s.reconciles("n2")
	s.phase(migration.TargetReady)
	s.reconciles("n1")
	if m := s.move(); !m.Source.Failed || m.Source.Started ||
		!strings.Contains(m.Source.Error, "another size") {
		t.Errorf("the source says %+v", m.Source)
	}
	s.wantState("n1", hypervisor.Running)
}

// A start that fails gives a hint, as all that changes does: it is no reason to try again
// at once.
func TestAStartThatFailsIsNotRepeatedForItsOwnHint(t *testing.T) {
	s, e := witnessed(t)
	powerCut(s)
	e.refuses = func(c hypervisor.Command) error {
		s.agents["n1"].Hint(vm)
		return &hypervisor.Error{Op: "Do", Kind: hypervisor.Conflict}
	}
	s.pass(time.Minute)
	if tries := s.vm().Boots; tries < 2 || tries > 7 { // at 0, 1, 3, 7, 15, 31 and 61 s
		t.Errorf("it was started %d times in a minute", tries)
	}
}
