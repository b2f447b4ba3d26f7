package whatif

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/sweep"
)

// Samples plays the plan in so many worlds, several at once. Their seeds follow from
// the given one, as those of a sweep do, and what differs is what the scenario varies.
func (p *Play) Samples(ctx context.Context, seed uint64, n int) ([]*Run, error) {
	return p.samples(ctx, seed, 0, n)
}

// samples plays the plan in the worlds from one number to before another.
func (p *Play) samples(ctx context.Context, seed uint64, from, to int) ([]*Run, error) {
	base, runs := p.staged(), make([]*Run, to-from)
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range runs {
		group.Go(func() error {
			own := sweep.Seed(seed, from+i)
			drawn, err := base.Draw(own)
			if err == nil {
				runs[i], err = p.play(within, drawn, own)
			}
			if err != nil {
				return fmt.Errorf("seed %d: %w", own, err)
			}
			return nil
		})
	}
	return runs, group.Wait()
}

// A Spread is a distribution over runs, in the unit of what it is of. Null is never: it
// did not come about in so many of them.
type Spread struct {
	P50 *float64 `json:"p50"`
	P95 *float64 `json:"p95"`
	P99 *float64 `json:"p99"`
	Max *float64 `json:"max"`
}

// spreadOf returns the distribution of what came about in some of all runs.
func spreadOf(values []float64, runs int) Spread {
	for len(values) < runs {
		values = append(values, math.Inf(1))
	}
	slices.Sort(values)
	at := func(q float64) *float64 {
		if v := sweep.Quantile(values, q); !math.IsInf(v, 1) && runs > 0 {
			return &v
		}
		return nil
	}
	return Spread{at(0.5), at(0.95), at(0.99), at(1)}
}

// A Summary is what the runs came to.
type Summary struct {
	Runs  int `json:"runs"`
	Empty int `json:"empty"` // in which the hosts were empty in the end
	// Seconds is the time until they were.
	Seconds Spread `json:"secondsToEmpty"`
	// Hosts is the time until each of them was.
	Hosts map[hypervisor.HostName]Spread `json:"-"`
	// VMs sums up the moves of each VM, over the runs.
	VMs map[hypervisor.VMID]MoveSummary `json:"-"`
	// Violated counts the runs in which an invariant did not hold.
	Violated int `json:"violated"`
}

// A MoveSummary sums up the moves of one VM in many runs.
type MoveSummary struct {
	Runs     int    `json:"runs"`
	Moved    int    `json:"moved"`   // runs in which it did
	Retried  int    `json:"retried"` // runs in which it took more than one attempt
	Seconds  Spread `json:"seconds"`
	Downtime Spread `json:"downtimeMilliseconds"`
}

// Summarize sums up runs of one plan.
func Summarize(runs []*Run) Summary {
	s := Summary{Runs: len(runs), VMs: map[hypervisor.VMID]MoveSummary{}}
	var empty []float64
	emptied := map[hypervisor.HostName][]float64{}
	took, downtime := map[hypervisor.VMID][]float64{}, map[hypervisor.VMID][]float64{}
	for _, r := range runs {
		if r.Empty >= 0 {
			s.Empty++
			empty = append(empty, r.Empty.Seconds())
		}
		for host, after := range r.Emptied {
			emptied[host] = append(emptied[host], after.Seconds())
		}
		if len(r.Violations) > 0 {
			s.Violated++
		}
		for vm, p := range r.Results {
			f := s.VMs[vm]
			if p.Done {
				f.Moved++
				took[vm] = append(took[vm], p.Took.Seconds())
			}
			if p.Done || p.Downtime > 0 {
				downtime[vm] = append(downtime[vm], p.Downtime.Seconds()*1000)
			}
			if p.Attempts > 1 {
				f.Retried++
			}
			s.VMs[vm] = f
		}
	}
	s.Seconds = spreadOf(empty, s.Runs)
	if len(emptied) > 0 {
		s.Hosts = make(map[hypervisor.HostName]Spread, len(emptied))
	}
	for host, after := range emptied {
		s.Hosts[host] = spreadOf(after, s.Runs)
	}
	for vm, f := range s.VMs {
		f.Runs = s.Runs
		f.Seconds, f.Downtime = spreadOf(took[vm], s.Runs), spreadOf(downtime[vm], s.Runs)
		s.VMs[vm] = f
	}
	return s
}

// InTime counts the runs in which the hosts were empty in time.
func InTime(runs []*Run, within time.Duration) int {
	n := 0
	for _, r := range runs {
		if r.Empty >= 0 && r.Empty <= within {
			n++
		}
	}
	return n
}

// AtLeast returns the probability that is at least so high with 95 % confidence when
// n of all independent runs succeeded: the one-sided bound of Wilson's score interval.
// Source: Wilson, "Probable inference, the law of succession, and statistical
// inference", JASA 1927.
func AtLeast(n, all int) float64 {
	if all == 0 {
		return 0
	}
	const z = 1.6448536269514722 // the 95 % quantile of the normal distribution
	p, m := float64(n)/float64(all), float64(all)
	spread := z * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return max(0, (p+z*z/(2*m)-spread)/(1+z*z/m))
}
