// Package libvirt runs and migrates the virtual machines of hosts whose hypervisor is
// libvirtd, and takes over the outcome of libvirt's own migration.
//
//	Host ── one connection ── libvirtd ── QEMUs     they outlive us
//	  │ journal: what libvirt does not keep         Config.Dir, private
//	  │ settle:  look → next step → do it           one goroutine for each VM that moves
//	  └ transfer: libvirtd ── peer to peer ── libvirtd of the target
//
// A [Host] is a [hypervisor.Hypervisor]. Its process may die at any instruction: no VM
// notices, a migration that libvirt leads goes on (one that Config.Direct has us lead
// ends), and the next [New] finds out what has become of it.
//
// It needs a build for Linux with the tag libvirt_dlopen, and libvirt.so.0 where it
// runs; without either, [New] answers Unsupported and says what to install.
//
// # Which host may run the VM
//
// That is libvirt's decision, and it is adopted: the target runs the guest when it has
// received everything, and the source is then shut off as "migrated", with its memory
// gone. A Host therefore lacks [hypervisor.CanTakeBack].
//
// libvirt's hand-over has a gap. When the reply to the source's last question, Finish,
// is lost, libvirt 9.0 lets the source run again although the target may run, too.
// Source: libvirt 9.0 src/qemu/qemu_migration.c (qemuMigrationSrcPerformPeer2Peer3).
// Two things are done about it:
//
//   - By default, the Host has noted that the source had stopped. It pauses a source
//     that libvirt lets run again, as soon as it sees it, and asks for evidence: the
//     domain is Unresolved and its job Broken. Between libvirt's decision and the pause
//     both copies may execute: for some milliseconds while our process lives and
//     reaches libvirtd, otherwise until it does. libvirt takes no order before it has
//     cleared its migration away; with a busy disk that was seen to take four seconds.
//   - With Config.Strict there is no gap: the target waits, paused, until Activate with
//     evidence that its source is gone. The price is downtime: what libvirt needs to
//     take the source down, 200 ms or more, and what your controller needs to see that
//     and to activate. And when the target's libvirtd dies right after Finish, the guest
//     that it holds dies with its QEMU: the VM starts anew from its disks.
//
// A job that is Broken needs both sides to be asked. Agents do that; without them,
// [Resolve] does, or says which evidence is missing.
//
// Discard has to promise that libvirt will not receive a VM that may be on its way. It
// defines a tombstone: a domain of the VM's name with another UUID, which libvirt
// does not let the VM pass. It has nothing that could run, stays for Config.TombstoneTTL, and
// goes when the VM is expected or started here. Operators see it in
// `virsh list --all --title`; its title says what it is. libvirt may let a domain that
// it is already receiving run at any moment, so that Discard answers Conflict for it.
//
// statemachine.go has the table that puts libvirt's states into the vocabulary's.
//
// # Together with virsh
//
// All domains of a libvirtd are seen and can be moved, whatever client made them. Those
// that were not asked about are never changed or removed, and a disk's file only when
// it is a local disk of a VM that has moved away. One that virsh has migrated away is
// Unresolved, and is not started by mistake.
//
// At any time, virsh may look, start, stop, pause and define. While a VM moves:
//
//   - `virsh domjobabort` is a Cancel, and `virsh destroy` at the source ends the job:
//     both are found and told.
//   - `virsh suspend` at the source does not last: libvirt lets the guest run at the
//     target.
//   - `virsh resume` of a source that is Unresolved, or of a target that is held, starts
//     a copy by your own word that the other does not run. Nothing here can undo it.
//   - `virsh undefine` of a tombstone takes back what Discard has promised.
//
// Where a local disk is to arrive, nothing may be: Receive refuses an image that exists, and
// removes the images of a copy that has failed.
//
// libvirt's autostart is switched off for every VM that is started, sent or received here, and
// for those of which something is kept when the Host is opened; Host.DisableAutostart does it
// for others. It is never switched on: libvirtd would start the VM when its host boots, although
// it was started elsewhere meanwhile.
// A managed save is the VM's memory, and Forget removes no definition that has one. Start continues it, unless
// the VM has been started elsewhere since, as the caller counts (hypervisor.Start.Boot): the disks are newer
// then, and the save is removed. So it is when it is forgotten as outdated, or the VM has moved.
//
// # The caller's duties
//
//  1. Give each host a Dir of its own, on storage that survives a restart of the
//     machine. One process at a time owns it.
//  2. Bound how long a lost peer goes unnoticed. keepalive_interval × (keepalive_count
//     + 1) in qemu.conf is when the source's libvirtd gives the target's up, 30 s by
//     default: for so long a guest that has stopped for the switch-over may stand. The
//     same settings in libvirtd.conf are when the target's gives its source up: before,
//     Discard answers Conflict for what it is receiving.
//  3. Have the hosts resolve each other's names, or set migration_host in qemu.conf,
//     and let them reach each other: libvirtd's port, and QEMU's, 49152 to 49215.
//  4. Give every libvirtd a server's and a client's certificate that the others trust
//     (the default of Config.Peer uses TLS), and with Config.TLS QEMU as well:
//     migrate_tls_x509_cert_dir in qemu.conf.
//  5. Have QEMU run as the same user and group everywhere (user and group in qemu.conf),
//     so that the target may open the disks that the source used.
//  6. Give the machine type of a VM a version ("pc-q35-7.2") where hosts may run
//     different versions of QEMU.
//  7. Call Close: what it abandons libvirt leads to its end.
package libvirt
