//go:build linux

// Package qmp runs and migrates virtual machines with QEMU/KVM, over nothing but
// QEMU's own machine protocol (QMP).
//
//	Host ── one process per VM ── QEMU        they outlive us
//	  │ journal: what must be remembered      DIR, private
//	  │ settle:  look → what is due → do it   one goroutine per VM
//	  └ handover: source and target agree     one listener per host
//
// A [Host] is a [hypervisor.Hypervisor]. Its process may die at any instruction,
// by SIGKILL too, and no running VM notices: the next [New] finds every QEMU from
// the directory and goes on, with a migration in full flight as well.
//
// # Who may run the VM
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
//
// # Domains
//
// This part is a VM on its host: its record, its QEMU, whose turn it is to
// change it, and one goroutine that does what is due.
//
//	look → what is due (this package) → do it → look …
//
// A change of a domain holds its turn. Readers do not: a record is replaced and
// never changed. Dying at any instruction does no harm: Adopt goes on from the
// journal and from what QEMU says.
//
// How a VM is moved is this package's, what may be asked of it this package's.
//
// # Handover protocol
//
// This part is what the two hosts of a migration say to each other besides
// the memory: how it will be done, and that the source has stopped for good.
//
//	source → target   Prepare   with these options      ← where to send
//	source → target   Stopped   the guest stands        ← the target knows
//	source → target   Kept      the VM stays here       ← the target has ended
//
// A target starts only after the second, and never after the third. Each message is
// one line of JSON and is answered by one; all may be repeated. Both are signed with
// the job's token, a secret that the target made and put into its address, which
// reaches the source through those who manage both: no other can let a target
// start, or say where memory is to be sent. What is said is no secret.
//
// It decides nothing: the target's host answers through a function.
//
// # Journal
//
// This part keeps what a hypervisor backend must remember about its VMs and
// jobs when its process dies: one private directory, one file for each.
//
//	DIR/lock               held by the process that owns the directory
//	DIR/disks/NAME/        local disks of one VM
//	DIR/vms/NAME/          sockets and logs of one VM
//	DIR/vms/NAME/domain    what is known of it: a [DomainRecord]
//	DIR/jobs/NAME          what is known of one job: a [Job]
//
// A file is replaced as a whole, so that it is the old or the new one whenever a
// process dies. What must survive a loss of power is also synced. The directory
// must be on storage that survives a restart of the host: to a cluster, a VM that
// its host does not know is one that never ran there.
//
// It decides nothing and removes nothing unasked, old jobs excepted.
//
// The file of a job outlives the migration's record: the record is removed by a controller, which may
// have died before a host has heard the last command. A [hypervisor.Hypervisor.Receive] that is repeated finds in
// it that the job has ended, and would open a target again without it; a Discard would say that the VM
// never ran. What bounds the files is age: Jobs, called when a process begins, removes those that no
// domain names and that were not written for 90 days, when files of seven later days are newer by as
// much: a clock that jumped removes nothing.
//
// # State machine
//
// This part says what a domain is, and what is due next, from what the journal
// knows of it and what was seen of its QEMU.
//
//	journal + look ──► [State], [Status], [Due] ──► act ──► look …
//
// Everything that a backend does of its own accord, unasked, is a
// [NextStep] from here: it follows from what is, and never from an event that might
// have been missed. The caller (1) does one step, (2) looks again. Dying in
// between does no harm.
//
// It does no I/O and reads no clock.
//
// # Commands of life
//
// This part does what may be asked of a VM on its host: start, stop, pause,
// reboot, resize, snapshot, plug disks in and out. It waits for no guest: what takes
// time is noted, and done when it is due.
//
// # Transfers
//
// This part moves VMs: a target that is opened and starts, a source that
// sends and stops, and what either does with evidence about the other.
//
//	target   Receive → Prepare heard → memory → Stopped heard → the guest runs
//	source   Migrate → memory → the guest stands → Stopped said → Release
//
// Everything is done by who holds the domain's turn, and follows from the journal
// and from what QEMU says, so that dying in between does no harm.
package qmp
