package sweep

import (
	"math"
	"math/rand/v2"
	"slices"
)

// A Comparison sets a combination against another, sample by sample: the same
// seed in both, so that what is common to them cancels out. A difference is the
// combination's value less that of the other.
type Comparison struct {
	Combination int    `json:"combination"`
	Against     int    `json:"against"`
	Measure     string `json:"measure"`
	// Less, More and Same count the samples with that difference.
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
	Verdict Verdict `json:"verdict"`
}

// A Verdict is what a comparison shows at a confidence of 95 %.
type Verdict string

// The verdicts. A difference counts when the bootstrap's interval leaves 0 out and
// the sign test's chance is at most 5 %: with fewer than six pairs it never does.
const (
	Lower     Verdict = "lower"
	Higher    Verdict = "higher"
	Undecided Verdict = "undecided"
)

// resamples is how often the bootstrap draws. Source: Efron, Tibshirani, "An
// Introduction to the Bootstrap", 1993, section 13.3 (1,000 or more for intervals).
const resamples = 1000

// compare sets the values of two combinations against each other, pair by pair.
func compare(values, against []float64) Comparison {
	var c Comparison
	differences := make([]float64, len(values))
	for i := range values {
		d := values[i] - against[i]
		differences[i] = d
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
	c.Verdict = Undecided
	switch {
	case c.SignP > 0.05:
	case c.High < 0 && c.Less > c.More:
		c.Verdict = Lower
	case c.Low > 0 && c.More > c.Less:
		c.Verdict = Higher
	}
	return c
}

// bootstrap returns the interval in which 95 % of the means of resampled
// differences lie. What it draws is always the same.
func bootstrap(differences []float64) (low, high float64) {
	n := len(differences)
	if n == 0 {
		return 0, 0
	}
	if low, high = slices.Min(differences), slices.Max(differences); low == high {
		return low, high // as often with what is counted, and never changes
	}
	chance := rand.New(rand.NewPCG(uint64(n), 0x626f6f747374))
	means := make([]float64, resamples)
	for i := range means {
		sum := 0.0
		for range n {
			sum += differences[chance.IntN(n)]
		}
		means[i] = sum / float64(n)
	}
	slices.Sort(means)
	return Quantile(means, 0.025), Quantile(means, 0.975)
}

// signTest returns the chance that of less+more fair coins at least as many fall
// on one side: twice the smaller tail of the binomial distribution, at most 1.
func signTest(less, more int) float64 {
	n, k := less+more, min(less, more)
	whole, _ := math.Lgamma(float64(n + 1))
	tail := 0.0
	for i := range k + 1 {
		a, _ := math.Lgamma(float64(i + 1))
		b, _ := math.Lgamma(float64(n - i + 1))
		tail += math.Exp(whole - a - b - float64(n)*math.Ln2)
	}
	return min(1, 2*tail)
}
