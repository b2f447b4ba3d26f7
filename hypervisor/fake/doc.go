// Package fake models hypervisors: hosts, the links between them and the
// transfer of memory as a function of time, in virtual time.
//
//	set-up → local disks → pass 1 → pass 2 … → switch-over → acknowledgement
//	                                  └→ post-copy: the target runs, the rest follows ┘
//
// Disks are sent once: writes to them meanwhile cost nothing. A [Fabric] is the world and its
// time; a [Host] in it implements [hypervisor.Hypervisor]. Nothing happens between two events,
// so that jumping an hour is exact and costs what the events in it cost. There is no clock and
// no chance: the same calls give the same bytes on every machine.
//
// The caller (1) adds hosts and boots VMs, (2) lets participants call the hosts,
// (3) asks [Fabric.Next] when something happens and [Fabric.AdvanceTo] makes it
// happen, (4) injects faults where it likes.
//
// It decides nothing about migrations, and it does what a real hypervisor does,
// also when that is a mistake: it starts a VM that runs elsewhere if it is told
// to. To catch that is the business of invariants, which [Fabric.Copies] and
// [Fabric.Touched] serve.
package fake
