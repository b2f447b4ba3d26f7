package predict

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/internal/humanize"
)

const (
	// Enough is how many measurements a class needs for quantiles of its own.
	Enough = 10
	// Unknown is the factor by which a class that was never measured may be off: the model took
	// encryption with certificates for nine times slower than it is until it was measured.
	Unknown = 10
	// Jitter is added to downtimes before they are compared: below it the machine's own jitter
	// rules.
	Jitter = 10 * time.Millisecond
	// low and high are the quantiles of a range.
	low, mid, high = 0.1, 0.5, 0.9
)

// Times are those of one migration.
type Times struct{ Total, Downtime time.Duration }

// A Sample is a migration that was predicted and then measured.
type Sample struct {
	Class string
	// Experiment names what was asked for. Runs of one experiment give each other away, so they
	// are held out together.
	Experiment          string
	Predicted, Measured Times
	NoDowntime          bool // the downtime was not measured
}

// A Range is a distribution of what is predicted.
type Range struct {
	P10 float64 `json:"p10"`
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
}

// A Prediction is the distribution of the times of one migration.
type Prediction struct {
	Class string `json:"class"`
	// Measured is how many measurements of the class there are: with 0 it is a guess.
	Measured int   `json:"measured"`
	Seconds  Range `json:"seconds"`
	Downtime Range `json:"downtimeMilliseconds"`
	// Note says what is not known; "" is nothing.
	Note string `json:"note,omitempty"`
}

// String writes the ranges, and on what they are based.
func (p *Prediction) String() string {
	text := fmt.Sprintf("it takes %s–%s, p50 %s; downtime %s–%s, p50 %s; ",
		humanize.Span(p.Seconds.P10), humanize.Span(p.Seconds.P90), humanize.Span(p.Seconds.P50),
		humanize.Milliseconds(p.Downtime.P10), humanize.Milliseconds(p.Downtime.P90),
		humanize.Milliseconds(p.Downtime.P50))
	return text + p.Basis()
}

// Basis says on what the ranges are based.
func (p *Prediction) Basis() string {
	if p.Note != "" {
		return p.Note + ", so the range is wide"
	}
	return fmt.Sprintf("%s, from %s", p.Class, humanize.Count(p.Measured, "measured migration"))
}

// logs are logarithms of measured/predicted, in order.
type logs struct{ total, downtime []float64 }

// Errors are how far predictions were off, by class. The zero value has measured nothing.
type Errors struct {
	classes map[string]*logs
	all     logs
	known   map[string]Summary
}

// A Summary is how far predictions of a class were off: the factors measured/predicted below which
// 10, 50 and 90 % of the measurements were.
type Summary struct {
	Measured  int
	Downtimes int // of Measured: whose downtime is known
	Total     [3]float64
	Downtime  [3]float64 // with [Jitter] added to both
}

// Known returns errors of which summaries are known, by class.
func Known(summaries map[string]Summary) *Errors { return &Errors{known: summaries} }

// Summaries returns the summaries of all classes that were measured.
func (e *Errors) Summaries() map[string]Summary {
	all := map[string]Summary{}
	for class := range e.classes {
		total, downtime := e.logs(class)
		s := Summary{Measured: e.Measured(class), Downtimes: e.downtimes(class)}
		for i := range total {
			s.Total[i], s.Downtime[i] = math.Exp(total[i]), math.Exp(downtime[i])
		}
		all[class] = s
	}
	for class, s := range e.known {
		all[class] = s
	}
	return all
}

// Learn returns how far predictions were off.
func Learn(samples []Sample) *Errors {
	e := &Errors{classes: map[string]*logs{}}
	for i := range samples {
		s := &samples[i]
		if e.classes[s.Class] == nil {
			e.classes[s.Class] = &logs{}
		}
		total, downtime := s.off()
		for _, l := range []*logs{e.classes[s.Class], &e.all} {
			l.total = append(l.total, total)
			if !s.NoDowntime {
				l.downtime = append(l.downtime, downtime)
			}
		}
	}
	for _, l := range e.classes {
		l.sort()
	}
	e.all.sort()
	return e
}

func (l *logs) sort() {
	slices.Sort(l.total)
	slices.Sort(l.downtime)
}

// off returns the logarithms of measured/predicted.
func (s *Sample) off() (total, downtime float64) {
	ratio := func(measured, predicted, plus time.Duration) float64 {
		return math.Log(float64(max(1, measured+plus)) / float64(max(1, predicted+plus)))
	}
	return ratio(s.Measured.Total, s.Predicted.Total, 0),
		ratio(s.Measured.Downtime, s.Predicted.Downtime, Jitter)
}

// Measured returns how many measurements of a class there are.
func (e *Errors) Measured(class string) int {
	switch {
	case e == nil:
		return 0
	case e.known != nil:
		return e.known[class].Measured
	case e.classes[class] == nil:
		return 0
	}
	return len(e.classes[class].total)
}

