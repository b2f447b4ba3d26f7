// Package verdict judges what two sides measured in the same worlds: which of them is better,
// by how much, and how sure that is.
//
// A caller measures both sides in every world, pair by pair ([Measure]), and has all measures
// judged at once ([Judge]). A [Verdict] says "better" or "worse" only when
//
//   - the [SignTest] over the worlds that differ and the [SignedRank] test, both two-sided,
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
package verdict
