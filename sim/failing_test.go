package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

func host(n int) hypervisor.HostName { return hypervisor.HostName(fmt.Sprintf("n%d", n)) }
func vm(n int) hypervisor.VMID       { return hypervisor.VMID(fmt.Sprintf("default/v%d", n)) }

// tester is what testing and rapid have in common.
type tester interface {
	Helper()
	Fatal(...any)
}

// cluster is a world of equal hosts, with VMs on the first.
func cluster(t tester, c sim.Config, f sim.FailoverConfig, hosts, vms int) *sim.World {
	t.Helper()
	w := sim.NewFailover(c, f)
	for i := range hosts {
		if err := w.AddHost(store.Host{Host: hypervisor.Host{Name: host(i + 1),
			Memory: 32 * hypervisor.GiB, CPUs: 32, Link: 10 * hypervisor.Gbit}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range vms {
		v := store.VM{VM: hypervisor.VM{ID: vm(i + 1), Memory: 4 * hypervisor.GiB, CPUs: 1},
			Host: host(1), Migratable: true, Strategy: evacuation.LiveMigrate}
		if err := w.AddVM(v, fake.Workload{Rate: 20e6, Hot: hypervisor.GiB}); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// sound complains of every invariant that did not hold.
func sound(t testing.TB, w *sim.World) {
	t.Helper()
	w.CheckAtRest()
	for _, v := range w.Violations() {
		t.Errorf("%s at %s: %s", v.Invariant, sim.Clock(v.At), v.Detail)
	}
}

// runs returns where a VM executes.
func runs(w *sim.World, vm hypervisor.VMID) (on []hypervisor.HostName) {
	for _, c := range w.Copies(vm) {
		if c.State.Executes() {
			on = append(on, c.Host)
		}
	}
	return on
}

func TestAHostThatDiesIsFencedAndItsVMsStartElsewhere(t *testing.T) {
	w := cluster(t, sim.Config{}, sim.FailoverConfig{}, 4, 3)
	w.At(10*time.Second, sim.CrashHost{Host: host(1)})
	w.Run(30 * time.Minute)
	if h := w.HostRecord(host(1)); !h.NotReady || !h.Fenced || h.Fencing.By != "a switch" {
		t.Errorf("the host is %+v, %+v", h, h.Fencing)
	}
	for i := range 3 {
		if v := w.VM(vm(i + 1)); v.Host == host(1) || len(runs(w, v.VM.ID)) != 1 || v.Boots != 1 {
			t.Errorf("%s is at home on %s, started anew %d times, runs on %v", v.VM.ID, v.Host,
				v.Boots, runs(w, v.VM.ID))
		}
	}
	w.At(w.Now(), sim.Return{Host: host(1)})
	w.Run(w.Now() + 10*time.Hour)
	if h := w.HostRecord(host(1)); h.NotReady || h.Fenced || h.Fencing != nil {
		t.Errorf("the host has returned and is %+v, %+v", h, h.Fencing)
	}
	for i := range 3 { // the record says what to remove: nothing is left of them
		for _, c := range w.Copies(vm(i + 1)) {
			if c.Host == host(1) {
				t.Errorf("%s has left %v on its old host", vm(i+1), c.State)
			}
		}
	}
	sound(t, w)
}

// A host was off while its VMs were rebuilt, and comes back to a backup of the store of before, where
// the controller remembers nothing. Those that run its VMs are not heard at first: it starts nothing,
// and when they are heard they refuse the store.
func TestAHostComesBackToABackupOfTheStore(t *testing.T) {
	w := cluster(t, sim.Config{Claims: true, Marks: true}, sim.FailoverConfig{}, 4, 3)
	w.At(10*time.Second, sim.CrashHost{Host: host(1)})
	w.At(20*time.Second, sim.Backup{})
	for i := range 3 {
		w.At(4*time.Minute, sim.CrashAgent{Host: host(i + 2), For: 10 * time.Minute})
	}
	w.At(4*time.Minute+time.Second, sim.SetBack{Forgotten: true})
	w.At(5*time.Minute, sim.Return{Host: host(1)})
	once := func() {
		t.Helper()
		for i := range 3 {
			if on := runs(w, vm(i+1)); len(on) != 1 || on[0] == host(1) {
				t.Errorf("at %s %s runs on %v", sim.Clock(w.Now()), vm(i+1), on)
			}
		}
	}
	w.Run(4 * time.Minute)
	once()
	w.Run(13 * time.Minute)
	if h := w.HostRecord(host(1)); h.Session == "" || !h.Unadmitted() ||
		!strings.Contains(h.Waits, "remembers nothing of the store") || !w.Unmarked() {
		t.Errorf("its agent is %+v", h)
	}
	once()
	w.Run(30 * time.Minute)
	if h := w.HostRecord(host(1)); !h.Unadmitted() {
		t.Errorf("a participant knows a newer store, and its agent is %+v", h)
	}
	once()
	sound(t, w)
}

// An operator says that a host is off of which only the agent is dead. Its VMs run twice then, and
// when the agent is back that is told; nothing more is given away, and nothing starts again.
func TestAHostThatWasSaidToBeOffComesBackWithItsVMs(t *testing.T) {
	for _, claims := range []bool{false, true} {
		none := sim.FailoverConfig{Devices: func(hypervisor.HostName) bool { return false }}
		w := cluster(t, sim.Config{Claims: claims}, none, 4, 3)
		w.At(10*time.Second, sim.CrashAgent{Host: host(1), For: 20 * time.Minute})
		w.At(5*time.Minute, sim.Dead{Host: host(1)})
		w.Run(15 * time.Minute)
		for i := range 3 {
			if v := w.VM(vm(i + 1)); v.Host == host(1) || len(runs(w, v.VM.ID)) != 2 {
				t.Errorf("%s is at home on %s, runs on %v", v.VM.ID, v.Host, runs(w, v.VM.ID))
			}
		}
		w.At(30*time.Minute, sim.KillVM{Host: host(1), VM: vm(1)})
		w.Run(3 * time.Hour)
		h := w.HostRecord(host(1))
		if h.Fencing == nil || h.Fencing.Error == "" || len(h.Strays) != 2 {
			t.Errorf("the host is %+v with the strays %v", h.Fencing, h.Strays)
		}
		if on := runs(w, vm(1)); len(on) != 1 || on[0] == host(1) {
			t.Errorf("the second copy was killed, and it runs on %v", on)
		}
		sound(t, w)
		w.At(w.Now(), sim.CrashHost{Host: host(1), For: time.Minute}) // what operators do then
		w.Run(w.Now() + 10*time.Hour)
		if h := w.HostRecord(host(1)); h.Fenced || h.NotReady || len(h.Strays) > 0 {
			t.Errorf("its machine has started anew, and the host is %+v", h)
		}
		for i := range 3 {
			if on := runs(w, vm(i+1)); len(on) != 1 {
				t.Errorf("%s runs on %v", vm(i+1), on)
			}
		}
		sound(t, w)
	}
}

func TestNoHostIsFencedInAStorm(t *testing.T) {
	w := cluster(t, sim.Config{}, sim.FailoverConfig{}, 6, 3)
	for i := range 3 {
		w.At(10*time.Second, sim.CrashHost{Host: host(i + 1), For: 30 * time.Minute})
	}
	w.Run(20 * time.Minute)
	for i := range 3 {
		if h := w.HostRecord(host(i + 1)); !h.NotReady || h.Fenced || h.Fencing != nil {
			t.Errorf("half of the hosts are silent, and %s is %+v", host(i+1), h)
		}
		if v := w.VM(vm(i + 1)); v.Host != host(1) {
			t.Errorf("%s was rebuilt on %s", v.VM.ID, v.Host)
		}
	}
	w.Run(w.Now() + 10*time.Hour)
	sound(t, w)
}

// An agent is dead for an hour, and nothing can fence its host: the VMs run on, they are not
// started elsewhere, and the agent adopts them when it returns.
func TestVMsOfASilentHostRunOn(t *testing.T) {
	none := sim.FailoverConfig{Devices: func(hypervisor.HostName) bool { return false }}
	w := cluster(t, sim.Config{}, none, 4, 3)
	w.At(10*time.Second, sim.CrashAgent{Host: host(1), For: time.Hour})
	w.Run(59 * time.Minute)
	if h := w.HostRecord(host(1)); !h.NotReady || h.Fenced {
		t.Errorf("the host is %+v", h)
	}
	w.Run(w.Now() + 10*time.Hour)
	for i := range 3 {
		v := w.VM(vm(i + 1))
		if on := runs(w, v.VM.ID); len(on) != 1 || on[0] != host(1) || v.Boots != 0 {
			t.Errorf("%s runs on %v, and was started anew %d times", v.VM.ID, on, v.Boots)
		}
	}
	if h := w.HostRecord(host(1)); h.NotReady {
		t.Error("the agent is heard again, and its host still counts as lost")
	}
	sound(t, w)
}

func TestClocksThatDifferMakeNoHostSilent(t *testing.T) {
	w := cluster(t, sim.Config{}, sim.FailoverConfig{}, 4, 3)
	for i, by := range []time.Duration{10 * time.Minute, -10 * time.Minute, time.Minute} {
		w.At(10*time.Second, sim.Skew{Host: host(i + 1), By: by})
	}
	w.At(20*time.Second, sim.Skew{By: 10 * time.Minute})
	w.At(5*time.Minute, sim.Skew{By: -10 * time.Minute})
	w.At(6*time.Minute, sim.Drain{Host: host(1)})
	for range 60 {
		w.Run(w.Now() + 10*time.Second)
		for i := range 4 {
			if h := w.HostRecord(host(i + 1)); h.NotReady || h.Fencing != nil {
				t.Fatalf("%s counts as lost at %s", host(i+1), sim.Clock(w.Now()))
			}
		}
	}
	w.Run(w.Now() + 10*time.Hour)
	sound(t, w)
}

// drawn makes choices that rapid draws, so that a world that fails shrinks.
type drawn struct{ t *rapid.T }

// Choose implements sim.Chooser.
func (d drawn) Choose(what string, n int) int { return rapid.IntRange(0, n-1).Draw(d.t, what) }

// trouble draws something that happens to a host, or to the controller.
func trouble(d drawn, hosts int) (string, sim.Event) {
	h := host(1 + d.Choose("host", hosts))
	lasts := []time.Duration{2 * time.Second, 45 * time.Second, 3 * time.Minute,
		20 * time.Minute}[d.Choose("for", 4)]
	after := d.Choose("writes", 6)
	all := []sim.Event{sim.CrashHost{Host: h, For: lasts}, sim.CrashAgent{Host: h, For: lasts},
		sim.CrashController{For: lasts}, sim.CrashController{For: lasts, After: &after},
		sim.CrashAgent{Host: h, For: lasts, After: &after}, sim.StaleReads{For: lasts},
		sim.StaleReads{Host: h, For: lasts}, sim.DropAnswers{Times: after}, sim.DropAnswers{Host: h, Times: after},
		sim.Skew{Host: h, By: 10 * time.Minute}, sim.Skew{By: -10 * time.Minute},
		sim.FullStore{For: lasts}, sim.Drain{Host: h}, sim.Undrain{Host: h},
		sim.CrashHypervisor{Host: h, For: lasts}, sim.Fence{Host: h}, sim.Return{Host: h},
		sim.SecondAgent{Host: h, Copied: after%2 == 0, For: lasts},
		sim.EmptyDirectory{Host: h, For: lasts}, sim.Adopt{Host: h}, sim.Dead{Host: h}}
	e := all[d.Choose("event", len(all))]
	return fmt.Sprintf("%T%+v after %d", e, e, after), e
}

// Whatever dies, and whichever host is fenced for it, every VM ends up running once.
func TestWhateverFailsEveryVMRunsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawn{t}
		hosts := 3 + d.Choose("hosts", 3)
		f := sim.FailoverConfig{}
		if d.Choose("devices", 3) == 2 {
			f.Devices = func(h hypervisor.HostName) bool { return h != host(1) }
		}
		w := cluster(t, sim.Config{Chooser: sim.Seeded(uint64(d.Choose("seed", 1000))),
			Claims: d.Choose("claims", 2) == 1}, f, hosts, 1+d.Choose("VMs", 4))
		var what []string
		for range d.Choose("events", 6) {
			at := time.Duration(d.Choose("at", 1200)) * time.Second
			text, e := trouble(d, hosts)
			what = append(what, fmt.Sprintf("%s %s", sim.Clock(at), text))
			w.At(at, e)
		}
		for i := range hosts { // everything ends, and every host returns
			w.At(time.Hour, sim.Return{Host: host(i + 1)})
			w.At(time.Hour, sim.Skew{Host: host(i + 1)})
			w.At(time.Hour+10*time.Minute, sim.Adopt{Host: host(i + 1)}) // the right one
		}
		w.At(time.Hour, sim.Skew{})
		w.Run(48 * time.Hour)
		w.CheckAtRest()
		for _, v := range w.Violations() {
			t.Errorf("%s at %s: %s\n%s", v.Invariant, sim.Clock(v.At), v.Detail,
				strings.Join(what, "\n"))
		}
	})
}
