package agent_test

import (
	"errors"
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

var (
	dataDisk = hypervisor.Disk{Name: "data", Path: "/nfs/data", Format: "raw"}
	otherOne = hypervisor.Disk{Name: "data", Path: "/nfs/other", Format: "raw"}
)

func attach(disk hypervisor.Disk) store.DiskChange {
	return store.DiskChange{Attach: &disk, By: "ann"}
}

func detach(name string) store.DiskChange { return store.DiskChange{Detach: name, By: "ann"} }

// asking asks for changes of the disks.
func (s *harness) asking(changes ...store.DiskChange) {
	s.t.Helper()
	s.changeVM(func(v *store.VM) { v.DiskChanges = append(slices.Clone(v.DiskChanges), changes...) })
}

// disks are the disks of the VM by the hypervisor of a host.
func (s *harness) disks(n name) []hypervisor.Disk {
	s.t.Helper()
	d, err := s.Host(n).Domain(ctx, vm)
	s.ok(err)
	if d.VM.Hardware == nil {
		return nil
	}
	return d.VM.Hardware.Disks
}

// wantDisks checks that the VM has these disks on a host, and that its record says so.
func (s *harness) wantDisks(n name, want ...hypervisor.Disk) {
	s.t.Helper()
	v := s.vm()
	if got := s.disks(n); !slices.Equal(got, want) || !slices.Equal(v.Disks(), want) {
		s.t.Errorf("it has %v, and its record says %v: want %v; %q", got, v.Disks(), want, s.noted)
	}
	if v.Operation != store.Nothing || len(v.DiskChanges) > 0 {
		s.t.Errorf("its record: %+v", v)
	}
}

// diskHarness is a harness on which disks can be attached.
func diskHarness(t *testing.T) *harness {
	return harnessWithAbilities(t, store.NewMemory(), hypervisor.CanAttachDisk)
}

func TestDisksAreAttachedAndDetached(t *testing.T) {
	for _, row := range []struct {
		name string
		ask  func(*harness)
		want []hypervisor.Disk
	}{
		{"attached", func(s *harness) { s.asking(attach(dataDisk)) }, []hypervisor.Disk{dataDisk}},
		{"attached and detached", func(s *harness) {
			s.asking(attach(dataDisk))
			s.pass(time.Second)
			s.asking(detach("data"))
		}, nil},
		{"taken back before it was seen", func(s *harness) { s.asking(attach(dataDisk), detach("data")) }, nil},
		{"replaced by another one of its name", func(s *harness) {
			s.asking(attach(dataDisk), detach("data"), attach(otherOne))
		}, []hypervisor.Disk{otherOne}},
		{"attached while the guest is paused", func(s *harness) {
			s.changeVM(pausedBy("ann"))
			s.pass(time.Second)
			s.asking(attach(dataDisk))
			s.pass(time.Second)
			s.changeVM(resumed)
		}, []hypervisor.Disk{dataDisk}},
		{"attached while the VM is off", func(s *harness) {
			off(s)
			s.asking(attach(dataDisk))
			s.pass(time.Second)
			on(s)
		}, []hypervisor.Disk{dataDisk}},
		{"attached while the guest reboots", func(s *harness) {
			s.changeVM(rebooted)
			s.reconciles("n1")
			s.asking(attach(dataDisk))
		}, []hypervisor.Disk{dataDisk}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := diskHarness(t)
			row.ask(s)
			s.pass(30 * time.Second)
			s.wantState("n1", hypervisor.Running)
			s.wantDisks("n1", row.want...)
		})
	}
}

// A change that is refused says why, keeps no other change waiting, and is taken back by its owner.
func TestADiskThatIsRefused(t *testing.T) {
	s := diskHarness(t)
	bad := hypervisor.Disk{Name: "Bad", Path: "/nfs/bad"}
	s.asking(attach(bad), attach(dataDisk))
	s.pass(10 * time.Second)
	v := s.vm()
	if len(v.DiskChanges) != 1 || !strings.Contains(v.DiskChanges[0].Why, "invalid") ||
		v.Operation != store.Nothing || !slices.Equal(v.Disks(), []hypervisor.Disk{dataDisk}) {
		t.Errorf("its record: %+v", v)
	}
	s.asking(detach("Bad"))
	s.pass(10 * time.Second)
	s.wantDisks("n1", dataDisk)
	s = harnessWithAbilities(t, store.NewMemory(), hypervisor.CanResize)
	s.asking(attach(dataDisk))
	s.pass(10 * time.Second)
	if v := s.vm(); v.DiskChanges[0].Why != "n1 cannot attach or detach disks" {
		t.Errorf("a host that cannot: %+v", v.DiskChanges)
	}
}

// The agent dies, or gets no answer, in the middle: the change is made once, and is announced all the
// time until it is entered, so that no migration begins.
func TestAChangeOfDisksSurvivesItsAgent(t *testing.T) {
	for _, how := range []fake.FaultEffect{fake.FailBefore, fake.FailAfter, fake.LateEffect} {
		s := diskHarness(t)
		s.ok(s.Inject(fake.Fault{Host: "n1", Op: "AttachDisk", How: how, Times: 1, Delay: 5 * time.Second}))
		s.asking(attach(dataDisk))
		if err := s.act("n1"); err == nil && how != fake.FailBefore {
			t.Fatal("the call was answered")
		}
		if v := s.vm(); how != fake.FailBefore && (!v.Between() || v.Status().Running) {
			t.Errorf("%v: a migration may begin: %+v", how, v)
		}
		s.agents["n1"] = agent.New("n1", agent.Config{}, s.Host("n1"), s.as("n1", s.store), s)
		s.pass(30 * time.Second)
		s.wantDisks("n1", dataDisk)
	}
}

// What is asked for while the VM moves is done where it arrives; a migration that was claimed while a
// disk was attached does not begin.
func TestDisksOfAVMThatMoves(t *testing.T) {
	s := diskHarness(t)
	s.asking(attach(dataDisk))
	s.pass(time.Second)
	s.changeVM(func(v *store.VM) { v.ActiveMigration = job })
	s.sending()
	s.asking(detach("data"))
	s.until("n2", hypervisor.Running)
	s.reconciles("n1", "n2")
	if got := s.disks("n2"); !slices.Equal(got, []hypervisor.Disk{dataDisk}) {
		t.Errorf("at the target it has %v", got)
	}
	s.phase(migration.Succeeded)
	s.changeVM(func(v *store.VM) { v.ActiveMigration, v.Host = "", "n2" })
	s.pass(time.Minute)
	s.wantDisks("n2")

	s = diskHarness(t)
	s.asking(attach(dataDisk))
	s.ok(s.Inject(fake.Fault{Host: "n1", Op: "AttachDisk", How: fake.FailAfter, Times: 1}))
	if err := s.act("n1"); err == nil {
		t.Fatal("the call was answered")
	}
	s.changeVM(func(v *store.VM) { v.ActiveMigration = job })
	s.begin(migration.TargetReady, func(m *store.Migration) { m.Options = &migration.Options{} })
	s.reconciles("n2", "n1")
	if m := s.move(); !m.Source.Failed || !strings.Contains(m.Source.Error, "being attached or detached") {
		t.Errorf("the source says %+v", m.Source)
	}
	if _, err := s.Host("n1").Progress(ctx, job); err != nil && !errors.Is(err, hypervisor.NotFound) {
		t.Error(err)
	}
}
