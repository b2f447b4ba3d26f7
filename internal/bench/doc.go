// Package bench compares godwit with others: ways to empty hosts, plans of drains, and policies
// of convergence.
//
// Ways to empty hosts are compared on a committed set of evacuations: [Set] are twelve clusters
// with their workloads and faults, [Candidates] the ways, [Run] lets one of them empty one
// cluster in the simulator.
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
// candidate keeps it, and its own habits besides (KubeVirt's five and two are habits of
// KubeVirt's: its defaults). The simulator's invariants are checked in every run.
//
// # Plans of drains
//
// [ComparePlans] measures planners on a set of its own: the same clusters and questions for each,
// from seeds alone, so that others can compare themselves. docs/benchmark.md says what is in the
// set, and has the table.
//
//	set (clusters from seeds) ──► candidates ──► rows: what each plan costs
//	                          └─► bounds, and every arrangement where a cluster is small
//
// What is in the rows is the same on every machine; how long planning takes is not.
//
// # Convergence policies compared
//
// This part lets convergence policies bring the same transfers to an end, and measures
// what it cost: time, downtime, brown-out and bytes.
//
// A [Trace] is a guest: how it dirties its memory over time. [Distribution.Traces] makes them by named
// distributions from seeds, so that a contest can be repeated. [RunContest] lets one policy
// move one guest over one link of the modelled hypervisor, looking as often as godwit's
// agent does, with permissions that are the same for all ([Terms]). [Sum] makes a [Row] of
// a table from many runs.
//
// The policy is the very function that an agent runs: one of godwit's own, one of package
// peers, or yours. The package decides nothing.
//
// # Policies of peers
//
// This part brings transfers to an end as other systems do, so that they can be
// compared with godwit's own ways on the same guests: each is a [convergence.Policy].
//
// What an operator allows (the longest downtime, post-copy, stopping the guest) comes from
// the Config, and is the same for all; schedules and time-outs are those that each
// system has by default. KubeVirt's two are in package convergence itself
// (convergence.Legacy and convergence.Stall).
package bench
