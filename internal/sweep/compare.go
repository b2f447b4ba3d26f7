package sweep

import (
	"math"
)

// A Comparison sets a combination against another, sample by sample: the same
// seed in both, so that what is common to them cancels out. A difference is the
// combination's value less that of the other.
type Comparison struct {
	Combination int    `json:"combination"`
	Against     int    `json:"against"`
	Measure     string `json:"measure"`
	// Less, More and Same count the samples with that difference, of those that have the
	// measure in both combinations.
	Less int `json:"less"`
	More int `json:"more"`
	Same int `json:"same"`
	// Mean is the mean difference; with a confidence of 95 % that of all possible
	// samples lies between Low and High, by the percentile bootstrap over the pairs.
	Mean float64 `json:"meanDifference"`
	Low  float64 `json:"low95"`
	High float64 `json:"high95"`
	// SignP is the chance of a split between Less and More at least as uneven, if
	// neither were more likely: the two-sided sign test.
	SignP   float64 `json:"signTestP"`
	Outcome Outcome `json:"verdict"`
}

// An Outcome is what a comparison shows at a confidence of 95 %.
type Outcome string

// The verdicts. A difference counts when the bootstrap's interval leaves 0 out and
// the sign test's chance is at most 5 %: with fewer than six pairs it never does.
const (
	Lower     Outcome = "lower"
	Higher    Outcome = "higher"
	Undecided Outcome = "undecided"
)

// compare sets the values of two combinations against each other, pair by pair.
func compare(values, against []float64) Comparison {
	var c Comparison
	differences := make([]float64, 0, len(values))
	for i := range values {
		d := values[i] - against[i]
		if math.IsNaN(d) {
			continue // one of the two does not have it
		}
		differences = append(differences, d)
		switch {
		case d < 0:
			c.Less++
		case d > 0:
			c.More++
		default:
			c.Same++
		}
	}
	low, high := bootstrap(differences)
	c.Mean, c.Low, c.High = rounded(mean(differences)), rounded(low), rounded(high)
	c.SignP = math.Round(signTest(c.Less, c.More)*1e6) / 1e6
	c.Outcome = Undecided
	switch {
	case c.SignP > 0.05:
	case c.High < 0 && c.Less > c.More:
		c.Outcome = Lower
	case c.Low > 0 && c.More > c.Less:
		c.Outcome = Higher
	}
	return c
}
