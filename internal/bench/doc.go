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
//
// # Calibration
//
// This part fits a model of hypervisors to migrations that were measured on one's
// own hosts.
//
// [Fit] changes one parameter at a time, up and down in ever smaller steps, and keeps what
// brings predictions closer: the mean of |ln(predicted/measured)| of the total time, and a
// quarter of that of the downtime. A logarithm is not led astray by a few long runs, nor by
// outliers as squares would be. A parameter that no measurement depends on stays as it was.
//
// How well it predicts what it has not seen, cross-validation says: the experiments are dealt
// out into parts, and each part is predicted by a model that was fitted to the others. Runs
// of one experiment stay together, since they would give each other away. Measurements of several
// hosts are left out host by host: what is learned on one is to hold on another. A fit that
// predicts what was left out worse than the model that it began with is refused.
//
// [ReadDomJobInfo] and [Infer] make measurements of migrations that were not prepared: how fast the
// guest wrote is inferred from what was sent more than once.
//
// Fit is deterministic and does no I/O.
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
// # Measurements
//
// This part compares the model of migrations with migrations that were measured.
//
// [Read] reads measurements, CSV with a header and one migration a line. These columns are
// known, in any order; others are ignored:
//
//	ram_mib             memory of the VM                                          (needed)
//	total_ms            how long the migration took                               (needed)
//	downtime_ms         how long the guest stood, as the hypervisor says          (needed)
//	ws_mib              memory that the guest writes again and again, cyclically      (0)
//	rate_nominal_mib_s  how fast it writes                                            (0)
//	fill_mib            memory that was ever written; the rest is zero       (all of it)
//	cap_mib_s           the limit on the migration's speed; 0 is none                 (0)
//	link_mib_s          the speed of the wire; 0 is faster than the processors        (0)
//	downtime_limit_ms   what the downtime was limited to                            (300)
//	autoconverge, postcopy   1 if it was allowed                                      (0)
//	multifd             how many connections; 0 is one                                (0)
//	switch_after_ms     when it was told to go on by post-copy; -1 is never          (-1)
//	options             words joined by +: compress, xbzrle, tls-x509, mfcomp:zstd, …  ()
//	accel               kvm, or tcg for a guest that is emulated                    (kvm)
//	label, status       what kind of experiment it is; how it ended     (, completed)
//	host                its source                                                    ()
//
// [Migration.Predict] has the fake carry the same migration out, and [Compare] says how far
// the predictions are off.
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
