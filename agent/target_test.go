package agent_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// forcedTo lets the migration be a forced one.
func forcedTo(set func(*harness)) func(*harness) {
	return func(s *harness) {
		set(s)
		s.decision = &placement.Decision{Outcome: placement.Accepted, Host: "n2",
			Action: placement.ForcedMigrate}
	}
}

func TestMakingRoom(t *testing.T) {
	large := func(s *harness) { s.changeVM(func(v *store.VM) { v.VM.Memory = 65 * gib }) }
	for _, r := range []struct {
		name string
		set  func(*harness)
		want store.TargetReport
	}{
		{"a host that is large enough is ready", func(*harness) {}, store.TargetReport{Ready: true}},
		{"a host that is too small says what is missing", large, store.TargetReport{
			Refused: []placement.Reason{{Check: "memory", Need: "65GiB", Have: "64GiB"}}}},
		{"nothing is said about a VM that is gone", func(s *harness) {
			s.ok(s.store.Delete(ctx, s.vm()))
		}, store.TargetReport{}},
		{"what else is known about the host is asked, too", func(s *harness) {
			s.put(&store.Host{Host: hypervisor.Host{Name: "n2"}, Facts: &placement.Facts{
				MaxVMs: 1, Zone: "z2", Networks: []string{"red"}}})
			s.ok(s.Host("n2").Boot(hypervisor.VM{ID: "b", Memory: gib}, fake.Workload{}))
			s.changeVM(func(v *store.VM) {
				v.Placement = &placement.Constraints{Networks: []string{"blue"},
					Zones: []string{"z1"}}
			})
		}, store.TargetReport{Refused: []placement.Reason{ // the zone is a wish
			{Check: "max-vms", Need: "fewer than 1 VMs", Have: "1"},
			{Check: "networks", Need: "blue", Have: "red"}}}},
		{"devices are counted that VMs here have", func(s *harness) {
			gpu := &placement.Constraints{Devices: []placement.DeviceAsk{{Class: "gpu", Count: 1}}}
			s.put(&store.Host{Host: hypervisor.Host{Name: "n2"}, Facts: &placement.Facts{
				Devices: placement.Devices{{Class: "gpu", Count: 1}}}})
			other := hypervisor.VM{ID: "b", Memory: gib}
			s.ok(s.Host("n2").Boot(other, fake.Workload{}))
			s.put(&store.VM{VM: other, Host: "n2", Placement: gpu})
			s.changeVM(func(v *store.VM) { v.Placement = gpu })
		}, store.TargetReport{Refused: []placement.Reason{
			{Check: "devices", Need: "1 gpu", Have: "0 gpu"}}}},
		{"force overrules what runs out", forcedTo(func(s *harness) {
			s.put(&store.Host{Host: hypervisor.Host{Name: "n2"},
				Facts: &placement.Facts{MaxVMs: 1}})
			s.ok(s.Host("n2").Boot(hypervisor.VM{ID: "b", Memory: gib}, fake.Workload{}))
		}), store.TargetReport{Ready: true}},
		{"force does not overrule what is not there", forcedTo(func(s *harness) {
			s.put(&store.Host{Host: hypervisor.Host{Name: "n2"},
				Facts: &placement.Facts{Networks: []string{"red"}, MaxVMs: 1}})
			s.changeVM(func(v *store.VM) {
				v.Placement = &placement.Constraints{Networks: []string{"blue"}}
			})
		}), store.TargetReport{Refused: []placement.Reason{
			{Check: "networks", Need: "blue", Have: "red"}}}},
		{"force leaves some memory", forcedTo(func(s *harness) {
			s.changeVM(func(v *store.VM) { v.VM.Memory = 64 * gib })
		}), store.TargetReport{Refused: []placement.Reason{
			{Check: "memory-forced", Need: "more than 64GiB", Have: "64GiB"}}}},
	} {
		t.Run(r.name, func(t *testing.T) {
			s := newHarness(t, store.NewMemory())
			r.set(s)
			s.begin(migration.Scheduling, func(m *store.Migration) { m.Decision = s.decision })
			s.reconciles("n2", "n2")
			if diff := cmp.Diff(r.want, s.move().Target); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHotPluggedVolumesAreAttachedWhenTheyAreAskedFor(t *testing.T) {
	s := newHarness(t, store.NewMemory())
	s.begin(migration.Scheduling)
	s.reconciles("n2", "n2")
	s.change(func(m *store.Migration) { m.Attach = true })
	s.reconciles("n2", "n2")
	if got, want := s.move().Target, (store.TargetReport{Ready: true, Attached: true}); !cmp.Equal(
		got, want) {
		t.Errorf("report %+v, want %+v", got, want)
	}
}

func TestListening(t *testing.T) {
	inject := func(how fake.FaultEffect) func(*harness) {
		return func(s *harness) { s.ok(s.Inject(fake.Fault{Host: "n2", Op: "Receive", How: how})) }
	}
	address := store.TargetReport{Address: "fake://n2/a#1"}
	down := store.TargetReport{Down: true}
	for _, r := range []struct {
		name string
		set  func(*harness)
		want store.TargetReport
	}{
		{"the target listens", func(*harness) {}, address},
		{"a failure without effect is tried again", inject(fake.FailBefore), address},
		{"a lost answer is asked for again", inject(fake.FailAfter), address},
		{"a host without room is down", func(s *harness) {
			s.ok(s.Host("n2").Boot(hypervisor.VM{ID: "b", Memory: 62 * gib}, fake.Workload{}))
		}, down},
		{"a VM that makes no sense is refused", func(s *harness) {
			s.changeVM(func(v *store.VM) { v.VM.Memory = 0 })
		}, down},
		{"a job that was discarded is not received", func(s *harness) {
			s.ok(s.Host("n2").Do(ctx, vm, hypervisor.Discard{Job: job}))
		}, down},
		{"a VM that runs here is not received", func(s *harness) {
			s.ok(s.Host("n2").Boot(aVM, fake.Workload{}))
		}, down},
		{"what rests here of another time is not written over", func(s *harness) {
			s.ok(s.Host("n2").Boot(aVM, fake.Workload{}))
			s.ok(s.KillDomain("n2", vm))
		}, down},
		{"nothing is opened for a VM that is gone", func(s *harness) {
			s.ok(s.store.Delete(ctx, s.vm()))
		}, store.TargetReport{}},
	} {
		t.Run(r.name, func(t *testing.T) {
			s := newHarness(t, store.NewMemory())
			r.set(s)
			s.begin(migration.PreparingTarget)
			for range 3 {
				_ = s.act("n2") // injected faults are errors
				s.AdvanceTo(s.Now().Add(time.Second))
			}
			if diff := cmp.Diff(r.want, s.move().Target); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

func TestArriving(t *testing.T) {
	arrived := func(r *store.TargetReport) { r.Completed = true }
	arrivedAnew := func(r *store.TargetReport) { r.Completed, r.Lost = true, true }
	discarded := func(r *store.TargetReport) { r.Down, r.Discarded = true, true }
	for _, r := range []struct {
		name string
		set  func(*harness)
		want func(*store.TargetReport)
		at   hypervisor.DomainState
	}{
		{"a VM that runs here has arrived",
			func(s *harness) { s.until("n2", hypervisor.Running) }, arrived, hypervisor.Running},
		{"a VM that has shut down since has arrived", func(s *harness) {
			s.until("n2", hypervisor.Running)
			s.ok(s.Host("n2").Do(ctx, vm, hypervisor.Kill{}))
		}, arrivedAnew, hypervisor.Shutoff},
		{"a VM that crashed after it ran has arrived", func(s *harness) {
			s.until("n2", hypervisor.Running)
			s.ok(s.KillDomain("n2", vm))
		}, arrivedAnew, hypervisor.Crashed},
		{"a VM whose host lost power after it ran has arrived", func(s *harness) {
			s.until("n2", hypervisor.Running)
			s.ok(s.CrashHost("n2"))
			s.ok(s.RestartHost("n2"))
		}, arrivedAnew, hypervisor.Shutoff},
		{"one that is on its way is waited for", func(*harness) {}, func(*store.TargetReport) {},
			hypervisor.Receiving},
		{"one whose host lost power on its way never came", func(s *harness) {
			s.ok(s.CrashHost("n2"))
			s.ok(s.RestartHost("n2"))
		}, discarded, hypervisor.Absent},
		{"one whose source is stuck is discarded", func(s *harness) {
			s.until("n1", hypervisor.HandingOver)
			s.change(func(m *store.Migration) { m.Source.Unresolved = true })
		}, discarded, hypervisor.Absent},
		{"one whose source is dead is discarded", func(s *harness) {
			s.change(func(m *store.Migration) {
				m.Evidence = []hypervisor.Evidence{{Proof: hypervisor.HostFenced, Host: "n1"}}
			})
		}, discarded, hypervisor.Absent},
	} {
		t.Run(r.name, func(t *testing.T) {
			s := newHarness(t, store.NewMemory())
			s.sending()
			r.set(s)
			s.reconciles("n2", "n2")
			want := store.TargetReport{Address: "fake://n2/a#1"}
			r.want(&want)
			if diff := cmp.Diff(want, s.move().Target); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
			s.wantState("n2", r.at)
		})
	}
}

// The VM runs at the target and fetches what it lacks: it has not arrived, also
// while the source has not yet told how it is moved.
func TestAVMThatFetchesMemoryHasNotArrived(t *testing.T) {
	s := newHarness(t, store.NewMemory())
	s.ok(s.Host("n1").SetWorkload(vm, fake.Workload{ColdRate: 2e9, Cold: 4 * gib}))
	s.sendingBy(func(m *store.Migration) { m.Options.AllowPostCopy = true })
	s.AdvanceTo(s.Now().Add(time.Second))
	s.ok(s.Host("n1").Adjust(ctx, job, hypervisor.StartPostCopy{}))
	s.until("n2", hypervisor.Running)
	s.reconciles("n2")
	if s.move().Target.Completed {
		t.Fatal("the VM has arrived without its memory")
	}
	s.pass(20 * time.Second)
	if m := s.move(); !m.Target.Completed || m.Source.Mode != hypervisor.PostCopy {
		t.Errorf("in the end: %+v", m.Target)
	}
}

func TestClearingAwayAFailedTarget(t *testing.T) {
	for _, r := range []struct {
		name string
		set  func(*harness)
		at   hypervisor.DomainState
		done bool
	}{
		{"what waits for memory is discarded", func(*harness) {}, hypervisor.Absent, true},
		{"where nothing is nothing may come", func(s *harness) {
			s.ok(s.KillDomain("n2", vm))
		}, hypervisor.Absent, true},
		{"what runs is left alone", func(s *harness) { s.until("n2", hypervisor.Running) },
			hypervisor.Running, false},
		{"what ran and was lost is removed", func(s *harness) {
			s.until("n2", hypervisor.Running)
			s.ok(s.CrashHost("n2"))
			s.ok(s.RestartHost("n2"))
		}, hypervisor.Absent, true},
		{"what is at home here is left alone", func(s *harness) {
			s.until("n2", hypervisor.Running)
			s.changeVM(func(v *store.VM) { v.Host, v.ActiveMigration = "n2", "other" })
			s.ok(s.CrashHost("n2"))
			s.ok(s.RestartHost("n2"))
		}, hypervisor.Shutoff, true},
	} {
		t.Run(r.name, func(t *testing.T) {
			s := newHarness(t, store.NewMemory())
			s.sending()
			r.set(s)
			s.phase(migration.Failed)
			s.reconciles("n2", "n2")
			s.wantState("n2", r.at)
			if got := s.move().Target.Discarded; got != r.done {
				t.Errorf("discarded: %v; %q", got, s.noted)
			}
		})
	}
}

// The VM ran here and was lost, its rest was removed, and the agent died before it could say
// so. The migration has failed: the VM is at its source, and nothing is left to be done here.
func TestATargetThatRanAndIsGoneIsClearedAway(t *testing.T) {
	s := newHarness(t, store.NewMemory())
	s.sending()
	s.until("n2", hypervisor.Running)
	s.ok(s.KillDomain("n2", vm))
	s.ok(s.Host("n2").Do(ctx, vm, hypervisor.Forget{}))
	s.phase(migration.Failed)
	s.reconciles("n2")
	if !s.move().Target.Discarded {
		t.Errorf("the target says %+v", s.move().Target)
	}
}
