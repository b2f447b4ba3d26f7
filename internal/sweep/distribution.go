package sweep

import (
	"math"
	"slices"

	"github.com/godwit-vm/godwit/migration"
)

// A Distribution is a histogram with the percentiles of what it counts. Its bins are equally
// wide on a logarithmic scale, ten to a decade; the first and the last are empty.
type Distribution struct {
	Count  int       `json:"count"`
	P50    float64   `json:"p50"`
	P90    float64   `json:"p90"`
	P99    float64   `json:"p99"`
	Max    float64   `json:"max"`
	Edges  []float64 `json:"edges"` // of the bins, one more than there are
	Counts []int     `json:"counts"`
}

// least is the smallest value that has a bin of its own; what is smaller shares it.
const least = 0.1

// distribution sums up values; nil when there are none.
func distribution(values []float64) *Distribution {
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	first, last := bin(values[0])-1, bin(values[len(values)-1])+1
	at := func(share float64) float64 { return Quantile(values, share) }
	d := &Distribution{Count: len(values), P50: at(0.5), P90: at(0.9), P99: at(0.99), Max: at(1),
		Counts: make([]int, last-first+1)}
	for i := first; i <= last+1; i++ {
		d.Edges = append(d.Edges, math.Pow(10, float64(i)/10))
	}
	for _, v := range values {
		d.Counts[bin(v)-first]++
	}
	return d
}

// bin returns the bin of a value: bin i begins at 10^(i/10).
func bin(v float64) int { return int(math.Floor(10*math.Log10(max(v, least)) + 1e-9)) }

// downtimes returns how long guests stood, in milliseconds: of the VMs that have moved, and of
// those that stood for nothing.
func downtimes(rows []row) (list []float64) {
	for i := range rows {
		if rows[i].downtime != never {
			list = append(list, milliseconds(rows[i].downtime))
		}
	}
	return list
}

// durations returns how long migrations that succeeded took from the beginning of their
// transfer, in seconds.
func durations(rows []row) (list []float64) {
	for i := range rows {
		n := &rows[i]
		if n.outcome <= Lost && n.at[migration.Running] != never {
			list = append(list, milliseconds(n.at[ended]-n.at[migration.Running])/1000)
		}
	}
	return list
}
