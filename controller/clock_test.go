package controller_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// TestAClockThatIsSetFencesNoHostThatLives: NTP sets the clock, or the leader's own machine was
// stopped for a while. Hosts that give their signs are not lost or fenced for it, whichever way the clock
// is set, and how often; one that is silent is, when the clock goes on.
func TestAClockThatIsSetFencesNoHostThatLives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newHarness(t, controller.FailoverConfig{}, "n1", "n2", "n3")
		s.addVM("a", "n1", gib)
		s.fencer.works("n1")
		s.run(time.Minute)
		jumps := rapid.SliceOfN(rapid.Int64Range(-5*3600, 5*3600), 1, 6).Draw(t, "jumps")
		for _, seconds := range jumps {
			s.now = s.now.Add(time.Duration(seconds) * time.Second)
			if rapid.Bool().Draw(t, "before the next sign") {
				s.look()
			}
			s.run(time.Duration(rapid.IntRange(0, 30).Draw(t, "looks")) * 5 * time.Second)
		}
		for _, h := range []hostName{"n1", "n2", "n3"} {
			if r := s.host(h); r.Fenced || r.Fencing != nil {
				t.Fatalf("%s lives and is fenced: %+v", h, r)
			}
		}
		s.wantSaid("is lost", 0)
		s.wantOn("a", "n1")
		s.silence("n1")
		s.now = s.now.Add(-3 * time.Hour)
		s.run(10 * time.Minute)
		if !s.host("n1").Fenced {
			t.Errorf("a host that is silent is not fenced: %+v", s.host("n1"))
		}
	})
}

// TestAClockThatIsSetKeepsNoVMDown: n2, the only host with room, does not start what it is given, or
// says that it cannot, when the leader's clock is set, and starts VMs from then on. The next VMs get
// there all the same, within minutes.
func TestAClockThatIsSetKeepsNoVMDown(t *testing.T) {
	for _, trouble := range []string{"", "it does not start: no room"} {
		for _, by := range []time.Duration{0, -5 * time.Hour, -time.Minute, time.Minute, 5 * time.Hour} {
			s := newHarness(t, controller.FailoverConfig{FenceAfter: time.Minute, StormShare: 0.9}, "n1", "n2", "n3")
			s.fencer.works("n1", "n3")
			s.changeHost("n3", func(h *store.Host) { h.Cordoned = true })
			s.addVM("first", "n1", gib)
			vms := []string{"a", "b", "c"}
			for _, vm := range vms {
				s.addVM(vm, "n3", gib)
			}
			s.run(time.Minute)
			s.silence("n1")
			s.run(2 * time.Minute)
			s.wantOn("first", "n2")
			s.changeVM("first", func(v *store.VM) { v.Trouble = trouble })
			s.silence("n3")
			s.now = s.now.Add(by)
			for range 120 {
				s.run(5 * time.Second)
				for _, vm := range vms {
					if v := s.vm(vm); v.Host == "n2" && v.Boots == 0 {
						s.changeVM(vm, func(v *store.VM) { v.Boots = 1 })
					}
				}
			}
			for _, vm := range vms {
				if got := s.vm(vm).Host; got != "n2" {
					t.Errorf("trouble %q, a clock that was set by %v: %s is on %s: %v", trouble, by, vm,
						got, s.failover.Why(hypervisor.VMID(vm), s.now))
				}
			}
		}
	}
}
