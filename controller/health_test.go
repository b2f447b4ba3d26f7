package controller_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

func TestARebuildDoesNotGoWhereMigrationsHaveJustFailed(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		s := newHarness(t, controller.FailoverConfig{}, "n1", "n2", "n3")
		s.changeHost("n2", func(h *store.Host) { h.Host.Memory = 128 * gib }) // the best one
		s.fencer.works("n1")
		s.addVM("web", "n1", 4*gib)
		s.addVM("other", "n3", 4*gib)
		s.run(time.Minute)
		s.silence("n1")
		s.run(50 * time.Second)
		s.put(&store.Migration{Spec: migration.Spec{ID: "other#1", VM: "other"},
			State: migration.State{Phase: migration.Failed, Because: migration.Overdue,
				Source: "n3", Target: "n2", Entered: s.now},
			Target: store.TargetReport{Ready: true}})
		if restarted {
			s.restart()
		}
		s.run(2 * time.Minute)
		s.wantOn("web", "n3")
	}
}

func TestARebuildGoesWhereMigrationsFailedIfThereIsNoOtherHost(t *testing.T) {
	s := newHarness(t, controller.FailoverConfig{}, "n1", "n2", "n3")
	s.fencer.works("n1")
	s.changeHost("n3", func(h *store.Host) { h.Cordoned = true })
	s.addVM("web", "n1", 4*gib)
	s.run(time.Minute)
	s.silence("n1")
	s.run(50 * time.Second)
	s.put(&store.Migration{Spec: migration.Spec{ID: "other#1", VM: "other"},
		State: migration.State{Phase: migration.Failed, Because: migration.Overdue,
			Source: "n3", Target: "n2", Entered: s.now},
		Target: store.TargetReport{Ready: true}})
	s.run(time.Minute)
	s.wantOn("web", "n2")
}

// n2 does not start what it is given: it is given one VM at a time then, and later each time.
func TestAHostThatDoesNotStartVMsGetsOneAtATime(t *testing.T) {
	s := newHarness(t, controller.FailoverConfig{FenceAfter: time.Minute, StormShare: 0.9}, "n1", "n2", "n3",
		"n4")
	s.fencer.works("n1", "n3")
	s.changeHost("n4", func(h *store.Host) { h.Cordoned = true })
	s.addVM("first", "n1", gib)
	for i := range 8 {
		s.addVM(fmt.Sprint("late-", i), "n3", gib)
	}
	s.changeHost("n3", func(h *store.Host) { h.Cordoned = true })
	s.run(time.Minute)
	s.silence("n1")
	s.run(2 * time.Minute)
	s.wantOn("first", "n2")
	s.run(2 * time.Minute) // and does not start
	s.silence("n3")
	s.run(2 * time.Minute)
	given := 0
	for i := range 8 {
		if s.vm(fmt.Sprint("late-", i)).Host == "n2" {
			given++
		}
	}
	if given == 0 || given > 2 {
		t.Errorf("n2 got %d VMs, want a few:\n%s", given, strings.Join(s.notes, "\n"))
	}
	why := fmt.Sprint(s.failover.Why("late-7", s.now))
	if !strings.Contains(why, "n2: health") || !strings.Contains(why, "the start hangs") {
		t.Errorf("it waits because %s", why)
	}
	s.changeHost("n4", func(h *store.Host) { h.Cordoned = false })
	s.run(10 * time.Second)
	s.wantOn("late-7", "n4")
}

// A host that has refused to start a VM, and then starts one, is a host like others.
func TestAHostThatStartsVMsAgainGetsAll(t *testing.T) {
	s := newHarness(t, controller.FailoverConfig{StormShare: 0.9}, "n1", "n2", "n3")
	s.fencer.works("n1")
	s.changeHost("n3", func(h *store.Host) { h.Cordoned = true })
	for i := range 4 {
		s.addVM(fmt.Sprint("v", i), "n1", hypervisor.Bytes(4-i)*gib)
	}
	s.run(time.Minute)
	s.silence("n1")
	for range 60 {
		s.run(5 * time.Second)
		if v := s.vm("v0"); v.Host == "n2" && v.Trouble == "" && v.Boots == 0 {
			s.changeVM("v0", func(v *store.VM) { v.Trouble = "it does not start: no room" })
			break
		}
	}
	s.changeVM("v0", func(v *store.VM) { v.Trouble, v.Boots = "", 1 })
	s.run(time.Minute)
	for i := range 4 {
		s.wantOn(fmt.Sprint("v", i), "n2")
	}
}
