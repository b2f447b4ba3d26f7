package sweep

import (
	"math"
	"slices"
)

// A Kind says what a measure is, and so how differences are told.
type Kind uint8

// The kinds. Differences of a [Count] are told as such, a world, those of the others as
// parts of what theirs is.
const (
	Number  Kind = iota
	Seconds      // a time
	Bytes
	Count // small whole numbers, often 0
)

// A MeasureKind is what both sides measured in the same worlds. Less is better.
type MeasureKind struct {
	Name string
	Kind Kind
	// Ours and Theirs are as many as there are worlds; in pairs, world by world. NaN says
	// that a world tells nothing about the measure: such pairs do not count. An infinite
	// number is worse than all others; of a Count it tells nothing.
	Ours, Theirs []float64
}

// margin is what does not matter: as a part of what theirs is, or, where differences are no
// ratios, of one a world.
const margin = 0.01

// Level is how often a difference may be called one that is none.
const Level = 0.05

// A TestOutcome is what is said of a measure.
type TestOutcome uint8

// The outcomes, of ours against theirs.
const (
	CannotSay TestOutcome = iota // the worlds are too few, or speak against each other
	Same                         // no difference was seen that matters
	Better
	Worse
)

// String says the outcome.
func (o TestOutcome) String() string {
	return [...]string{"cannot say", "no difference seen", "better", "worse"}[o]
}

// A ComparisonResult is what a measure says of ours against theirs.
type ComparisonResult struct {
	Name    string
	Kind    Kind
	Outcome TestOutcome
	// Worlds is in how many worlds both were measured; in so many of them ours was less,
	// more, or the same.
	Worlds, Less, More, Alike int
	// Ours and Theirs are the medians over these worlds, or the means without Ratio.
	Ours, Theirs float64
	// Ratio: differences are told as ratios of ours to theirs. Otherwise, of a Count and of
	// what may be negative, they are told as ours less theirs, a world.
	Ratio bool
	// Effect is the median ratio over the worlds in which they differ, or the mean difference
	// over all. Typical is the same over all worlds.
	Effect, Typical Interval
	// P is the chance to see so much difference where there is none, corrected for the number
	// of measures.
	P float64
	// Contrary: the mean says the opposite of most worlds.
	Contrary bool
	alone    float64 // P as if there were no other measure
}

// Judge judges measures of the same comparison, in their order. It panics when one has not as
// many numbers of ours as of theirs.
func Judge(measures []MeasureKind) []ComparisonResult {
	list, chances := make([]ComparisonResult, len(measures)), make([]float64, len(measures))
	for i := range measures {
		list[i] = weigh(&measures[i])
		chances[i] = list[i].alone
	}
	for i, p := range holm(chances) {
		list[i].P = p
		list[i].decide()
	}
	return list
}

// weigh says all of a measure but the outcome; the chance is that of this measure alone.
func weigh(m *MeasureKind) ComparisonResult {
	if len(m.Ours) != len(m.Theirs) {
		panic("sweep: " + m.Name + " was not measured in the same worlds")
	}
	v := ComparisonResult{Name: m.Name, Kind: m.Kind, Ratio: m.ratios()}
	var p pairs
	for i, ours := range m.Ours {
		if tells(ours, v.Ratio) && tells(m.Theirs[i], v.Ratio) {
			p.add(ours, m.Theirs[i], v.Ratio)
		}
	}
	v.Worlds, v.Less, v.More, v.Alike = len(p.ours), p.less, p.more, p.alike
	v.alone = max(signTest(p.less, p.more), signedRank(p.distances))
	off := mean(p.finite)
	v.Contrary = off > 0 && p.less > p.more || off < 0 && p.more > p.less
	if !v.Ratio {
		low, high := bootstrap(p.finite)
		if len(p.ours) < fewest {
			low, high = math.Inf(-1), math.Inf(1)
		}
		v.Effect = Interval{off, low, high}
		v.Typical, v.Ours, v.Theirs = v.Effect, mean(p.ours), mean(p.theirs)
		return v
	}
	slices.Sort(p.ratios)
	v.Typical = median(p.ratios)
	v.Effect = median(slices.DeleteFunc(p.ratios, func(r float64) bool { return r == 1 }))
	slices.Sort(p.ours)
	slices.Sort(p.theirs)
	v.Ours, v.Theirs = middle(p.ours), middle(p.theirs)
	return v
}

// fewest is of how many worlds something is said at all: of fewer no test finds anything.
const fewest = 6

// tells reports whether a number says something.
func tells(x float64, ratio bool) bool { return !math.IsNaN(x) && (ratio || !math.IsInf(x, 0)) }

// ratios reports whether differences are told as ratios: of what is never negative.
func (m *MeasureKind) ratios() bool {
	negative := func(x float64) bool { return x < 0 }
	return m.Kind != Count && !slices.ContainsFunc(m.Ours, negative) &&
		!slices.ContainsFunc(m.Theirs, negative)
}

// pairs are the pairs of a measure that count.
type pairs struct {
	ours, theirs      []float64
	ratios, distances []float64
	finite            []float64 // distances that are
	less, more, alike int
}

// add takes in a pair. How far it is apart is, of what is told as ratios, the logarithm of the
// ratio, so that no world counts for more because all of it is large.
func (p *pairs) add(ours, theirs float64, ratios bool) {
	p.ours, p.theirs = append(p.ours, ours), append(p.theirs, theirs)
	ratio, apart := 1.0, ours-theirs
	switch {
	case ours < theirs:
		p.less++
	case ours > theirs:
		p.more++
	default:
		p.alike++
	}
	if ours != theirs {
		ratio = ours / theirs
	}
	if ratios {
		apart = math.Log(ratio)
	}
	if !math.IsInf(apart, 0) {
		p.finite = append(p.finite, apart)
	}
	p.ratios, p.distances = append(p.ratios, ratio), append(p.distances, apart)
}

// decide says the outcome by the corrected chance.
func (v *ComparisonResult) decide() {
	none := v.none()
	switch in := v.Typical; {
	case v.P <= Level && !v.Contrary && v.Effect.High < none && v.Less > v.More:
		v.Outcome = Better
	case v.P <= Level && !v.Contrary && v.Effect.Low > none && v.More > v.Less:
		v.Outcome = Worse
	case v.alone > Level && in.Low >= none-margin && in.High <= none+margin:
		v.Outcome = Same
	}
}

// none is the effect of no difference.
func (v *ComparisonResult) none() float64 {
	if v.Ratio {
		return 1
	}
	return 0
}

// NotWorse reports whether ours is sure not to be worse by more than [margin]: it is not called
// worse, and the interval of the typical difference ends below.
func (v *ComparisonResult) NotWorse() bool {
	return v.Outcome == Better || v.Outcome != Worse && v.Typical.High <= v.none()+margin
}
