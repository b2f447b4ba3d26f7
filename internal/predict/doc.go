// Package predict predicts how long a migration takes, and says how far that may be off.
//
// The model of package fake predicts one time; it is fitted to migrations that were measured.
// [Learn] reads how far such predictions were off when migrations
// were measured, class by class; [Errors.Of] turns a further prediction into a distribution:
//
//	predicted time ──► × measured/predicted of the class ──► p10, p50, p90
//
// A class is the mechanism that governs a migration. Three rules keep a range
// honest:
//
//   - A class with fewer than [Enough] measurements gets the range of all that it has, and at
//     least that of all classes together.
//   - A class that was never measured says so, and its range is [Unknown] times up and down.
//   - No time is below what physics allows: bytes over bandwidth.
//
// [HoldOut] is the judge: each experiment is predicted by ranges that were learned from the
// others, and the share of measurements between p10 and p90 is counted.
//
// # Calibration
//
// [Fit] fits a model of hypervisors to migrations that were measured on one's
// own hosts. It changes one parameter at a time, up and down in ever smaller steps, and keeps what
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
// # Measurements
//
// [Read] reads measurements, CSV with a header and one migration a line. These columns are
// known, in any order; others are ignored:
//
//	ram_mib             memory of the VM                                          (needed)
//	total_ms            how long the migration took                               (needed)
//	downtime_ms         downtime, as the hypervisor says; empty is not known      (needed)
//	ws_mib              memory that the guest writes again and again, cyclically      (0)
//	rate_nominal_mib_s  how fast it writes                                            (0)
//	fill_mib            memory that was ever written; the rest is zero       (all of it)
//	cap_mib_s           the limit on the migration's speed; 0 is none                 (0)
//	link_mib_s          the speed of the wire; 0 is faster than the processors        (0)
//	downtime_limit_ms   what the downtime was limited to                            (300)
//	autoconverge, postcopy   1 if it was allowed                                      (0)
//	multifd             how many connections; 0 is one                                (0)
//	switch_after_ms     when it was told to go on by post-copy; -1 is never          (-1)
//	throttle_max        to how many percent auto-converge slowed the guest          (100)
//	options             words joined by +: compress, xbzrle, tls-x509, mfcomp:zstd, …  ()
//	accel               kvm, or tcg for a guest that is emulated                    (kvm)
//	label, status       what kind of experiment it is; how it ended     (, completed)
//	host                its source                                                    ()
//
// [Migration.Predict] has the fake carry the same migration out, and [Compare] says how far
// the predictions are off.
//
// [BuiltIn] are migrations that were measured with QEMU 7.2.
package predict
