package controller_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

func TestTheVMsOfASilentHostAreRebuiltAfterItWasFenced(t *testing.T) {
	s := newHarness(t, controller.FailoverConfig{}, "n1", "n2", "n3")
	s.addVM("small", "n1", gib)
	s.addVM("large", "n1", 2*gib)
	s.addVM("first", "n1", gib)
	s.changeVM("first", func(v *store.VM) { v.Strategy = evacuation.LiveMigrate })
	s.run(time.Minute)
	if len(s.notes) > 0 {
		t.Fatalf("nothing is wrong, and it says %q", s.notes)
	}
	s.silence("n1")
	s.run(2 * time.Minute)
	s.fencer.works("n1")
	s.run(10 * time.Second)
	want := []string{
		"1m25s n1  is lost: its agent is silent for 30s",
		"1m55s n1  is to be fenced: silent for 1m0s, attempt 1",
		"3m0s n1  is fenced: fence_model has proved that it is off",
		"3m0s n2 first is rebuilt on n2: n1 is off, says fence_model",
		"3m0s n3 large is rebuilt on n3: n1 is off, says fence_model",
		"3m0s n2 small is rebuilt on n2: n1 is off, says fence_model",
	}
	if diff := cmp.Diff(want, s.notes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	h := s.host("n1")
	if !h.Fenced || !h.NotReady || h.Fencing.By != "fence_model" || h.Fencing.Boot != "boot1" {
		t.Errorf("n1 is %+v, fencing %+v", h, h.Fencing)
	}
	r := s.rebuild("large", "n1")
	if !r.Evidence.Dead("large", "n1") || r.Evidence.By != "fence_model" || r.Target != "n3" {
		t.Errorf("rebuilt as %+v", r)
	}
}

func TestANewObserverWaits(t *testing.T) {
	s := newHarness(t, controller.FailoverConfig{}, "n1", "n2", "n3", "n4")
	s.addVM("a", "n1", gib)
	s.run(10 * time.Second)
	s.silence("n1", "n4")
	s.fencer.works("n1")
	s.store.Delete(ctx, &store.Lease{Owner: "host/n4"}) // it never sent a heartbeat
	for range 20 {
		s.run(25 * time.Second)
		s.restart()
	}
	if len(s.notes) > 0 {
		t.Errorf("it listened for less than 30s, and says %q", s.notes)
	}
	s.run(35 * time.Second)
	s.wantSaid("is lost", 2)
	if s.host("n1").Fencing != nil {
		t.Error("n1 is fenced after 35s")
	}
}

func TestNoHostIsSilentThatCouldNotBeHeard(t *testing.T) {
	s := newHarness(t, controller.FailoverConfig{}, "n1", "n2", "n3")
	s.addVM("a", "n1", gib)
	s.run(time.Minute)
	for _, jump := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		s.now = s.now.Add(jump)
		for range 4 { // n1 is the last to find the store again
			s.look()
			s.now = s.now.Add(5 * time.Second)
		}
	}
	s.run(time.Minute)
	if len(s.notes) > 0 {
		t.Errorf("every host lives, and it says %q", s.notes)
	}
	s.silence("n1")
	s.run(40 * time.Second)
	s.wantSaid("n1  is lost", 1)
}

func TestNoHostIsFencedInAStorm(t *testing.T) {
	s := newHarness(t, controller.FailoverConfig{}, "n1", "n2", "n3", "n4", "n5")
	s.addVM("a", "n1", gib)
	s.addVM("b", "n2", gib)
	s.fencer.works("n1", "n2")
	s.run(time.Minute)
	s.silence("n1")
	s.run(25 * time.Second)
	s.silence("n2") // before the first has been silent for long enough
	s.run(10 * time.Minute)
	s.wantSaid("is lost", 2)
	s.wantSaid("fences no host: 2 of 5 hosts are silent, and 1 may be", 1)
	if len(s.fencer.asked) > 0 {
		t.Fatalf("%q are cut in a storm", s.fencer.asked)
	}
	if why := s.failover.Why("a", s.now); len(why) != 2 || why[1].Check != "storm" {
		t.Errorf("a stays because of %v", why)
	}
	s.changeHost("n2", func(h *store.Host) { h.ConfirmedDownBy = "alice" })
	s.run(10 * time.Second)
	s.wantSaid("counts as fenced: the word of operator alice", 1)
	s.wantSaid("may fence again: 1 of 4 hosts are silent", 1)
	s.wantSaid("n1  is fenced", 1)
	if r := s.rebuild("b", "n2"); r == nil || r.Evidence.Proof != hypervisor.OperatorWord ||
		r.Evidence.By != "operator alice" {
		t.Errorf("b was rebuilt as %+v", r)
	}
}

