// Package sweep says which worlds a sweep simulates, and what comes out of them.
//
//	scenario × combinations of settings × samples ──► worlds ──► [Document]
//	           └─ [Grid] ─┘           └─ [Seed] ─┘      └─ [Shard]s ─► [Merge] ─┘
//
// A combination gives some fields of a scenario other values; a sample is a seed,
// and the same sample has the same seed in every combination, so that two
// combinations are compared in pairs. Worlds are numbered: all samples of the
// first combination, then those of the next.
//
// The caller (1) makes a [Grid] and a [Run], (2) simulates the worlds of its
// [Shard], as package sweep/run does, and (3) puts the samples into a [Document]
// with [Summarize], or writes them as lines with [WriteHead], [WriteSample] and
// [WriteEnd], which [ReadPart] and [Merge] join. What comes out is the same, byte
// for byte, however many cores and machines it was divided among.
//
// Nothing here simulates, and nothing depends on a clock.
package sweep
