package agent_test

import (
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

// bigDisk takes more than a minute to copy in the model.
var bigDisk = hypervisor.Disk{Name: "data", Path: "/old/data", Format: "raw", Size: 10 * gib}

func moveDisk(to string) store.DiskChange {
	return store.DiskChange{Move: &store.DiskMove{Disk: "data", To: to}, By: "ann"}
}

// moveHarness is a harness on which the VM has bigDisk, and may move it.
func moveHarness(t *testing.T) *harness {
	s := harnessWithAbilities(t, store.NewMemory(), hypervisor.CanAttachDisk|hypervisor.CanMoveDisk)
	s.asking(attach(bigDisk))
	s.pass(time.Second)
	s.wantDisks("n1", bigDisk)
	return s
}

// moved is bigDisk at another path.
func moved(to string) hypervisor.Disk { d := bigDisk; d.Path = to; return d }

// cancelled takes back that the disk moves.
func cancelled(v *store.VM) { v.ChangeMove(0, func(m *store.DiskMove) { m.Cancel = true }) }

// phases is how the move of the VM's disk goes on its host.
func (s *harness) phases() hypervisor.DiskPhase {
	s.t.Helper()
	d, err := s.Host("n1").Domain(ctx, vm)
	s.ok(err)
	if d.Moving == nil {
		return ""
	}
	return d.Moving.Phase
}

func TestADiskMoves(t *testing.T) {
	for _, row := range []struct {
		name string
		ask  func(*harness)
		want hypervisor.Disk
	}{
		{"while the VM runs", func(*harness) {}, moved("/new/data")},
		{"and the guest is paused meanwhile", func(s *harness) {
			s.changeVM(pausedBy("ann"))
			s.pass(2 * time.Second)
			s.changeVM(resumed)
		}, moved("/new/data")},
		{"after the VM was off, from the beginning", func(s *harness) {
			off(s)
			s.pass(time.Minute)
			if v := s.vm(); !strings.Contains(v.DiskChanges[0].Why, "its VM has to run") {
				s.t.Errorf("its record: %+v", v.DiskChanges[0])
			}
			on(s)
		}, moved("/new/data")},
		{"not when that is taken back", func(s *harness) { s.changeVM(cancelled) }, bigDisk},
		{"not when that is taken back, and its agent dies", func(s *harness) {
			s.changeVM(cancelled)
			s.agents["n1"] = agent.New("n1", agent.Config{}, s.Host("n1"), s.store, s)
		}, bigDisk},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := moveHarness(t)
			s.asking(moveDisk("/new/data"))
			s.pass(5 * time.Second)
			if v := s.vm(); s.phases() != hypervisor.DiskCopying || !v.Between() || !v.MovesDisk() || v.Operation != store.Nothing {
				t.Fatalf("it is %q, and its record %+v", s.phases(), v)
			}
			row.ask(s)
			s.pass(5 * time.Minute)
			s.wantState("n1", hypervisor.Running)
			s.wantDisks("n1", row.want)
			if phase := s.phases(); phase != "" {
				t.Errorf("the move is still %s", phase)
			}
		})
	}
}

// A move that cannot begin says why, lets migrations begin, and is tried again.
func TestADiskThatDoesNotMove(t *testing.T) {
	s := moveHarness(t)
	s.asking(moveDisk(bigDisk.Path))
	s.pass(10 * time.Second)
	if v := s.vm(); !strings.Contains(v.DiskChanges[0].Why, "there already") || v.Between() {
		t.Errorf("its record: %+v", v.DiskChanges[0])
	}
	s.changeVM(cancelled)
	s.pass(10 * time.Second)
	s.wantDisks("n1", bigDisk)

	s = harnessWithAbilities(t, store.NewMemory(), hypervisor.CanAttachDisk)
	s.asking(attach(bigDisk))
	s.pass(time.Second)
	s.asking(moveDisk("/new/data"))
	s.pass(10 * time.Second)
	if v := s.vm(); v.DiskChanges[0].Why != "n1 cannot move disks" {
		t.Errorf("a host that cannot: %+v", v.DiskChanges)
	}
}