// downtimes returns how many of the measurements of a class have a downtime. There are some of the class.
func (e *Errors) downtimes(class string) int {
	if e.known != nil {
		return e.known[class].Downtimes
	}
	return len(e.classes[class].downtime)
}

// Of returns the distribution of a migration's times. Least is what physics allows: no time is
// below it.
func (e *Errors) Of(class string, p Times, least time.Duration) Prediction {
	n := e.Measured(class)
	r := Prediction{Class: class, Measured: n}
	total, downtime := e.logs(class)
	switch {
	case n == 0:
		r.Note = fmt.Sprintf("%q was never measured", class)
	case n < Enough:
		r.Note = fmt.Sprintf("%q was measured %d times only", class, n)
	case e.downtimes(class) == 0:
		r.Note = fmt.Sprintf("downtimes of %q were never measured", class)
	}
	r.Seconds = spread(p.Total, 0, total, least).over(time.Second)
	r.Downtime = spread(p.Downtime, Jitter, downtime, 0).over(time.Millisecond)
	return r
}

// logs returns the logarithms of measured/predicted of a class: p10, p50 and p90.
func (e *Errors) logs(class string) (total, downtime [3]float64) {
	switch n := e.Measured(class); {
	case n == 0:
		return learned(nil, nil), learned(nil, nil)
	case e.known != nil:
		s := e.known[class]
		for i := range total {
			total[i], downtime[i] = math.Log(s.Total[i]), math.Log(s.Downtime[i])
		}
		return total, downtime
	default:
		l := e.classes[class]
		return learned(l.total, e.all.total), learned(l.downtime, e.all.downtime)
	}
}

// learned returns the range of the values of a class, among those of all classes.
func learned(list, all []float64) [3]float64 {
	switch {
	case len(list) == 0:
		unknown := math.Log(Unknown)
		return [3]float64{-unknown, 0, unknown}
	case len(list) < Enough:
		return few(list, all)
	}
	return quantiles(list)
}

// spread multiplies a time by ratios; none of the results is below least.
func spread(d, plus time.Duration, logs [3]float64, least time.Duration) Range {
	at := func(log float64) float64 {
		return max(float64(d+plus)*math.Exp(log)-float64(plus), float64(least), 0)
	}
	return Range{at(logs[0]), at(logs[1]), at(logs[2])}
}

// over returns the range in another unit.
func (r Range) over(unit time.Duration) Range {
	u := float64(unit)
	return Range{r.P10 / u, r.P50 / u, r.P90 / u}
}

// quantiles returns the range of sorted values.
func quantiles(list []float64) [3]float64 {
	return [3]float64{quantile(list, low), quantile(list, mid), quantile(list, high)}
}

// few returns the range when there are too few values for quantiles: all of them, and at least
// as wide as that of all classes.
func few(list, all []float64) [3]float64 {
	wide, center := quantiles(all), quantile(list, mid)
	return [3]float64{min(list[0], center+wide[0]-wide[1]), center,
		max(list[len(list)-1], center+wide[2]-wide[1])}
}

// quantile returns the value below which a further one is with probability q, as far as sorted
// values tell: of n values it is the one at q(n+1), interpolated.
// Source: Hyndman, Fan, "Sample Quantiles in Statistical Packages", 1996 (definition 6).
func quantile(list []float64, q float64) float64 {
	at := q*float64(len(list)+1) - 1
	at = min(max(at, 0), float64(len(list)-1))
	i := int(at)
	if i+1 >= len(list) {
		return list[i]
	}
	return list[i] + (at-float64(i))*(list[i+1]-list[i])
}

// z90 is the 90 % quantile of the normal distribution.
const z90 = 1.2815515655446004

// Below returns the probability that a time is at most x. Between and beyond its quantiles the range is
// taken for lognormal, with a spread of its own on either side of p50.
func (r Range) Below(x float64) float64 {
	if x >= r.P50 && r.P90 <= r.P50 || x >= r.P50 && r.P50 <= 0 {
		return 1
	}
	if x <= 0 || x < r.P50 && r.P10 >= r.P50 {
		return 0
	}
	spread := math.Log(r.P90/r.P50) / z90
	if x < r.P50 {
		spread = math.Log(r.P50/r.P10) / z90
	}
	return 0.5 * math.Erfc(-math.Log(x/r.P50)/spread/math.Sqrt2)
}

// Quantile returns the value that is not exceeded with a probability, above 0 and below 1.
func (r Range) Quantile(p float64) float64 {
	z, edge := math.Sqrt2*math.Erfinv(2*p-1), r.P90
	if z < 0 {
		z, edge = -z, r.P10
	}
	if r.P50 <= 0 || edge <= 0 {
		return r.P50
	}
	return r.P50 * math.Pow(edge/r.P50, z/z90)
}

// Plus returns the distribution of the sum of two times that are off by the same quantile: the widest
// that it can be.
func (r Range) Plus(other Range) Range {
	return Range{r.P10 + other.P10, r.P50 + other.P50, r.P90 + other.P90}
}
