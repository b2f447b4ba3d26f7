package sweep

import (
	"math"
	"slices"
)

// A Measure is a number of a sample. Less is better.
type Measure struct {
	Name string // as in [Document], with its unit
	// Of returns the number; NaN is that the sample has none: nothing moved in it.
	Of func(*Sample) float64
	// Compared says that combinations are compared by it; Emptied, only in samples in which all
	// drained hosts were emptied on both sides.
	Compared, Emptied bool
}

// Measures lists what is counted, in the order in which documents have it.
func Measures() []Measure {
	return []Measure{
		{"makespanSeconds", only(func(s *Sample) float64 { return s.Makespan }, func(s *Sample) bool {
			return s.Makespan > 0 || s.emptied() // unknown when VMs stayed and none left
		}), true, true},
		{"durationP50Seconds", moved(func(s *Sample) float64 { return s.Duration.P50 }), false, false},
		{"durationP99Seconds", moved(func(s *Sample) float64 { return s.Duration.P99 }), true, false},
		{"downtimeP50Milliseconds", stood(func(s *Sample) float64 { return s.Downtime.P50 }), false, false},
		{"downtimeP99Milliseconds", stood(func(s *Sample) float64 { return s.Downtime.P99 }), true, false},
		{"downtimeMaxMilliseconds", stood(func(s *Sample) float64 { return s.Downtime.Max }), false, false},
		{"outageSeconds", func(s *Sample) float64 { return s.Outage }, false, false},
		{"down", func(s *Sample) float64 { return float64(s.Down) }, false, false},
		{"brownoutMaxSeconds", func(s *Sample) float64 { return s.Brownout.MaxSeconds }, true, false},
		{"brownoutMaxPercent", func(s *Sample) float64 {
			return float64(s.Brownout.MaxPercent)
		}, false, false},
		{"failures", func(s *Sample) float64 { return float64(s.Migrations.Failed) }, true, false},
		{"retries", func(s *Sample) float64 { return float64(s.Retries) }, false, false},
		{"stayed", func(s *Sample) float64 { return float64(s.Stayed) }, true, false},
		{"bytesTransferred", func(s *Sample) float64 { return float64(s.Bytes) }, true, false},
		{"violations", func(s *Sample) float64 { return float64(len(s.Violations)) }, false, false},
	}
}

// moved makes a measure that a sample in which nothing has moved does not have.
func moved(of func(*Sample) float64) func(*Sample) float64 {
	return only(of, func(s *Sample) bool {
		return s.Migrations.Succeeded > 0 || s.Duration != Spread{}
	})
}

// stood makes a measure that a sample does not have of whose downtimes nothing is known.
func stood(of func(*Sample) float64) func(*Sample) float64 {
	return only(of, func(s *Sample) bool { return s.Stood > 0 || s.Downtime != Spread{} })
}

// emptied reports whether no VM stayed on a drained host.
func (s *Sample) emptied() bool { return s.Stayed == 0 }

func only(of func(*Sample) float64, has func(*Sample) bool) func(*Sample) float64 {
	return func(s *Sample) float64 {
		if !has(s) {
			return math.NaN()
		}
		return of(s)
	}
}

// A Statistic is the distribution of a measure over those samples of a combination that have it.
type Statistic struct {
	Measure string  `json:"measure"`
	Samples int     `json:"samples"` // that have it; of none the others are 0
	Mean    float64 `json:"mean"`
	Min     float64 `json:"min"`
	P10     float64 `json:"p10"`
	P50     float64 `json:"p50"`
	P90     float64 `json:"p90"`
	P99     float64 `json:"p99"`
	Max     float64 `json:"max"`
}

func statistic(measure string, values []float64) Statistic {
	values = slices.DeleteFunc(values, math.IsNaN)
	if len(values) == 0 {
		return Statistic{Measure: measure}
	}
	slices.Sort(values)
	return Statistic{measure, len(values), rounded(mean(values)), Quantile(values, 0),
		Quantile(values, 0.1), Quantile(values, 0.5), Quantile(values, 0.9),
		Quantile(values, 0.99), Quantile(values, 1)}
}

// Quantile returns the smallest of the sorted values that at least a share q of
// them do not exceed; 0 when there are none.
func Quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[max(0, min(at, len(sorted)-1))]
}

// rounded rounds to thousandths: what is beyond is no news, and differs between
// machines.
func rounded(x float64) float64 {
	r := math.Round(x*1000) / 1000
	if r == 0 {
		return 0 // without a sign
	}
	return r
}
