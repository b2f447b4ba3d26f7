package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// BenchmarkWorlds builds random worlds of 10 hosts with 40 VMs, lets one host be drained
// and five things break within two minutes, runs each to its rest, and checks it:
//
//	go test ./sim -run '^$' -bench Worlds -cpu 1
func BenchmarkWorlds(b *testing.B) {
	seed := uint64(0)
	for b.Loop() {
		seed = seed%1000 + 1
		chance := sim.Seeded(seed)
		w := tenByForty(b, chance)
		for range 5 {
			w.At(time.Duration(chance.Choose("at", 120_000))*time.Millisecond, mishap(chance))
		}
		if end := w.Run(30 * 24 * time.Hour); end == sim.TimeIsUp {
			b.Fatalf("seed %d: %v", seed, end)
		}
		if w.CheckAtRest(); len(w.Violations()) > 0 {
			b.Fatalf("seed %d: %+v", seed, w.Violations())
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "worlds/s")
}

// tenByForty builds a world that has room for all VMs, and drains its first host.
func tenByForty(b *testing.B, chance sim.Chooser) *sim.World {
	w := sim.New(sim.Config{Chooser: chance})
	for i := range 10 {
		if err := w.AddHost(store.Host{Host: hypervisor.Host{Name: hostNames[i], CPUs: 64,
			Memory: 64 * hypervisor.GiB, Link: 10 * hypervisor.Gbit}}); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 40 {
		memory := hypervisor.GiB << chance.Choose("size", 3)
		v := store.VM{VM: hypervisor.VM{ID: guestNames[i], Memory: memory, CPUs: 2},
			Strategy: evacuation.LiveMigrate, Migratable: true, Host: hostNames[i%10]}
		if err := w.AddVM(v, fake.Workload{Rate: 20e6 << chance.Choose("rate", 6),
			Hot: memory / 2}); err != nil {
			b.Fatal(err)
		}
	}
	w.At(time.Second, sim.Drain{Host: hostNames[0]})
	return w
}

// mishap draws something that goes wrong, on the host that is drained one time in two.
func mishap(chance sim.Chooser) sim.Event {
	host, other := hostNames[0], hostNames[1+chance.Choose("other", 9)]
	if chance.Choose("elsewhere", 2) == 1 {
		host, other = other, host
	}
	lasts := []time.Duration{time.Second, 15 * time.Second, time.Minute}[chance.Choose("for", 3)]
	vm := guestNames[10*chance.Choose("VM", 4)] // on the first host
	switch chance.Choose("mishap", 10) {
	case 0:
		return sim.CrashController{For: lasts}
	case 1:
		return sim.CrashAgent{Host: host, For: lasts}
	case 2:
		return sim.DropNotifications{Host: host, For: lasts}
	case 3:
		return sim.StaleReads{Host: host, For: lasts}
	case 4:
		return sim.Conflict{VM: vm}
	case 5:
		return sim.DropAnswers{Host: host, Times: 2}
	case 6:
		return sim.CrashHypervisor{Host: host, For: lasts}
	case 7:
		return sim.CutLink{A: host, B: other, For: lasts}
	case 8:
		return sim.KillVM{Host: host, VM: vm}
	}
	return sim.CrashHost{Host: host, For: lasts}
}

var hostNames, guestNames = names[hypervisor.HostName]("n", 10),
	names[hypervisor.VMID]("default/v", 40)

func names[T ~string](prefix string, n int) (list []T) {
	for i := range n {
		list = append(list, T(fmt.Sprint(prefix, i+1)))
	}
	return list
}