// Whatever call is lost, and whether its agent dies then, the record says where the disk is before the
// VM goes over to it, and the move comes to its end.
func TestAMoveOfADiskSurvivesItsAgent(t *testing.T) {
	for _, op := range []string{"MoveDisk", "SwitchDisk", "EndDiskMove"} {
		for _, how := range []fake.FaultEffect{fake.FailBefore, fake.FailAfter, fake.LateEffect} {
			s := moveHarness(t)
			s.ok(s.Inject(fake.Fault{Host: "n1", Op: op, How: how, Times: 1, Delay: 5 * time.Second}))
			s.asking(moveDisk("/new/data"))
			for range 300 {
				s.once()
				s.agents["n1"] = agent.New("n1", agent.Config{}, s.Host("n1"), s.store, s)
				switch v := s.vm(); {
				case s.phases() == hypervisor.DiskSwitched && v.Disks()[0].Path != "/new/data":
					t.Fatalf("%s %v: the VM is on the new image, and its record says %+v", op, how, v.Disks())
				case s.phases() != "" && len(v.DiskChanges) > 0 && !v.Between():
					t.Fatalf("%s %v: a migration may begin: %+v", op, how, v)
				}
				s.pass(time.Second)
			}
			s.wantDisks("n1", moved("/new/data"))
		}
	}
}

// A VM that was started elsewhere, since its host failed when the copy was complete, has the new image. One
// whose host failed before has the old one.
func TestAHostThatFailsWhileADiskMoves(t *testing.T) {
	for _, row := range []struct {
		after time.Duration
		want  string
	}{{5 * time.Second, bigDisk.Path}, {10 * time.Minute, "/new/data"}} {
		s := moveHarness(t)
		s.ok(s.Inject(fake.Fault{Host: "n1", Op: "SwitchDisk", How: fake.FailBefore, Times: 1000}))
		s.asking(moveDisk("/new/data"))
		s.pass(row.after)
		s.ok(s.CrashHost("n1"))
		s.changeVM(func(v *store.VM) { v.Host = "n2" })
		s.pass(time.Minute)
		if got := s.disks("n2"); !slices.Equal(got, []hypervisor.Disk{moved(row.want)}) {
			t.Errorf("after %v it has %v on n2", row.after, got)
		}
	}
}

// A VM that stops when its record says that the disk is at its new path, and before it went over to it, keeps the old
// image: the copy may have broken while its agent was away. One that has started elsewhere since has the new one.
func TestAVMThatStopsBeforeItGoesOverToTheCopy(t *testing.T) {
	for _, row := range []struct {
		name  string
		since func(*store.VM)
		want  string
	}{
		{"not started since", func(*store.VM) {}, bigDisk.Path},
		{"started elsewhere since", func(v *store.VM) { v.Boots++ }, "/new/data"},
		{"and moved there", func(v *store.VM) { v.DiskChanges, v.Boots = nil, v.Boots+1 }, "/new/data"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := moveHarness(t)
			s.ok(s.Inject(fake.Fault{Host: "n1", Op: "SwitchDisk", How: fake.FailBefore, Times: 1_000_000}))
			s.asking(moveDisk("/new/data"))
			s.pass(10 * time.Minute)
			if v := s.vm(); s.phases() != hypervisor.DiskReady || v.Disks()[0].Path != "/new/data" {
				t.Fatalf("it is %q, and its record %+v", s.phases(), v.Disks())
			}
			s.ok(s.Host("n1").Do(ctx, vm, hypervisor.Kill{}))
			s.changeVM(row.since)
			s.pass(time.Second)
			s.wantState("n1", hypervisor.Starting)
			want := []hypervisor.Disk{moved(row.want)}
			if got, noted := s.disks("n1"), s.vm().Disks(); !slices.Equal(got, want) || !slices.Equal(noted, want) {
				t.Errorf("it has %v, and its record says %v: want %v", got, noted, want)
			}
		})
	}
}

// A move that the record does not ask for is ended by the agent.
func TestAMoveThatNothingAsksForEnds(t *testing.T) {
	s := moveHarness(t)
	s.ok(s.Host("n1").Do(ctx, vm, hypervisor.MoveDisk{Disk: "data", To: "/new/data"}))
	s.pass(time.Minute)
	s.wantDisks("n1", bigDisk)
	if phase := s.phases(); phase != "" {
		t.Errorf("the move is still %s", phase)
	}
}

// A migration that was claimed when a disk began to move does not begin.
func TestAMigrationWaitsForADiskThatMoves(t *testing.T) {
	s := moveHarness(t)
	s.asking(moveDisk("/new/data"))
	s.pass(5 * time.Second)
	s.changeVM(func(v *store.VM) { v.ActiveMigration = job })
	s.begin(migration.TargetReady, func(m *store.Migration) { m.Options = &migration.Options{} })
	s.reconciles("n2", "n1")
	if m := s.move(); !m.Source.Failed || !strings.Contains(m.Source.Error, "on its way to another image") {
		t.Errorf("the source says %+v", m.Source)
	}
}
