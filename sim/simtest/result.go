package simtest

import "github.com/godwit-vm/godwit/internal/sweep"

// MeasureKind says what a measure counts, and so how differences are written. See [Measure].
type MeasureKind uint8

// The kinds of measures. Differences of Counts are differences in one world; those of the others
// are ratios, where no number is negative.
const (
	Numbers = MeasureKind(sweep.Number)
	Seconds = MeasureKind(sweep.Seconds) // a time
	Bytes   = MeasureKind(sweep.Bytes)
	Counts  = MeasureKind(sweep.Count) // small whole numbers, often 0
)

// Outcome says how ours compares with theirs in one measure.
type Outcome uint8

// The outcomes.
const (
	// CannotSay: there are too few worlds, or they contradict each other.
	CannotSay = Outcome(sweep.CannotSay)
	// Same: no difference of more than 1 % was seen.
	Same = Outcome(sweep.Same)
	// Better: ours is less, and chance does not explain it (5 %, corrected for all measures).
	Better = Outcome(sweep.Better)
	// Worse: ours is more, and chance does not explain it.
	Worse = Outcome(sweep.Worse)
)

// String is "better", for example.
func (o Outcome) String() string { return sweep.TestOutcome(o).String() }

// Interval is a measured number, and the bounds between which the true one lies with 95 %.
type Interval struct{ Value, Low, High float64 }

// ComparisonResult is what a comparison finds of one measure. Less is better.
type ComparisonResult struct {
	Name    string
	Kind    MeasureKind
	Outcome Outcome
	// Worlds is in how many worlds both sides were measured. Ours was less in Less of them, more in
	// More, and the same in Alike.
	Worlds, Less, More, Alike int
	// Ours and Theirs are the medians over these worlds, or the means without Ratio.
	Ours, Theirs float64
	// Ratio says how differences are given: as ratios of ours to theirs, or else, for Counts and
	// for what may be negative, as ours less theirs in one world.
	Ratio bool
	// Effect is the median ratio over the worlds in which the sides differ, or the mean difference
	// over all worlds. Typical is the same over all worlds.
	Effect, Typical Interval
	// P is the probability to see so large a difference where there is none, corrected for the
	// number of measures.
	P float64
	// Contrary says that the mean contradicts most worlds.
	Contrary bool

	judged *sweep.ComparisonResult
}

// String says the result in a sentence.
func (r ComparisonResult) String() string { return r.judged.String() }

// NotWorse reports whether ours is certainly not worse than theirs by more than 1 %: the outcome is
// not Worse, and the interval of the typical difference ends below 1 %.
func (r ComparisonResult) NotWorse() bool { return r.judged.NotWorse() }

// resultOf shows a judgement.
func resultOf(j *sweep.ComparisonResult) ComparisonResult {
	return ComparisonResult{j.Name, MeasureKind(j.Kind), Outcome(j.Outcome), j.Worlds, j.Less, j.More,
		j.Alike, j.Ours, j.Theirs, j.Ratio, Interval(j.Effect), Interval(j.Typical), j.P, j.Contrary, j}
}
