// Package fake models hypervisors: hosts, the links between them and the
// transfer of memory as a function of time, in virtual time.
//
//	set-up → local disks → pass 1 → pass 2 … → switch-over → acknowledgement
//	                                  └→ post-copy: the target runs, the rest follows ┘
//
// Disks are sent once: writes to them meanwhile cost nothing. A [Network] is the world and its
// time; a [Host] in it implements [hypervisor.Hypervisor]. Nothing happens between two events,
// so that jumping an hour is exact and costs what the events in it cost. There is no clock and
// no chance: the same calls give the same bytes on every machine.
//
// The caller (1) adds hosts and boots VMs, (2) lets participants call the hosts,
// (3) asks [Network.Next] when something happens and [Network.AdvanceTo] makes it
// happen, (4) injects faults where it likes.
//
// It decides nothing about migrations, and it does what a real hypervisor does,
// also when that is a mistake: it starts a VM that runs elsewhere if it is told
// to. To catch that is the business of invariants, which [Network.Copies] and
// [Network.Touched] serve.
//
// # Event queue
//
// This part keeps what will happen, in order of time and then of arming.
//
// # Hardware
//
// This part says what a modelled host can do with the description of a VM:
// whether it can be meant, and what it is after a disk has come or gone. It keeps
// nothing.
//
// # Listing
//
// This part keeps the list of domains that a modelled host answers, so that the next
// answer costs what has changed, and not what there is. An answer is never changed, unless its
// reader allows it: the next one is another list, or the very same when nothing has changed.
//
// # Memory
//
// This part says how the memory of a running guest is sent: what the guest
// dirties, what passes over its memory cost, and when the rest is small enough.
//
// It is arithmetic on times that the caller gives. It knows no hosts, no links
// and nothing of what a migration is for.
//
// # Transfers
//
// This part says what the two ends of a migration do while memory moves
// between them, and when they lose each other.
//
//	waiting → connecting → copying → finishing → loading → confirming → closed
//	   local disks: └→ mirroring ┘       post-copy: └→ fetching ─┘
//
// Local disks go first, with the share of the wire that memory has then. Until finishing the
// source keeps the VM, whatever happens. From then on it has stopped and never resumes on its
// own; a target that has everything goes on. What is on its way waits for a link that was cut, until
// the connection times out. A post-copy that broke is not recovered: no modelled host has
// CanRecover. The ends are domains of some host; the package
// changes them through end.
package fake
