// Package bench is a committed set of evacuations, on which ways to empty hosts are
// compared: [Set] are twelve clusters with their workloads and faults, [Contestants] the
// ways, [Run] lets one of them empty one cluster in the simulator.
//
// Everything is made from fixed seeds: a result can be repeated anywhere, to the digit.
//
// # The lower bound
//
// [Cluster.Bound] is what no way to empty the hosts by live migration can beat, whatever it
// knows. Memory that is not zero, and local disks, cross the wire at least once, so it is the
// largest of
//
//   - for each drained host, what its VMs weigh over its link,
//   - for each VM, what it weighs over the slower of its link and the fastest target's, and
//     over the operator's cap,
//   - for each drained rack, what its VMs weigh over its up-link,
//   - all that leaves, over the links of all hosts that stay, or the up-links of their racks,
//   - where the operator limits migrations: the same with as many links as may be used at
//     once.
//
// It knows nothing of memory that is dirtied again, of preparing a target or handing over,
// of faults, or of which VM fits where; so a ratio of 1 cannot be reached.
//
// # Limits
//
// A limit of the operator's is one that is written in the cluster ([Cluster.Limits]). Every
// contestant keeps it, and its own habits besides (KubeVirt's five and two are habits of
// KubeVirt's: its defaults). The simulator's invariants are checked in every run.
package bench
