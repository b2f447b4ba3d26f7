package placement_test

import (
	"fmt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

func ExampleCheck() {
	vm := &placement.VM{ID: "shop/web", Memory: 24 * hypervisor.GiB, CPUs: 4}
	vm.Constraints.Selector = placement.Labels{"zone": "a"}
	host := &placement.Host{
		Name: "n2", Memory: 64 * hypervisor.GiB, UsedMemory: 48 * hypervisor.GiB, CPUs: 16,
		Labels: placement.Labels{"zone": "b"},
	}
	for _, reason := range placement.Check(vm, host, placement.Options{Source: "n1"}) {
		fmt.Println(reason)
	}
	// Output:
	// memory needs 24GiB has 16GiB
	// selector needs zone=a has zone=b
}

func ExampleIndex() {
	x := placement.NewIndex(1, // one migration at a time into each host
		placement.Host{Name: "n1", Memory: 64 * hypervisor.GiB, CPUs: 16},
		placement.Host{Name: "n2", Memory: 64 * hypervisor.GiB, CPUs: 16},
		placement.Host{Name: "n3", Memory: 8 * hypervisor.GiB, CPUs: 16},
	)
	vm := &placement.VM{Memory: 24 * hypervisor.GiB, CPUs: 4}
	o := placement.Options{Source: "n1"}

	target, _ := x.Best(vm, o)
	x.Reserve(vm, target)
	fmt.Println("first to", target)

	_, ok := x.Best(vm, o)
	fmt.Println("room for a second:", ok)
	for _, refusal := range x.Refusals(vm, o) {
		fmt.Println(refusal.Host, refusal.Why)
	}

	x.Arrive(target)
	target, _ = x.Best(vm, o)
	fmt.Println("second to", target)
	// Output:
	// first to n2
	// room for a second: false
	// n1 [source needs another host has the source n1]
	// n2 [inbound needs fewer than 1 incoming has 1]
	// n3 [memory needs 24GiB has 8GiB memory-exists needs 24GiB has 8GiB in all]
	// second to n2
}
