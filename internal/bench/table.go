package bench

import (
	"math"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/sim"
)

// A Candidate is a policy with a name.
type ContestPolicy struct {
	Name   string
	Policy convergence.Policy
	Ours   bool
}

// ContestPolicies returns the policies that are known.
func ContestPolicies() []ContestPolicy {
	return []ContestPolicy{
		{"KubeVirt legacy", convergence.By(convergence.Legacy), false},
		{"KubeVirt stall", convergence.By(convergence.Stall), false},
		{"Nova", Nova, false},
		{"oVirt", OVirt, false},
		{"godwit watermark", convergence.By(convergence.Watermark), true},
		{"godwit forecast", convergence.ConvergeByForecast, true},
	}
}

// A Row is what a policy came to on many traces.
type Row struct {
	Policy    string `json:"policy"`
	Ours      bool   `json:"ours"`
	Runs      int    `json:"runs"`
	Succeeded int    `json:"succeeded"`
	// MeanSeconds is the time until the end, well or not; P50 and P99 are of the same.
	MeanSeconds float64 `json:"meanSeconds"`
	P50Seconds  float64 `json:"p50Seconds"`
	P99Seconds  float64 `json:"p99Seconds"`
	// The downtimes of those that succeeded, in milliseconds.
	P50Downtime float64 `json:"p50DowntimeMilliseconds"`
	P99Downtime float64 `json:"p99DowntimeMilliseconds"`
	MaxDowntime float64 `json:"maxDowntimeMilliseconds"`
	// BrownoutSeconds is the mean of all runs.
	BrownoutSeconds float64          `json:"meanBrownoutSeconds"`
	MeanSent        hypervisor.Bytes `json:"meanBytes"`
	// Against is how many times as long it took as the last candidate, over the traces on
	// which both succeeded; 0 is none.
	Against float64 `json:"timesAsLongAsForecast"`
}

// RunAll lets every candidate move every guest; the outcomes are those of the candidates,
// in the order of the traces.
func RunAll(traces []Trace, terms Terms) ([][]ContestOutcome, error) {
	var all [][]ContestOutcome
	for _, c := range ContestPolicies() {
		outcomes := make([]ContestOutcome, len(traces))
		for i := range traces {
			var err error
			if outcomes[i], err = RunContest(traces[i], terms, c.Policy); err != nil {
				return nil, err
			}
		}
		all = append(all, outcomes)
	}
	return all, nil
}

// Rows sums up what RunAll returned.
func Rows(outcomes [][]ContestOutcome) []Row {
	rows := make([]Row, len(outcomes))
	for i, c := range ContestPolicies() {
		rows[i] = Sum(c, outcomes[i])
		_, rows[i].Against = Pairs(outcomes[len(outcomes)-1], outcomes[i])
	}
	return rows
}

// Sum makes a row of outcomes.
func Sum(c ContestPolicy, outcomes []ContestOutcome) Row {
	r := Row{Policy: c.Name, Ours: c.Ours, Runs: len(outcomes)}
	var took, dark []float64
	var total, brown time.Duration
	var sent hypervisor.Bytes
	for _, o := range outcomes {
		total, brown, sent = total+o.Took, brown+o.Brownout, sent+o.Sent
		took = append(took, seconds(o.Took))
		if o.Succeeded {
			dark = append(dark, 1000*seconds(o.Downtime))
		}
	}
	slices.Sort(took)
	slices.Sort(dark)
	n := time.Duration(max(1, len(outcomes)))
	r.Succeeded, r.MeanSeconds, r.BrownoutSeconds = len(dark), seconds(total/n), seconds(brown/n)
	r.MeanSent = sent / hypervisor.Bytes(n)
	r.P50Seconds, r.P99Seconds = sim.Quantile(took, 0.5), sim.Quantile(took, 0.99)
	r.P50Downtime, r.P99Downtime = sim.Quantile(dark, 0.5), sim.Quantile(dark, 0.99)
	r.MaxDowntime = sim.Quantile(dark, 1)
	return r
}

// Pairs returns, over the traces on which both succeeded, how many there are, and how many
// times as long theirs took as ours.
func Pairs(ours, theirs []ContestOutcome) (both int, ratio float64) {
	var a, b time.Duration
	for i := range ours {
		if ours[i].Succeeded && theirs[i].Succeeded {
			both++
			a, b = a+ours[i].Took, b+theirs[i].Took
		}
	}
	if a == 0 {
		return both, 0
	}
	return both, math.Round(1000*float64(b)/float64(a)) / 1000
}

// seconds rounds to milliseconds.
func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }
