//go:build linux

package sim_test

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// BenchmarkMillion moves each of a million VMs once: half of ten thousand hosts, with 200
// each, are drained onto the other half, two VMs at a time out of each host and five in all,
// as KubeVirt does, or a thousand; before that, the same with a tenth of everything. It tells
// the CPU time of each, and the most memory that the process has used so far:
//
//	GODWIT_LONG=1 go test ./sim -run '^$' -bench Million -benchtime 1x -timeout 1h
//
// Million/vms=100k runs the tenth alone.
func BenchmarkMillion(b *testing.B) {
	if os.Getenv("GODWIT_LONG") == "" {
		b.Skip("it takes minutes and gigabytes: set GODWIT_LONG=1 to run it")
	}
	for _, sources := range []int{500, 5000} {
		for _, atOnce := range []int{migration.DefaultCluster().ParallelMigrationsPerCluster, sources / 5} {
			b.Run(fmt.Sprintf("vms=%dk/atOnce=%d", sources/5, atOnce), func(b *testing.B) {
				for b.Loop() {
					moveAll(b, sources, 200, atOnce)
				}
			})
		}
	}
}

// horizon is how long the drains may take.
const horizon = 100 * 24 * time.Hour

// moveAll drains so many hosts with so many VMs each onto as many empty ones.
func moveAll(b *testing.B, sources, each, atOnce int) {
	cluster := migration.DefaultCluster()
	cluster.ParallelMigrationsPerCluster = atOnce
	began := cpuTime(b)
	w := sim.New(sim.Config{Controller: controller.Config{Cluster: &cluster}})
	w.Expect(sources * each)
	for i := range 2 * sources {
		host := hypervisor.HostName(fmt.Sprintf("n%d", i))
		if err := w.AddHost(store.Host{Host: hypervisor.Host{Name: host, CPUs: 512,
			Memory: hypervisor.TiB, Link: 10 * hypervisor.Gbit}}); err != nil {
			b.Fatal(err)
		}
		if i >= sources {
			continue
		}
		for k := range each {
			vm := hypervisor.VM{ID: hypervisor.VMID(fmt.Sprintf("default/v%d-%d", i, k)),
				Memory: 4 * hypervisor.GiB, CPUs: 2}
			if err := w.AddVM(store.VM{VM: vm, Host: host, Migratable: true,
				Strategy: evacuation.LiveMigrate},
				fake.Workload{Rate: 50e6, Hot: vm.Memory / 10 * 9}); err != nil {
				b.Fatal(err)
			}
		}
		w.At(time.Second, sim.Drain{Host: host})
	}
	built := cpuTime(b)
	if end := w.Run(horizon); end != sim.AtRest {
		b.Fatal(end)
	}
	if w.CheckAtRest(); len(w.Violations()) > 0 {
		b.Fatal(w.Violations()[0])
	}
	r := w.Result()
	if r.Migrations.Succeeded != sources*each {
		b.Fatal(r.Migrations)
	}
	b.ReportMetric(r.VirtualSeconds, "virtual-s")
	b.ReportMetric((built - began).Seconds(), "build-cpu-s")
	b.ReportMetric((cpuTime(b) - began).Seconds(), "cpu-s")
	b.ReportMetric(float64(usage(b).Maxrss)/1024, "rss-MiB")
}

func usage(b *testing.B) (u syscall.Rusage) {
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u
}

// cpuTime returns what the process has used of the processors.
func cpuTime(b *testing.B) time.Duration {
	u := usage(b)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
