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
// [Shard], as godwit simulate does, and (3) puts the samples into a [Document]
// with [Summarize], or writes them as lines with [WriteHead], [WriteSample] and
// [WriteEnd], which [ReadPart] and [Merge] join. What comes out is the same, byte
// for byte, however many cores and machines it was divided among.
//
// Nothing here simulates, and nothing depends on a clock.
//
// # Report page
//
// This part makes one self-contained page of what happened in a simulated world.
//
//	[Recorder] (while it runs) ──► [ReportDocument] (what the page shows) ──► HTML
//
// The caller (1) attaches a recorder to a world's configuration with [Record], before the
// world is built, (2) asks for its [ReportDocument] when the world has run, and (3) writes the page
// with [ReportDocument.WriteHTML]. The document of a sweep needs no recorder: see [SweepReport].
//
// The page needs no network and runs nothing but what is written in it: its content security
// policy names its scripts and its style by their sums. The document is in the page as JSON,
// and its figures are those of [sim.Result]. Names come from the input and are never taken
// for markup. The charts are drawn by Apache ECharts; see echarts/VERSION.
//
// The page is bounded: a run of any length becomes at most a few hundred buckets of time, and
// of more than [MaxListed] migrations it lists the telling ones, and says so. Figures,
// distributions and everything over time count all of them.
//
// This package decides nothing, and the recorder changes nothing in the world.
//
// # Running a sweep
//
// This part simulates the worlds of a sweep, several at once, each in a
// goroutine of its own. Worlds share their scenario, which is not changed, and
// nothing else: what comes out does not depend on how many run at once.
//
// # Statistical tests
//
// This part judges what two sides measured in the same worlds: which of them is better,
// by how much, and how sure that is.
//
// A caller measures both sides in every world, pair by pair ([MeasureKind]), and has all measures
// judged at once ([Judge]). A [ComparisonResult] says "better" or "worse" only when
//
//   - the [signTest] over the worlds that differ and the [signedRank] test, both two-sided,
//     find a difference at the level of 5 %, corrected for the number of measures (Holm), and
//   - the interval of the difference leaves none out, and the mean (of ratios the geometric one)
//     points the same way: what is mostly a little less and rarely a lot more is not better.
//
// So two sides that differ by chance alone are told apart in any measure in at most one in 20
// comparisons, whatever the distributions are. "No difference seen" says that the tests find
// none even uncorrected, and that the interval of the typical difference lies within a margin;
// all else is "cannot say": more worlds may tell.
//
// A number that is smaller counts as better. Everything is a pure function of its arguments:
// the bootstrap's draws are always the same.
package sweep