func TestHowManyMayBeSilent(t *testing.T) {
	for _, row := range []struct {
		share float64
		want  []int // of 0, 1, 2, … hosts
	}{
		{0, []int{0, 0, 0, 1, 1, 1, 2, 2, 2, 3}}, // the default, a third
		{0.5, []int{0, 0, 1, 1, 2, 2, 3, 3, 4, 4}},
		{0.01, []int{0, 0, 0, 1, 1, 1, 1, 1, 1, 1}},
		{0.4, []int{0, 0, 0, 1, 1, 2, 2}}, // OpenShift's example: 2 of 6
		{1, []int{0, 1, 2, 3, 4}},
		{7, []int{0, 1, 2, 3, 4}},
	} {
		c := controller.FailoverConfig{StormShare: row.share}.Complete()
		for n, want := range row.want {
			if got := c.Allowed(n); got != want {
				t.Errorf("share %v of %d hosts: %d, want %d", row.share, n, got, want)
			}
		}
	}
}

func TestAHostThatIsHeardAgainIsNotFenced(t *testing.T) {
	s := newHarness(t, controller.FailoverConfig{}, "n1", "n2", "n3")
	s.addVM("a", "n1", gib)
	s.run(time.Minute)
	s.silence("n1")
	s.run(70 * time.Second) // the cut is under way
	if s.host("n1").Fencing == nil {
		t.Fatal("n1 is not being fenced")
	}
	s.beats["n1"] = "boot1"
	s.fencer.works("n1") // it answers after the host did
	s.run(time.Minute)
	s.wantSaid("n1  is heard again", 1)
	s.wantSaid("is fenced", 0)
	if h := s.host("n1"); h.Fencing != nil || h.NotReady || h.Fenced {
		t.Errorf("n1 is %+v", h)
	}
	s.wantOn("a", "n1")
}

func TestAMachineThatStartsAnewByItselfNeedsNoFencing(t *testing.T) {
	s := newHarness(t, controller.FailoverConfig{}, "n1", "n2", "n3")
	s.addVM("a", "n1", gib)
	s.run(time.Minute)
	s.silence("n1")
	s.run(70 * time.Second)
	s.beats["n1"] = "boot2"
	s.run(20 * time.Second)
	s.wantSaid("n1  is back: the machine has started anew, as boot2", 1)
	if h := s.host("n1"); h.Fencing != nil || h.NotReady || h.Fenced {
		t.Errorf("n1 is %+v", h)
	}
	s.wantOn("a", "n1")
}

// fenced returns a harness where n1 was fenced, with VM a, which fits nowhere else.
func fenced(t *testing.T) *harness {
	s := newHarness(t, controller.FailoverConfig{}, "n1", "n2", "n3")
	s.addVM("a", "n1", gib)
	s.addVM("huge", "n1", 60*gib)
	s.addVM("two", "n2", 50*gib)
	s.addVM("three", "n3", 50*gib)
	s.run(time.Minute)
	s.silence("n1")
	s.fencer.works("n1")
	s.run(90 * time.Second)
	s.wantSaid("a is rebuilt", 1)
	s.wantSaid("huge fits nowhere", 1)
	return s
}

