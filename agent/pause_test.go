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

func pausedBy(who string) func(*store.VM) {
	return func(v *store.VM) { v.Pause, v.Asked = true, &store.Asked{By: who, What: "pause"} }
}

func resumed(v *store.VM) { v.Pause = false }

// pauses are what an owner asks for, what the hypervisor is told, and what the guest does then.
var pauses = []struct {
	name    string
	order   func(*harness)
	want    []string
	state   hypervisor.DomainState
	trouble string // a part of it
}{
	{"a VM is paused once", func(s *harness) { s.changeVM(pausedBy("ann")) }, []string{"pause"},
		hypervisor.Paused, ""},
	{"and resumed", func(s *harness) {
		s.changeVM(pausedBy("ann"))
		s.pass(time.Second)
		s.changeVM(resumed)
	}, []string{"pause", "unpause"}, hypervisor.Running, ""},
	{"a pause that is taken back before it was seen is none", func(s *harness) {
		s.changeVM(pausedBy("ann"))
		s.changeVM(resumed)
	}, nil, hypervisor.Running, ""},
	{"a guest that another program has paused is left alone", func(s *harness) {
		s.ok(s.Host("n1").Do(ctx, vm, hypervisor.Pause{}))
	}, nil, hypervisor.Paused, "its guest is paused, and not by godwit"},
	{"until godwit adopts that and takes it back", func(s *harness) {
		s.ok(s.Host("n1").Do(ctx, vm, hypervisor.Pause{}))
		s.pass(time.Second)
		s.changeVM(pausedBy("ann"))
		s.pass(time.Second)
		s.changeVM(resumed)
	}, []string{"unpause"}, hypervisor.Running, ""},
	{"a paused guest cannot shut down", func(s *harness) {
		s.changeVM(pausedBy("ann"))
		s.pass(time.Second)
		s.changeVM(func(v *store.VM) { v.Stopped = true })
	}, []string{"pause"}, hypervisor.Paused, "its guest is paused: godwit vm resume it, or godwit vm stop --kill"},
	{"it does when it is resumed", func(s *harness) {
		s.changeVM(pausedBy("ann"))
		s.pass(time.Second)
		s.changeVM(func(v *store.VM) { v.Stopped = true })
		s.pass(time.Second)
		s.changeVM(resumed)
	}, []string{"pause", "unpause", "stop"}, hypervisor.Shutoff, ""},
	{"it is powered off", func(s *harness) {
		s.changeVM(pausedBy("ann"))
		s.pass(time.Second)
		s.changeVM(func(v *store.VM) { v.Stopped, v.Kill = true, true })
	}, []string{"pause", "kill"}, hypervisor.Shutoff, ""},
	{"a guest that reboots is paused after that", func(s *harness) {
		s.changeVM(rebooted)
		s.reconciles("n1")
		s.changeVM(pausedBy("ann"))
	}, []string{"reboot", "pause"}, hypervisor.Paused, ""},
	{"a VM that crashes while it is paused starts, and is paused again", func(s *harness) {
		s.changeVM(pausedBy("ann"))
		s.pass(time.Second)
		s.ok(s.KillDomain("n1", vm))
	}, []string{"pause", "start", "pause"}, hypervisor.Paused, ""},
}

func TestPausing(t *testing.T) {
	for _, r := range pauses {
		t.Run(r.name, func(t *testing.T) {
			s, e := witnessed(t)
			r.order(s)
			s.pass(30 * time.Second)
			e.wants(r.want...)
			s.wantState("n1", r.state)
			v := s.vm()
			if (r.trouble == "") != (v.Trouble == "") || !strings.Contains(v.Trouble, r.trouble) {
				t.Errorf("its trouble is %q, want %q", v.Trouble, r.trouble)
			}
			if v.Operation != store.Nothing || v.Pause && !v.Paused || !v.Pause && v.Paused {
				t.Errorf("its record: %+v", v)
			}
			if len(r.want) > 0 && r.want[0] == "pause" &&
				!slices.Contains(s.noted, "is paused: pause asked for by ann") {
				t.Errorf("the requester is not named: %q", s.noted)
			}
		})
	}
}

// The agent dies after every writing and every command: what the operator wants comes about, and the
// guest is resumed although the agent that has paused it is gone.
func TestAPauseSurvivesItsAgent(t *testing.T) {
	for _, how := range []fake.FaultEffect{fake.FailBefore, fake.FailAfter, fake.LateEffect} {
		s := newHarness(t, store.NewMemory())
		s.ok(s.Inject(fake.Fault{Host: "n1", Op: "Pause", How: how, Times: 1, Delay: 5 * time.Second}))
		s.changeVM(pausedBy("ann"))
		_ = s.act("n1") // the answer is an error
		s.agents["n1"] = agent.New("n1", agent.Config{}, s.Host("n1"), s.as("n1", s.store), s)
		s.changeVM(resumed)
		s.pass(30 * time.Second)
		s.wantState("n1", hypervisor.Running)
		if v := s.vm(); v.Paused || v.Operation != store.Nothing {
			t.Errorf("%v: its record: %+v", how, v)
		}
	}
}

// A paused guest moves as it is. What is asked for while it moves is done where it arrives.
func TestAPausedGuestMovesPaused(t *testing.T) {
	for name, late := range map[string]func(*store.VM){"paused": nil, "resumed": resumed} {
		t.Run(name, func(t *testing.T) {
			s := newHarness(t, store.NewMemory())
			s.changeVM(pausedBy("ann"))
			s.pass(time.Second)
			s.wantState("n1", hypervisor.Paused)
			s.changeVM(func(v *store.VM) { v.ActiveMigration = job })
			s.sending()
			if late != nil {
				s.changeVM(late)
			}
			s.until("n2", hypervisor.Paused)
			s.reconciles("n1", "n2")
			s.phase(migration.Succeeded)
			s.changeVM(func(v *store.VM) { v.ActiveMigration, v.Host = "", "n2" })
			s.pass(time.Minute)
			want := hypervisor.Paused
			if late != nil {
				want = hypervisor.Running
			}
			s.wantState("n2", want)
			if v := s.vm(); v.Paused != v.Pause || v.Trouble != "" {
				t.Errorf("its record: %+v", v)
			}
		})
	}
}
