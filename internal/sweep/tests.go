package sweep

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// signTest returns the chance that of less+more fair coins at least as many fall on one side:
// twice the smaller tail of the binomial distribution, at most 1.
func signTest(less, more int) float64 {
	tail := 0.0
	for k := range min(less, more) + 1 {
		tail += heads(less+more, k)
	}
	return min(1, 2*tail)
}

// heads returns the chance that of n fair coins k show heads.
func heads(n, k int) float64 {
	whole, _ := math.Lgamma(float64(n + 1))
	a, _ := math.Lgamma(float64(k + 1))
	b, _ := math.Lgamma(float64(n - k + 1))
	return math.Exp(whole - a - b - float64(n)*math.Ln2)
}

// exactly is up to how many differences a signed-rank test is exact.
const exactly = 150

// signedRank returns the chance of differences at least as lopsided as these if each were as
// likely to have the other sign: Wilcoxon's signed-rank test, two-sided. Zeros are left out, and
// equal ones share their ranks. Up to 150 differences it is exact, ties or not; beyond it is the
// normal approximation, corrected for ties and continuity. Differences may be infinite; none may
// be NaN.
// Source: Wilcoxon, "Individual comparisons by ranking methods", 1945; for ties Streitberg and
// Röhmel, "Exact distributions for permutation and rank tests", 1986.
func signedRank(differences []float64) float64 {
	d := slices.DeleteFunc(slices.Clone(differences), func(x float64) bool { return x == 0 })
	slices.SortFunc(d, func(a, b float64) int { return cmp.Compare(math.Abs(a), math.Abs(b)) })
	if len(d) == 0 {
		return 1
	}
	ranks, positive := doubledRanks(d), 0
	for i, r := range ranks {
		if d[i] > 0 {
			positive += r
		}
	}
	if len(d) <= exactly {
		return exactRank(ranks, positive)
	}
	variance, step := 0.0, 0 // of the sum of doubled ranks
	for _, r := range ranks {
		variance += float64(r*r) / 4
		step = divisor(step, r)
	}
	mean := float64(len(d)*(len(d)+1)) / 2
	off := math.Abs(float64(positive)-mean) - float64(step)/2
	return math.Erfc(max(0, off) / math.Sqrt(2*variance))
}

// divisor returns the greatest common divisor.
func divisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// doubledRanks returns twice the rank of each of the values, sorted by size; equal sizes have
// the mean of their ranks.
func doubledRanks(sorted []float64) []int {
	ranks := make([]int, len(sorted))
	for from := 0; from < len(sorted); {
		to := from
		for to < len(sorted) && math.Abs(sorted[to]) == math.Abs(sorted[from]) {
			to++
		}
		for i := from; i < to; i++ {
			ranks[i] = from + 1 + to
		}
		from = to
	}
	return ranks
}

// exactRank returns the two-sided chance of a sum of ranks, each of them in it or not.
func exactRank(ranks []int, sum int) float64 {
	all := 0
	chances := []float64{1}
	for _, r := range ranks {
		all += r
		next := make([]float64, all+1)
		for s, p := range chances {
			next[s] += p / 2
			next[s+r] += p / 2
		}
		chances = next
	}
	below, above := 0.0, 0.0
	for s, p := range chances {
		if s <= sum {
			below += p
		}
		if s >= sum {
			above += p
		}
	}
	return min(1, 2*min(below, above))
}

// holm corrects chances for how many there are: rejecting what has at most 5 % rejects
// anything true with at most 5 %.
// Source: Holm, "A simple sequentially rejective multiple test procedure", 1979.
func holm(chances []float64) []float64 {
	order := make([]int, len(chances))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(chances[a], chances[b]) })
	corrected, most := make([]float64, len(chances)), 0.0
	for place, i := range order {
		most = max(most, min(1, float64(len(chances)-place)*chances[i]))
		corrected[i] = most
	}
	return corrected
}

// confidence is how sure it is that the true number lies in an [Interval].
const confidence = 0.95

// An Interval is a number that was measured, and where the true one lies with [confidence].
type Interval struct{ Value, Low, High float64 }

// median returns the median of sorted values with the interval of order statistics, which holds
// for every distribution; below six values it has no ends.
// Source: Conover, "Practical Nonparametric Statistics", 1999, section 3.2.
func median(sorted []float64) Interval {
	n, none := len(sorted), math.Inf(1)
	in := Interval{middle(sorted), -none, none}
	beyond := 0.0 // the chance that the true one is
	for out := range n / 2 {
		if beyond += heads(n, out); beyond > (1-confidence)/2 {
			break
		}
		in.Low, in.High = sorted[out], sorted[n-1-out]
	}
	return in
}

// middle returns the median of sorted values; NaN when there are none.
func middle(sorted []float64) float64 {
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	if lower, upper := sorted[(n-1)/2], sorted[n/2]; lower != upper {
		return (lower + upper) / 2
	}
	return sorted[n/2]
}

// resamples is how often the bootstrap draws. Source: Efron, Tibshirani, "An Introduction to the
// Bootstrap", 1993, section 13.3 (1,000 or more for intervals).
const resamples = 1000

// bootstrap returns the interval in which 95 % of the means of resampled differences lie. What
// it draws is always the same. Without differences, or with one only, it is what they are.
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
	return means[resamples/40-1], means[resamples-resamples/40-1]
}

// mean returns the mean of values; 0 when there are none.
func mean(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
