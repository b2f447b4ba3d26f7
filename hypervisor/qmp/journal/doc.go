// Package journal keeps what a hypervisor backend must remember about its VMs and
// jobs when its process dies: one private directory, one file for each.
//
//	DIR/lock               held by the process that owns the directory
//	DIR/disks/NAME/        local disks of one VM
//	DIR/vms/NAME/          sockets and logs of one VM
//	DIR/vms/NAME/domain    what is known of it: a [Domain]
//	DIR/jobs/NAME          what is known of one job: a [Job]
//
// A file is replaced as a whole, so that it is the old or the new one whenever a
// process dies. What must survive a loss of power is also synced. The directory
// must be on storage that survives a restart of the host: to a cluster, a VM that
// its host does not know is one that never ran there.
//
// It decides nothing and removes nothing unasked, old jobs excepted.
package journal
