package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// snapshotHarness is a harness whose VM has a local qcow2 disk.
func snapshotHarness(t *testing.T) *harness {
	s := harnessWithAbilities(t, store.NewMemory(), hypervisor.CanAttachDisk|hypervisor.CanSnapshot)
	s.asking(attach(hypervisor.Disk{Name: "root", Format: "qcow2", Size: gib}))
	s.pass(time.Second)
	return s
}

// snapshot asks for something, and returns what has become of that.
func (s *harness) snapshot(what, name string) store.SnapshotRequest {
	s.t.Helper()
	s.changeVM(func(v *store.VM) {
		v.AskSnapshot(store.SnapshotRequest{ID: name, What: what, Disk: "root", Name: name, By: "ann",
			At: s.Now()})
	})
	s.pass(10 * time.Second)
	v := s.vm()
	r := v.SnapshotRequests[len(v.SnapshotRequests)-1]
	if r.Ended.IsZero() || v.Operation != store.Nothing {
		s.t.Errorf("%s has not ended: %+v", r.Words(), v)
	}
	return r
}

func TestSnapshots(t *testing.T) {
	s := snapshotHarness(t)
	if r := s.snapshot(store.CreateSnapshot, "a"); r.Why != "" || len(s.vm().Snapshots) != 1 {
		t.Errorf("it is refused: %+v", r)
	}
	if can, why := s.vm().CanMigrate(); can || !strings.Contains(why, "its local disk root has the snapshot a") {
		t.Errorf("it can migrate, and would lose the snapshot: %q", why)
	}
	if r := s.snapshot(store.RevertSnapshot, "a"); !strings.Contains(r.Why, "godwit vm stop it first") {
		t.Errorf("a disk of a VM that runs is reverted: %+v", r)
	}
	off(s)
	if r := s.snapshot(store.RevertSnapshot, "a"); r.Why != "" {
		t.Errorf("it is refused: %+v", r)
	}
	on(s)
	s.pass(20 * time.Second)
	if r := s.snapshot(store.DeleteSnapshot, "a"); r.Why != "" || s.vm().Snapshots != nil {
		t.Errorf("it is refused: %+v", r)
	}
	if can, why := s.vm().CanMigrate(); !can {
		t.Errorf("it cannot migrate: %s", why)
	}
	for range 20 {
		s.snapshot(store.CreateSnapshot, "b")
	}
	if n := len(s.vm().SnapshotRequests); n > 9 {
		t.Errorf("%d requests are kept", n)
	}
}

// A request is carried out once, whatever becomes of the agent and of the answer, and no migration
// begins until it has ended.
func TestASnapshotSurvivesItsAgent(t *testing.T) {
	s := snapshotHarness(t)
	s.ok(s.Inject(fake.Fault{Host: "n1", Op: "Snapshot", How: fake.FailAfter, Times: 1}))
	s.changeVM(func(v *store.VM) {
		v.AskSnapshot(store.SnapshotRequest{ID: "1", What: store.CreateSnapshot, Disk: "root", Name: "a"})
	})
	if err := s.act("n1"); err == nil {
		t.Fatal("the call was answered")
	}
	if v := s.vm(); !v.Between() || v.Status().Running {
		t.Errorf("a migration may begin: %+v", v)
	}
	s.agents["n1"] = agent.New("n1", agent.Config{}, s.Host("n1"), s.as("n1", s.store), s)
	s.pass(10 * time.Second)
	if v := s.vm(); len(v.Snapshots) != 1 || v.Asking() || v.Operation != store.Nothing {
		t.Errorf("its record: %+v", v)
	}
	s.changeVM(func(v *store.VM) { v.ActiveMigration = job })
	s.begin(migration.TargetReady, func(m *store.Migration) {
		m.Options, m.Target.Address = &migration.Options{}, "nowhere"
	})
	s.reconciles("n1")
	if m := s.move(); !m.Source.Failed || !strings.Contains(m.Source.Error, "which a migration would lose") {
		t.Errorf("the source says %+v", m.Source)
	}
}

func TestAHostThatCannotSnapshotSaysSo(t *testing.T) {
	s := harnessWithAbilities(t, store.NewMemory(), hypervisor.CanResize)
	if r := s.snapshot(store.CreateSnapshot, "a"); r.Why != "n1 cannot make snapshots" {
		t.Errorf("it says %+v", r)
	}
}
