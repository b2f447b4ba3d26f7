package sweep

import (
	"cmp"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/internal/testutil"
)

// TestTheSignTestIsExact: against sums of binomial coefficients.
func TestTheSignTestIsExact(t *testing.T) {
	testutil.Unraced(t)
	for n := range 80 {
		for less := range n + 1 {
			tail := new(big.Int)
			for k := range min(less, n-less) + 1 {
				tail.Add(tail, new(big.Int).Binomial(int64(n), int64(k)))
			}
			all := new(big.Int).Lsh(big.NewInt(1), uint(n))
			want, _ := new(big.Rat).SetFrac(tail.Lsh(tail, 1), all).Float64()
			if got := signTest(less, n-less); math.Abs(got-min(1, want)) > 1e-9 {
				t.Errorf("SignTest(%d, %d) = %v, want %v", less, n-less, got, min(1, want))
			}
		}
	}
}

// TestTheBootstrapIsThatOfAllResamples: of few differences all resamples can be
// listed, and about 2.5 % of their means lie beyond each end of the interval.
func TestTheBootstrapIsThatOfAllResamples(t *testing.T) {
	for _, differences := range [][]float64{
		{-1, 0, 1, 5}, {3, 4, 5, 6, 100}, {-7, -6.5, -6, -1, 0, 2},
	} {
		n := len(differences)
		var means []float64
		for code := range int(math.Pow(float64(n), float64(n))) {
			sum := 0.0
			for range n {
				sum += differences[code%n]
				code /= n
			}
			means = append(means, sum/float64(n))
		}
		low, high := bootstrap(differences)
		below, above, outside := 0, 0, 0
		for _, m := range means {
			if m < low {
				below++
			}
			if m > high {
				above++
			}
			if m < low || m > high {
				outside++
			}
		}
		// The means are few and different, so that less may lie outside, not more.
		limit := int(0.04 * float64(len(means)))
		if below > limit || above > limit || low >= high || outside == 0 {
			t.Errorf("%v: [%v, %v] leaves out %d and %d of %d", differences, low, high, below,
				above, len(means))
		}
	}
	if low, high := bootstrap([]float64{2, 2, 2}); low != 2 || high != 2 {
		t.Errorf("what is certain has the interval [%v, %v]", low, high)
	}
}

// Values from the documentation of R's wilcox.test and of SciPy's wilcoxon.
func TestTheSignedRankTestIsTheKnownOne(t *testing.T) {
	before := []float64{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30}
	after := []float64{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29}
	depression := make([]float64, len(before))
	for i := range before {
		depression[i] = before[i] - after[i]
	}
	maize := []float64{6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75}
	for _, test := range []struct {
		name        string
		differences []float64
		want        float64
	}{
		{"depression", depression, 0.0390625},
		{"maize", maize, 0.041259765625},
		{"nothing", nil, 1},
		{"zeros say nothing", append([]float64{0, 0}, maize...), 0.041259765625},
	} {
		if got := signedRank(test.differences); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// TestTheSignedRankTestCountsAllSigns: against every way to give the differences signs, with
// ties, zeros and what is infinite.
func TestTheSignedRankTestCountsAllSigns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.SampledFrom([]float64{0, 1, -1, 2, -2, 2.5, -7, 9, math.Inf(1),
			math.Inf(-1)})
		d := rapid.SliceOfN(number, 1, 9).Draw(t, "differences")
		if got, want := signedRank(d), signedRankByHand(d); math.Abs(got-want) > 1e-9 {
			t.Fatalf("%v: %v, want %v", d, got, want)
		}
	})
}

func signedRankByHand(differences []float64) float64 {
	var sizes, signs []float64
	for _, x := range differences {
		if x != 0 {
			sizes, signs = append(sizes, math.Abs(x)), append(signs, x)
		}
	}
	rank := func(i int) float64 {
		below, same := 0, 0
		for _, s := range sizes {
			switch cmp.Compare(s, sizes[i]) {
			case -1:
				below++
			case 0:
				same++
			}
		}
		return float64(below) + float64(same+1)/2
	}
	sum := func(positive func(int) bool) (w float64) {
		for i := range sizes {
			if positive(i) {
				w += rank(i)
			}
		}
		return w
	}
	seen := sum(func(i int) bool { return signs[i] > 0 })
	low, high, all := 0, 0, 1<<len(sizes)
	for code := range all {
		switch w := sum(func(i int) bool { return code>>i&1 == 1 }); {
		case w == seen:
			low, high = low+1, high+1
		case w < seen:
			low++
		default:
			high++
		}
	}
	return min(1, 2*float64(min(low, high))/float64(all))
}

// TestTheApproximationIsClose: where the normal approximation begins it says what the exact
// distribution does, ties or not.
func TestTheApproximationIsClose(t *testing.T) {
	testutil.Unraced(t)
	chance := rand.New(rand.NewPCG(1, 2))
	for _, most := range []int{1, 3, 20, 1000} {
		for shift := range 4 {
			d := make([]float64, exactly+1)
			for i := range d {
				d[i] = float64(chance.IntN(2*most+1) - most + shift*most/10)
			}
			d = slices.DeleteFunc(d, func(x float64) bool { return x == 0 })
			for len(d) <= exactly {
				d = append(d, float64(1-2*(len(d)%2)))
			}
			slices.SortFunc(d, func(a, b float64) int {
				return cmp.Compare(math.Abs(a), math.Abs(b))
			})
			ranks, positive := doubledRanks(d), 0
			for i, r := range ranks {
				if d[i] > 0 {
					positive += r
				}
			}
			got, want := signedRank(d), exactRank(ranks, positive)
			if math.Abs(got-want) > 0.01 {
				t.Errorf("up to %d, shifted by %d: %v, exactly %v", most, shift, got, want)
			}
		}
	}
}

// TestTheMedianHasTheTabulatedInterval: ranks as in Conover's table, and none below six.
func TestTheMedianHasTheTabulatedInterval(t *testing.T) {
	for _, row := range []struct{ n, low, high int }{
		{5, 0, 0}, {6, 1, 6}, {9, 2, 8}, {10, 2, 9}, {20, 6, 15}, {25, 8, 18}, {100, 40, 61},
	} {
		values := make([]float64, row.n)
		for i := range values {
			values[i] = float64(i + 1)
		}
		got := median(values)
		want := Interval{float64(row.n+1) / 2, float64(row.low), float64(row.high)}
		if row.low == 0 {
			want.Low, want.High = math.Inf(-1), math.Inf(1)
		}
		if got != want {
			t.Errorf("of %d: %v, want %v", row.n, got, want)
		}
	}
	if got := median(nil); !math.IsNaN(got.Value) || !math.IsInf(got.High, 1) {
		t.Errorf("of nothing: %v", got)
	}
}

// R: p.adjust(c(0.01, 0.04, 0.03, 0.02, 0.9), "holm").
func TestHolm(t *testing.T) {
	got := holm([]float64{0.01, 0.04, 0.03, 0.02, 0.9})
	want := []float64{0.05, 0.09, 0.09, 0.08, 0.9}
	for i := range got {
		got[i] = math.Round(got[i]*1e9) / 1e9
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
