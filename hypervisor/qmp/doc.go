//go:build linux

// Package qmp runs and migrates virtual machines with QEMU/KVM, over nothing but
// QEMU's own machine protocol (QMP).
//
//	Host ── one process per VM ── QEMU        they outlive us
//	  │ journal: what must be remembered      DIR, private
//	  │ settle:  look → next step → do it     one goroutine per VM
//	  └ handover: source and target agree     one listener per host
//
// A [Host] is a [hypervisor.Hypervisor]. Its process may die at any instruction,
// by SIGKILL too, and no running VM notices: the next [New] finds every QEMU from
// the directory and goes on, also in the middle of a migration.
//
// # Which host may run the VM
//
// A target is started with its CPUs stopped. It lets the guest run only when it
// holds the complete state (or, in post-copy, was told to run) and its source has
// said, signed, that the guest stopped there for good: that QEMU completed the
// migration, after which it resumes nothing by itself. The extra word costs about
// a millisecond of downtime. Where a connection breaks before that, QEMU lets its
// source run on; that is safe, because the target will not hear the word. Where it
// breaks later, both rest, the job is Broken, and the source resumes only with
// Evidence that the target never ran.
//
// A process of ours that is dead in that moment prolongs the downtime until it is
// back. That is the price of never running a VM twice.
//
// Where the connection falls silent while QEMU sends the last of a guest, that QEMU
// answers nothing: what is asked of its VM is Transient. When Config.Timeout has passed
// twice, and the downtime allowed besides, its connection is closed, out of band, and it is
// as above.
//
// A QEMU that hangs is waited for: what is asked of its VM is Transient, and names the process.
// Kill ends it, unless its guest stands to move, or may: that of a source which was sending when
// we died, and has not answered since, may run at the target. If it never answers, end the
// process by hand; the job is Broken then, or has succeeded. A Stop that the guest was asked for
// ends it after its grace, unless it moves.
//
// # The caller's duties
//
//  1. Give each host a directory of its own on storage that survives a restart of
//     the machine. One process at a time owns it.
//  2. Do not kill QEMUs with us: under systemd, KillMode=process.
//  3. Give a VM's machine type a version ("pc-q35-7.2") where hosts may run
//     different versions of QEMU.
//  4. Ask for TransferOptions.Channels and Compression of a QEMU before 9.0 only if a
//     source that may hang for good, when its target dies, is worth it: see
//     [hypervisor.CanLoseChannels].
//  5. Expect the files of local disks in DIR/disks; those of a VM that has moved
//     away are removed on Release.
package qmp
