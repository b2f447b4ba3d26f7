// Package placement decides which hosts can take a VM, and which of them takes it.
//
// [Check] answers every [Reason] why one host cannot take one VM; none means it
// can. [Index] keeps many hosts in order of preference, most free memory first,
// finds the best one that can take a VM, and keeps the books of what is
// reserved on them.
//
// A caller of the Index
//
//  1. reserves room as soon as it has chosen a target ([Index.Reserve]),
//  2. says how that ended: [Index.Arrive] when the VM runs at the target,
//     [Index.Cancel] when it never will,
//  3. says when the VM is gone from its source ([Index.Leave]),
//  4. hands in what it learns about a host anew ([Index.Update]).
//
// What is known about hosts beside size and marks, [Facts], and what is taken
// beside memory and CPUs, [Load], may be left out. What is unknown refuses
// nobody, unless a VM's [Constraints] ask for it. The packages below build on it:
//
//	filter     every condition on a target, by name
//	weigh      which of the hosts that take a VM is best
//	choose     a request for a target, its decision, and why
//	reserve    who holds what while VMs move
//	topology   NUMA cells, pinned CPUs, pages
//	aggregate  Nova's language of operators
//	resource   inventories and devices
//
// The basic conditions are those of the Kubernetes scheduler, which places KubeVirt's
// targets, and two that it lacks: a limit of migrations into one host, and a
// memory of hosts that have refused the VM. What Kubernetes merely prefers
// (PreferNoSchedule, soft affinity) is not looked at. The package does no I/O,
// starts no goroutine and reads no clock.
//
// In code (the example of [Check] runs):
//
//	for _, reason := range placement.Check(&vm, &host, placement.Options{}) {
//		fmt.Println(reason.Check, "needs", reason.Need, "has", reason.Have)
//	}
package placement
