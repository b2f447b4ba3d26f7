package sweep

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestQuantilesAreWhatTheySay: a share q of the values does not exceed it, and no
// smaller value has that property.
func TestQuantilesAreWhatTheySay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-10, 10), 1, 60).Draw(t, "values")
		percent := rapid.IntRange(1, 100).Draw(t, "percent")
		slices.Sort(values)
		got := Quantile(values, float64(percent)/100)
		upTo := func(x float64) (n int) {
			for _, v := range values {
				if v <= x {
					n++
				}
			}
			return n
		}
		if !slices.Contains(values, got) || upTo(got)*100 < percent*len(values) {
			t.Errorf("quantile %d %% of %v = %v", percent, values, got)
		}
		for _, v := range values {
			if v < got && upTo(v)*100 >= percent*len(values) {
				t.Errorf("quantile %d %% of %v = %v, and %v would do", percent, values, got, v)
			}
		}
	})
}

func TestAStatisticIsTheNaiveOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.IntRange(0, 1000), 1, 99).Draw(t, "values")
		sum, all := 0, make([]float64, len(values))
		for i, v := range values {
			all[i] = float64(v)
			sum += v
		}
		got := statistic("x", all)
		slices.Sort(values)
		n := len(values)
		rank := func(percent int) float64 { return float64(values[(percent*n+99)/100-1]) }
		want := Statistic{"x", n, math.Round(float64(sum)/float64(n)*1000) / 1000, rank(1),
			rank(10), rank(50), rank(90), rank(99), rank(100)}
		if want.Min = float64(values[0]); got != want {
			t.Errorf("statistic of %v = %+v, want %+v", values, got, want)
		}
	})
	if got := statistic("x", nil); got != (Statistic{Measure: "x"}) {
		t.Errorf("without samples it is %+v", got)
	}
	if got := statistic("x", []float64{4, math.NaN(), 6}); got.Samples != 2 || got.Mean != 5 ||
		got.Min != 4 {
		t.Errorf("of two that are known and one that is not it is %+v", got)
	}
}

func TestASampleInWhichNothingMovesHasNoDowntime(t *testing.T) {
	still, moved := Sample{}, Sample{Stood: 3, Downtime: Spread{P50: 0, P99: 0}}
	moved.Migrations.Succeeded = 3
	for _, m := range Measures() {
		none := strings.HasPrefix(m.Name, "downtime") || strings.HasPrefix(m.Name, "duration")
		if got := m.Of(&still); math.IsNaN(got) != none {
			t.Errorf("%s of a world at rest is %v", m.Name, got)
		}
		if got := m.Of(&moved); math.IsNaN(got) {
			t.Errorf("%s of a world that moved is unknown", m.Name)
		}
	}
}

func TestVerdicts(t *testing.T) {
	times := func(n int, x ...float64) (all []float64) {
		for range n {
			all = append(all, x...)
		}
		return all
	}
	tests := []struct {
		name            string
		values, against []float64
		want            Outcome
	}{
		{"always less", times(10, 1), times(10, 3), Lower},
		{"always more", times(10, 3), times(10, 1), Higher},
		{"always less, but only five pairs", times(5, 1), times(5, 3), Undecided},
		{"six pairs are enough", times(6, 1), times(6, 3), Lower},
		{"the same", times(50, 1), times(50, 1), Undecided},
		{"now more, now less", times(20, 1, 3), times(20, 3, 1), Undecided},
		{"often a little less, rarely a lot more", append(times(30, 1), 9000, 9000),
			append(times(30, 1.1), 0, 0), Undecided},
		{"mostly less", append(times(30, 1), 3, 3), append(times(30, 2), 1, 1), Lower},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := compare(tt.values, tt.against)
			if c.Outcome != tt.want || c.Less+c.More+c.Same != len(tt.values) {
				t.Errorf("compared: %+v, want %s", c, tt.want)
			}
			back := compare(tt.against, tt.values)
			if back.Less != c.More || back.Mean != -c.Mean && c.Mean != 0 {
				t.Errorf("the other way round it is %+v", back)
			}
		})
	}
}
