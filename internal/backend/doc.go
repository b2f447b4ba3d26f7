// Package backend is what the hypervisors' backends have in common: the records of VMs and
// migrations, the lock and the worker of each VM, the dispatch of commands, the kinds of their
// errors, the checks of a VM's hardware, and the rules that do not depend on the hypervisor.
//
// A backend is a state machine for each VM:
//
//	command ──► note in the journal ──► act ──┐
//	look ──► next step ──► note ──► act ──────┴──► look …
//
// What it must remember when its process dies is in a [Journal]: a [Domain] for each VM and a
// [Job] for each migration, of which each backend's own records are an extension. A change of a VM
// holds its domain's lock ([Node.Lock]). The next step is a pure function of a record and of a look,
// and is the backend's own: QEMU's states are not libvirt's.
//
// An error inside a backend has a kind ([Errorf], [KindOf]); [Node.Explain] completes it with the
// operation, the host and the VM. A [Checker] says why a machine cannot be built as a VM
// describes it: sizes, pins, disks, network cards, paths.
package backend
