package fake_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// drain moves n VMs from 500 hosts to 500 others, a few at a time.
func drain(b *testing.B, n, atOnce int) {
	w := &world{fake.NewNetwork(epoch, fake.Model{}), b}
	hosts := make([]*fake.Host, 1000)
	for i := range hosts {
		h, err := w.AddHost(hypervisor.Host{Name: name(fmt.Sprint("h", i)), Memory: 1 << 50,
			CPUs: 1 << 30, Link: 10 * hypervisor.Gbit})
		w.ok(err)
		hosts[i] = h
	}
	vms := make([]hypervisor.VM, n)
	for i := range vms {
		vms[i] = aVM(vmid(fmt.Sprint("vm", i)))
		w.ok(hosts[i%500].Boot(vms[i], mild))
	}
	b.StartTimer()
	begun, running := 0, map[int]bool{}
	for begun < n || len(running) > 0 {
		for ; begun < n && len(running) < atOnce; begun++ {
			running[begun] = true
			in := hypervisor.Incoming{Job: hypervisor.JobID(vms[begun].ID), VM: vms[begun]}
			a, err := hosts[500+begun%500].Receive(ctx, in)
			w.ok(err)
			w.ok(hosts[begun%500].Migrate(ctx, hypervisor.Outgoing{Job: in.Job, VM: in.VM.ID,
				Address: a}))
		}
		next, some := w.Next()
		if !some {
			b.Fatal("nothing happens any more")
		}
		w.AdvanceTo(next)
		for i := range running {
			d, err := hosts[i%500].Domain(ctx, vms[i].ID)
			w.ok(err)
			if d.State == hypervisor.HandedOver {
				delete(running, i)
			}
		}
	}
	b.StopTimer()
}

func BenchmarkDrain(b *testing.B) {
	for _, atOnce := range []int{5, 50} {
		b.Run(fmt.Sprintf("10000 VMs, %d at a time", atOnce), func(b *testing.B) {
			b.StopTimer()
			for range b.N {
				drain(b, 10_000, atOnce)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10_000, "ns/migration")
		})
	}
}

// A thousand flows into one card are one component: the worst case.
func BenchmarkAThousandFlowsIntoOneCard(b *testing.B) {
	for range b.N {
		w := newWorld(b, fake.Model{})
		w.host(hypervisor.Host{Name: "in", Memory: 1 << 50, CPUs: 1 << 30,
			Link: 10 * hypervisor.Gbit})
		w.host(hypervisor.Host{Name: "out", Memory: 1 << 50, CPUs: 1 << 30,
			Link: 10 * hypervisor.Gbit})
		for i := range 1000 {
			id := vmid(fmt.Sprint("vm", i))
			w.boot("out", id, fake.Workload{})
			w.begin(move{vm: aVM(id), from: "out", to: "in"})
		}
		for next, some := w.Next(); some; next, some = w.Next() {
			w.AdvanceTo(next)
		}
	}
}

func BenchmarkBoot(b *testing.B) {
	w := newWorld(b, fake.Model{})
	w.host(hypervisor.Host{Name: "big", Memory: 1 << 60, CPUs: 1 << 40})
	h, ids := w.Host("big"), make([]vmid, b.N)
	for i := range ids {
		ids[i] = vmid(fmt.Sprint("vm", i))
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	for _, id := range ids {
		w.ok(h.Boot(aVM(id), mild))
	}
	b.StopTimer()
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(b.N), "B/VM")
	runtime.KeepAlive(w)
}
