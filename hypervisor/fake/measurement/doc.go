// Package measurement compares the model of migrations with migrations that were measured.
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
//
// [Migration.Predict] has the fake carry the same migration out, and [Compare] says how far
// the predictions are off.
package measurement
