// Package ganeti reads a fleet from the text format of Ganeti's htools, which hscan and
// hbal -S write, and writes it. Sections are separated by one empty line, fields by |:
// groups, nodes, instances, the cluster's tags, and policies; the last is optional. Amounts
// are in MiB.
//
// What is read from where:
//
//   - Node: its memory for VMs is what is free and what its running instances have, its
//     CPUs are multiplied by the group's ratio (4 unless a policy says otherwise). Offline
//     ones are down. Tags under htools:nlocation become labels.
//   - Instance: one that does not run is on no host. It stays within its group. With drbd
//     disks it goes to its secondary node only, and with plain or file disks nowhere.
//   - Cluster tags: htools:iextags keeps instances that share a tag apart,
//     htools:migration and htools:allowmigration limit where nodes' VMs may go, as they do
//     for hbal: all that a source's tags say, a target must accept.
//
// Not read: disks, spindles, moves of secondaries, desired locations. What Ganeti does not
// know, the speed of links and how fast guests change their memory, comes from
// [inventory.Defaults].
package ganeti
