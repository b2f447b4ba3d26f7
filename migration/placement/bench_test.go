package placement_test

import (
	"fmt"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// constrained returns a VM with every kind of constraint, and a host that
// takes it.
func constrained() (*placement.VM, *placement.Host, placement.Options) {
	vm, host := web(), roomy()
	host.Taints = []placement.Taint{{Key: "gpu", Value: "true", Effect: placement.NoSchedule}}
	host.Groups = map[string]int{"web": 2}
	vm.Constraints = placement.Constraints{
		Selector:    placement.Labels{"zone": "a"},
		Affinity:    [][]placement.Requirement{{req("cores", placement.Gt, "8")}},
		Tolerations: []placement.Toleration{{Key: "gpu", Exists: true}},
		Apart:       []string{"db"},
	}
	return vm, host, placement.Options{
		Source: "n1", Inbound: 2, Avoid: []hypervisor.HostName{"n7"},
	}
}

func TestCheckAllocatesNothingForAHostThatAccepts(t *testing.T) {
	vm, host, o := constrained()
	if why := placement.Check(vm, host, o); len(why) > 0 {
		t.Fatalf("refused: %v", why)
	}
	allocations := testing.AllocsPerRun(100, func() { placement.Check(vm, host, o) })
	if allocations != 0 {
		t.Errorf("Check allocates %v times, want 0", allocations)
	}
}

func BenchmarkCheckAccepted(b *testing.B) {
	vm, host, o := constrained()
	b.ReportAllocs()
	for b.Loop() {
		if len(placement.Check(vm, host, o)) > 0 {
			b.Fatal("refused")
		}
	}
}

// fleet returns n hosts with 256 GiB, most of which are somewhat used.
func fleet(n int) []placement.Host {
	hosts := make([]placement.Host, n)
	for i := range hosts {
		h := empty(hypervisor.HostName(fmt.Sprintf("n%05d", i)), 256)
		h.UsedMemory = hypervisor.Bytes(i*7919%128) * hypervisor.GiB
		hosts[i] = h
	}
	return hosts
}

func BenchmarkBest(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		x := placement.NewIndex(2, fleet(n)...)
		x.Use()
		b.Run(fmt.Sprintf("hosts=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := x.Best(web(), placement.Options{Source: "n00000"}); !ok {
					b.Fatal("no host")
				}
			}
		})
	}
}

// BenchmarkPlaceAndCancel is what the controller does for each move.
func BenchmarkPlaceAndCancel(b *testing.B) {
	x := placement.NewIndex(2, fleet(10_000)...)
	x.Use()
	vm := web()
	b.ReportAllocs()
	for b.Loop() {
		host, _ := x.Best(vm, placement.Options{Source: "n00000"})
		if !x.Reserve(vm, host) || !x.Cancel(vm, host) {
			b.Fatal("refused")
		}
	}
}

// BenchmarkFill places 100,000 VMs over 10,000 hosts; each arrives at once.
func BenchmarkFill(b *testing.B) {
	hosts := fleet(10_000)
	vm := &placement.VM{Memory: 8 * hypervisor.GiB, CPUs: 1}
	for b.Loop() {
		x := placement.NewIndex(2, hosts...)
		x.Use()
		for i := range 100_000 {
			host, ok := x.Best(vm, placement.Options{})
			if !ok || !x.Reserve(vm, host) || !x.Arrive(host) {
				b.Fatalf("VM %d found no host", i)
			}
		}
	}
}

// BenchmarkSaturated looks for a host while half of 10,000 hosts, the best
// ones, take no more inbound migrations.
func BenchmarkSaturated(b *testing.B) {
	hosts := fleet(10_000)
	for i := range hosts {
		if hosts[i].UsedMemory < 64*hypervisor.GiB {
			hosts[i].Incoming = 2
		}
	}
	x := placement.NewIndex(2, hosts...)
	x.Use()
	for b.Loop() {
		if _, ok := x.Best(web(), placement.Options{}); !ok {
			b.Fatal("no host")
		}
	}
}
