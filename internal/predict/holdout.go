package predict

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
)

// A Coverage says how well ranges hold for measurements that they were not learned from.
type Coverage struct {
	Class string `json:"class"`
	Count int    `json:"count"`
	// Total and Downtime are the shares of the measurements between p10 and p90.
	Total    float64 `json:"total"`
	Downtime float64 `json:"downtime"`
	// MedianTotal and MedianDowntime are how far p50 is off, as shares of the measurements: 0.05
	// is 5 %.
	MedianTotal    float64 `json:"medianTotal"`
	MedianDowntime float64 `json:"medianDowntime"`
}

// HoldOut predicts each measurement by ranges that were learned from the others, and returns by
// class how well they hold. The class "all" is the last. It says what to expect for a migration
// as they were measured before.
func HoldOut(samples []Sample) []Coverage {
	single := slices.Clone(samples)
	for i := range single {
		single[i].Experiment = strconv.Itoa(i)
	}
	return HoldOutExperiments(single)
}

// HoldOutExperiments is [HoldOut], and leaves out all runs of an experiment together: it says what
// to expect for a migration of a known class that was never tried.
func HoldOutExperiments(samples []Sample) []Coverage {
	experiments := map[string][]Sample{}
	for i := range samples {
		name := samples[i].Experiment
		experiments[name] = append(experiments[name], samples[i])
	}
	tallies, all := map[string]*tally{}, &tally{}
	for _, name := range slices.Sorted(maps.Keys(experiments)) {
		e := Learn(slices.DeleteFunc(slices.Clone(samples), func(s Sample) bool {
			return s.Experiment == name
		}))
		for i := range experiments[name] {
			s := &experiments[name][i]
			if tallies[s.Class] == nil {
				tallies[s.Class] = &tally{}
			}
			p := e.Of(s.Class, s.Predicted, 0)
			tallies[s.Class].add(s, &p)
			all.add(s, &p)
		}
	}
	var list []Coverage
	for _, class := range slices.Sorted(maps.Keys(tallies)) {
		list = append(list, tallies[class].coverage(class))
	}
	return append(list, all.coverage("all"))
}

// A tally counts measurements inside ranges.
type tally struct {
	count, total, downtime int
	unknown                int // downtimes that were not measured
	totals, downtimes      []float64
}

func (t *tally) add(s *Sample, p *Prediction) {
	t.count++
	if p.Seconds.holds(s.Measured.Total.Seconds()) {
		t.total++
	}
	t.totals = append(t.totals, share(p.Seconds.P50, s.Measured.Total.Seconds(), 0))
	if s.NoDowntime {
		t.unknown++
		return
	}
	ms := float64(s.Measured.Downtime) / float64(time.Millisecond)
	if p.Downtime.holds(ms) {
		t.downtime++
	}
	t.downtimes = append(t.downtimes,
		share(p.Downtime.P50, ms, float64(Jitter)/float64(time.Millisecond)))
}

// holds reports whether a measurement is between p10 and p90.
func (r Range) holds(x float64) bool { return r.P10 <= x && x <= r.P90 }

// share returns how far got is from want, or from least if that is more.
func share(got, want, least float64) float64 {
	return math.Abs(got-want) / max(want, least, 1e-3)
}

func (t *tally) coverage(class string) Coverage {
	slices.Sort(t.totals)
	slices.Sort(t.downtimes)
	c := Coverage{Class: class, Count: t.count, Total: float64(t.total) / float64(max(1, t.count)),
		Downtime: float64(t.downtime) / float64(max(1, t.count-t.unknown))}
	if t.count > 0 {
		c.MedianTotal = quantile(t.totals, mid)
	}
	if t.count > t.unknown {
		c.MedianDowntime = quantile(t.downtimes, mid)
	}
	return c
}