func TestWhatFitsNowhereWaitsForRoom(t *testing.T) {
	s := fenced(t)
	if why := s.failover.Why("huge", s.now); len(why) == 0 {
		t.Error("huge waits, and no reason is given")
	}
	s.changeVM("two", func(v *store.VM) { v.Ended = true })
	s.run(20 * time.Second)
	s.wantOn("huge", map[hostName]hostName{"n2": "n2", "n3": "n2"}[s.vm("a").Host])
}

func TestAHostThatReturnsKeepsWhatWasNotRebuilt(t *testing.T) {
	s := fenced(t)
	s.beats["n1"] = "boot2"
	s.run(20 * time.Second)
	if h := s.host("n1"); h.Fencing != nil || h.NotReady || h.Fenced {
		t.Errorf("n1 is %+v", h)
	}
	s.changeVM("two", func(v *store.VM) { v.Ended = true })
	s.run(time.Minute)
	s.wantOn("huge", "n1")
	r := s.rebuild("a", "n1")
	if r == nil {
		t.Fatal("nothing says that a was rebuilt, and n1 has not cleaned up")
	}
	next := *r
	next.Cleaned = true
	s.put(&next)
	s.run(5 * time.Second)
	if s.rebuild("a", "n1") != nil {
		t.Error("n1 has cleaned up, and the record of the rebuild is still there")
	}
}

func TestAHostThatLivesAlthoughItWasFencedIsNotTrusted(t *testing.T) {
	s := fenced(t)
	s.changeHost("n1", func(h *store.Host) { h.Cordoned = true }) // by any writer
	s.beats["n1"] = "boot1"
	s.run(20 * time.Second)
	s.wantSaid("LIVES although fence_model says that it is off", 1)
	s.changeVM("two", func(v *store.VM) { v.Ended = true })
	s.run(time.Minute)
	s.silence("n1")
	s.restart() // what is known of the lie is stored
	s.run(50 * time.Second)
	s.wantOn("huge", "n1")
	if !s.host("n1").Fenced {
		t.Error("n1 counts as sound again")
	}
	cuts := len(s.fencer.asked)
	s.run(time.Minute) // silent again for long enough: it is cut once more
	if len(s.fencer.asked) != cuts+1 {
		t.Errorf("cut %d times more, want once", len(s.fencer.asked)-cuts)
	}
	if s.vm("huge").Host == "n1" {
		t.Error("huge stays, although n1 was fenced again")
	}
}

func TestAnOperatorsWord(t *testing.T) {
	s := newHarness(t, controller.FailoverConfig{}, "n1", "n2") // of two hosts none is fenced
	s.addVM("a", "n1", gib)
	s.addVM("b", "n1", 70*gib) // too large for any other
	s.run(time.Minute)
	s.changeHost("n1", func(h *store.Host) { h.ConfirmedDownBy = "alice" })
	s.run(20 * time.Second)
	s.wantSaid("alice says that it is off, but it sends heartbeats", 1)
	if s.host("n1").ConfirmedDownBy != "" || s.host("n1").Fenced {
		t.Errorf("the word counts against a host that beats: %+v", s.host("n1"))
	}
	s.silence("n1")
	s.run(10 * time.Minute)
	if len(s.fencer.asked) > 0 {
		t.Fatalf("%q are cut of two", s.fencer.asked)
	}
	s.wantOn("a", "n1")
	s.changeHost("n1", func(h *store.Host) { h.ConfirmedDownBy = "bob" })
	s.run(10 * time.Second)
	s.wantOn("a", "n2")
	s.beats["n1"] = "boot1" // bob was wrong
	s.run(20 * time.Second)
	s.wantSaid("LIVES although operator bob says that it is off", 1)
	s.silence("n1")
	s.run(5 * time.Minute)
	if len(s.fencer.asked) > 0 || s.host("n1").Fencing.Error == "" {
		t.Errorf("bob is believed once more: %+v", s.host("n1").Fencing)
	}
	s.changeHost("n1", func(h *store.Host) { h.ConfirmedDownBy = "" })
	s.run(10 * time.Second)
	s.wantSaid("the word of operator bob is withdrawn", 1)
	if h := s.host("n1"); h.Fenced || h.Fencing != nil || !h.NotReady {
		t.Errorf("n1 is %+v", h)
	}
}

