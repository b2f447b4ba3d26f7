// Package ganeti reads a fleet from the text format of Ganeti's htools, which hscan and
// hbal -S write, and writes it. Sections are separated by one empty line, fields by |:
// groups, nodes, instances, the cluster's tags, and policies; the last is optional. Amounts
// are in MiB.
//
// What is read from where:
//
//   - Node: its memory for VMs is what is free and what its running instances have, its
//     CPUs are multiplied by the group's ratio (4 unless a policy says otherwise), less those
//     that the node itself uses. An offline one is down, or drained if instances of it run.
//     Tags under htools:nlocation become labels.
//   - Instance: one that does not run is on no host. It stays within its group. With drbd
//     disks it is on its primary or its secondary node, which a migration swaps, and with plain
//     or file disks on its primary node only: it neither moves nor starts elsewhere.
//     Names are unique: htools keep several of one name and find the last, which is no VM.
//   - Cluster tags: htools:iextags keeps instances that share a tag apart,
//     htools:migration and htools:allowmigration limit where nodes' VMs may go, as they do
//     for hbal: all that a source's tags say, a target must accept.
//
// Not read: disks and their sizes, spindles, moves of secondaries, desired locations, and of
// policies all but the ratio of CPUs. What Ganeti does not
// know, the speed of links and how fast guests change their memory, comes from
// [inventory.Defaults].
package ganeti
