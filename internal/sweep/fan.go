package sweep

import (
	"math"
	"slices"
)

// shares is how many points a completion has besides the beginning: one for each 2 %.
const shares = 50

// A Fan is when so much of the work was complete, over the samples of a combination: for each share
// of the migrations, from 0 to 100 % in steps of 2 %, the time in seconds by which 10, 50 and 90 % of
// the samples had come so far. -1 is never.
type Fan struct {
	Combination int       `json:"combination"`
	Samples     int       `json:"samples"`
	P10         []float64 `json:"p10"`
	P50         []float64 `json:"p50"`
	P90         []float64 `json:"p90"`
}

// completion returns when each share of the migrations was complete that a world wanted, by when they
// succeeded, in order. Infinity is never.
func completion(ends []float64, wanted int) []float32 {
	list := make([]float32, shares+1)
	for i := 1; i <= shares; i++ {
		k := (i*wanted + shares - 1) / shares
		switch {
		case k > len(ends):
			list[i] = float32(math.Inf(1))
		case k > 0:
			list[i] = float32(ends[k-1])
		}
	}
	return list
}

// fan sums up the completions of samples; false is that they have none.
func fan(combination int, samples []Sample) (Fan, bool) {
	f := Fan{Combination: combination}
	var all [][]float32
	for i := range samples {
		if c := samples[i].Completion; c != nil {
			all = append(all, c)
		}
	}
	if f.Samples = len(all); f.Samples == 0 {
		return f, false
	}
	at := make([]float64, len(all))
	for i := range shares + 1 {
		for k := range all {
			at[k] = float64(all[k][i])
		}
		slices.Sort(at)
		f.P10, f.P50 = append(f.P10, reached(at, 0.1)), append(f.P50, reached(at, 0.5))
		f.P90 = append(f.P90, reached(at, 0.9))
	}
	return f, true
}

// reached returns a quantile of sorted times; -1 is never.
func reached(sorted []float64, q float64) float64 {
	if x := Quantile(sorted, q); !math.IsInf(x, 1) {
		return rounded(x)
	}
	return notReached
}

// notReached is a time in seconds that does not come.
const notReached = -1