func TestADeviceThatFails(t *testing.T) {
	s := newHarness(t, controller.FailoverConfig{}, "n1", "n2", "n3")
	s.addVM("a", "n1", gib)
	s.fencer.answers["n1"] = failoverAnswer{err: errors.New("the BMC\xff does not answer" +
		strings.Repeat(".", 999))}
	s.run(time.Minute)
	s.silence("n1")
	s.run(10 * time.Minute)
	f := s.host("n1").Fencing
	// After 60 s, then after 5, 10, 20, … s: the eighth comes later.
	if f.Attempts != len(s.fencer.asked) || f.Attempts < 6 || f.Attempts > 8 {
		t.Errorf("%d attempts, stored %d", len(s.fencer.asked), f.Attempts)
	}
	if len(f.Error) > 310 || !strings.Contains(f.Error, "does not answer") {
		t.Errorf("the error stored is %q", f.Error)
	}
	s.wantOn("a", "n1")
	s.fencer.works("n1")
	s.run(6 * time.Minute)
	if s.vm("a").Host == "n1" || s.host("n1").Fencing.Error != "" {
		t.Errorf("a is on %s, fencing %+v", s.vm("a").Host, s.host("n1").Fencing)
	}
}

func TestAHostWithoutADeviceWaitsForAWord(t *testing.T) {
	for _, fencer := range []controller.Fencer{nil, &device{answers: map[hostName]failoverAnswer{
		"n1": {err: &hypervisor.Error{Op: "Cut", Kind: hypervisor.Unsupported}}}}} {
		s := newHarness(t, controller.FailoverConfig{}, "n1", "n2", "n3")
		s.failover = controller.NewFailover(s.config, s.line, fencer, s)
		s.addVM("a", "n1", gib)
		s.run(time.Minute)
		s.silence("n1")
		s.run(time.Hour)
		s.wantSaid("cannot be fenced: it has no device", 1)
		s.wantOn("a", "n1")
		s.changeHost("n1", func(h *store.Host) { h.ConfirmedDownBy = "alice" })
		s.run(10 * time.Second)
		if s.vm("a").Host == "n1" {
			t.Error("the word does not count")
		}
	}
}

func TestSoManyAreFencedAtOnce(t *testing.T) {
	var hosts, dead []hostName
	for i := range 20 {
		hosts = append(hosts, hostName(fmt.Sprintf("n%02d", i)))
	}
	dead = hosts[:5]
	s := newHarness(t, controller.FailoverConfig{FenceAtOnce: 2}, hosts...)
	for i, h := range dead {
		s.addVM(fmt.Sprint("vm", i), h, gib)
	}
	s.run(time.Minute)
	s.silence(hosts[:6]...) // the sixth has no VM
	s.run(3 * time.Minute)
	if len(s.fencer.asked) != 2 {
		t.Fatalf("%d are cut at once: %q", len(s.fencer.asked), s.fencer.asked)
	}
	s.fencer.works(hosts...)
	s.run(time.Minute)
	if len(s.fencer.asked) != 5 {
		t.Errorf("%d were cut, want 5: %q", len(s.fencer.asked), s.fencer.asked)
	}
	for i := range dead {
		if slices.Contains(dead, s.vm(fmt.Sprint("vm", i)).Host) {
			t.Errorf("vm%d was not rebuilt", i)
		}
	}
	if s.host(hosts[5]).Fencing != nil {
		t.Error("an idle host was fenced")
	}
}

func TestAnIdleHostIsFencedOnRequest(t *testing.T) {
	s := newHarness(t, controller.FailoverConfig{FenceIdle: true}, "n1", "n2", "n3")
	s.fencer.works("n1")
	s.run(time.Minute)
	s.silence("n1")
	s.run(2 * time.Minute)
	s.wantSaid("n1  is fenced", 1)
}

func TestAMigrationThatWaitsForWordOfAHostLetsItBeFenced(t *testing.T) {
	s := newHarness(t, controller.FailoverConfig{}, "n1", "n2", "n3")
	s.addVM("a", "n2", gib)
	s.changeVM("a", func(v *store.VM) { v.ActiveMigration = "a#1" })
	m := &store.Migration{Spec: migration.Spec{ID: "a#1", VM: "a"}}
	m.State.Phase, m.State.Source, m.State.Target = migration.Running, "n2", "n1"
	m.Source.Began = true
	s.put(m)
	s.fencer.works("n1")
	s.run(time.Minute)
	s.silence("n1")
	s.run(2 * time.Minute)
	s.wantSaid("n1  is fenced", 1)
	s.wantOn("a", "n2")
}

func TestWhoStaysOnAHostThatIsOff(t *testing.T) {
	rows := map[string]struct {
		change func(*store.VM)
		check  string
	}{
		"it is stopped":       {func(v *store.VM) { v.Stopped = true }, "stopped"},
		"it has shut down":    {func(v *store.VM) { v.Ended = true }, "ended"},
		"it is being moved":   {func(v *store.VM) { v.ActiveMigration = "a#1" }, "claim"},
		"it is not important": {func(v *store.VM) { v.Namespace = "lab" }, "priority"},
		"its disk is there": {func(v *store.VM) {
			v.VM = v.VM.WithDisks([]hypervisor.Disk{{Name: "root", Size: gib}})
		}, "local disks"},
		"it asks for another zone": {func(v *store.VM) {
			v.Placement = &placement.Constraints{Zones: []string{"z9"}}
		}, "zone"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			c := controller.FailoverConfig{Priority: func(v *store.VM) int { return -len(v.Namespace) }}
			s := newHarness(t, c, "n1", "n2", "n3")
			s.addVM("a", "n1", gib)
			s.changeVM("a", row.change)
			s.addVM("b", "n1", gib)
			s.fencer.works("n1")
			s.run(time.Minute)
			s.silence("n1")
			s.run(2 * time.Minute)
			s.wantOn("a", "n1")
			if s.vm("b").Host == "n1" {
				t.Error("b was not rebuilt")
			}
			why := s.failover.Why("a", s.now)
			if len(why) == 0 || !strings.Contains(why[0].Check, row.check) {
				t.Errorf("it stays because of %v, want %s", why, row.check)
			}
			s.changeVM("a", func(v *store.VM) {
				*v = store.VM{Version: v.Version, VM: hypervisor.VM{ID: "a", Memory: gib, CPUs: 1},
					Host: "n1"}
			})
			s.run(10 * time.Second)
			if s.vm("a").Host == "n1" {
				t.Error("nothing keeps a any more, and it stays")
			}
		})
	}
}

func TestGroupsAreKeptApartWhenTheyAreRebuilt(t *testing.T) {
	s := newHarness(t, controller.FailoverConfig{}, "n1", "n2", "n3")
	for id, on := range map[string]hostName{"a": "n1", "b": "n2"} {
		s.addVM(id, on, gib)
		s.changeVM(id, func(v *store.VM) {
			v.Placement = &placement.Constraints{Groups: []placement.GroupRule{{Group: "db",
				Policy: placement.AntiAffinity}}}
		})
	}
	s.addVM("fill", "n3", 30*gib) // n2 has more room
	s.fencer.works("n1")
	s.run(time.Minute)
	s.silence("n1")
	s.run(2 * time.Minute)
	s.wantOn("a", "n3")
}

func TestANewVMIsPlaced(t *testing.T) {
	s := newHarness(t, controller.FailoverConfig{}, "n1", "n2")
	s.addVM("full", "n1", 60*gib)
	s.addVM("new", "", 10*gib)
	s.addVM("huge", "", 99*gib)
	s.addVM("rests", "", gib)
	s.changeVM("rests", func(v *store.VM) { v.Stopped = true })
	s.run(time.Minute)
	s.wantOn("new", "n2")
	s.wantOn("huge", "")
	s.wantOn("rests", "")
	s.wantSaid("huge fits nowhere", 1)
	s.wantSaid("new is placed on n2", 1)
	if s.rebuild("new", "") != nil {
		t.Error("a first placement is no rebuild")
	}
}
