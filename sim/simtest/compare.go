package simtest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/sweep"
	"github.com/godwit-vm/godwit/sim"
)

// A Side is one of two that are compared: what is plugged in, with a name for reports.
type Side struct {
	name    string
	options []Option
}

// As makes a side. Without options it is godwit's own decisions. What only says how long to
// look, or what to measure, counts for nothing here.
func As(name string, plugged ...Option) Side { return Side{name, plugged} }

// measure is a number that is read off every world when it has been played.
type measure struct {
	name string
	kind MeasureKind
	of   func(*sim.World, *sim.Result) float64
}

// Measure adds a number by which [Compare] compares: less is better. It is read when a world
// has come to its end; NaN says that this world tells nothing about it.
func Measure(name string, kind MeasureKind, of func(*sim.World) float64) Option {
	read := func(w *sim.World, _ *sim.Result) float64 { return of(w) }
	return func(s *settings) {
		s.require(name, of == nil)
		s.measures = append(s.measures, measure{name, kind, read})
	}
}

// Seed says in which worlds [Compare] compares: another number, others. Default: 0.
func Seed(seed uint64) Option { return func(s *settings) { s.seed = seed } }

// The names of what is always compared.
const (
	// TimeToEmpty is from the first drain until every drained host is empty: infinite where a
	// VM is left, and nothing where no host is drained to the end.
	TimeToEmpty = "time to empty"
	// The downtimes of a world in which something has moved.
	DowntimeP50 = "downtime p50"
	DowntimeP99 = "downtime p99"
	DowntimeMax = "downtime max"
	// Failures counts failed migrations; cancelled ones are none.
	Failures = "failed migrations"
	// Sent is how many bytes crossed the wire.
	Sent = "bytes sent"
	// Left counts the VMs that are left on drained hosts.
	Left = "VMs left"
)

// measures are those that are always compared.
var measures = []measure{
	{TimeToEmpty, Seconds, timeToEmpty},
	{DowntimeP50, Seconds, downtime(func(d sim.Downtime) float64 { return d.P50 })},
	{DowntimeP99, Seconds, downtime(func(d sim.Downtime) float64 { return d.P99 })},
	{DowntimeMax, Seconds, downtime(func(d sim.Downtime) float64 { return d.Max })},
	{Failures, Counts,
		func(_ *sim.World, r *sim.Result) float64 { return float64(r.Migrations.Failed) }},
	{Sent, Bytes,
		func(_ *sim.World, r *sim.Result) float64 { return float64(r.BytesTransferred) }},
	{Left, Counts, left},
}

func timeToEmpty(w *sim.World, r *sim.Result) float64 {
	began, ended := math.Inf(1), math.NaN()
	for _, e := range r.Evacuations {
		if e.Withdrawn {
			continue
		}
		empty := math.Inf(1)
		if e.EmptySeconds != nil {
			empty = *e.EmptySeconds
		}
		if began = min(began, e.StartSeconds); !(empty <= ended) {
			ended = empty
		}
	}
	return ended - began
}

func downtime(of func(sim.Downtime) float64) func(*sim.World, *sim.Result) float64 {
	return func(_ *sim.World, r *sim.Result) float64 {
		if r.DowntimeCount == 0 {
			return math.NaN()
		}
		return of(r.Downtime) / 1000
	}
}

func left(_ *sim.World, r *sim.Result) float64 {
	n := 0
	for _, e := range r.Evacuations {
		n += len(e.Left)
	}
	return float64(n)
}

// A Comparison says which of two sides is better at what.
type Comparison struct {
	Ours, Theirs string
	Results      []ComparisonResult // by measure, godwit's own first

	judged []sweep.ComparisonResult
}

// Compare plays the same worlds with each of two sides, with the same faults at the same times
// and the same choices, and says which is better at what: a difference counts when a sign test and
// a signed-rank test, corrected for the number of measures (Holm), find it at the level of 5 %, and
// the mean agrees. They are the same worlds every time, and others with another [Seed]. It fails the test
// when something goes wrong in a world; [Check] finds out what. Options hold for both sides;
// [Runs], [Within] and [Measure] say how long to look, and at what.
//
// A test may ask for what it takes to be true:
//
//	c := simtest.Compare(t, Busy(), simtest.As("mine", mine), simtest.As("godwit's"))
//	if err := c.NotWorse(simtest.TimeToEmpty, simtest.DowntimeP99); err != nil {
//		t.Error(err)
//	}
func Compare(t testing.TB, g Generator, ours, theirs Side, options ...Option) *Comparison {
	t.Helper()
	common := gather(t, options)
	p := paired{measures: slices.Concat(measures, common.measures)}
	for i, side := range []Side{ours, theirs} {
		p.stages[i] = gather(t, slices.Concat(options, side.options)).stage()
	}
	p.numbers = make([]sweep.MeasureKind, len(p.measures))
	for i, m := range p.measures {
		p.numbers[i] = sweep.MeasureKind{Name: m.name, Kind: sweep.Kind(m.kind)}
	}
	began, chance := time.Now(), sim.Seeded(common.seed)
	for range common.worlds() {
		if common.span > 0 && time.Since(began) >= common.span {
			break
		}
		w := g.Make(chance)
		for i, side := range []Side{ours, theirs} {
			if f := p.play(i, w); f != nil {
				t.Errorf("simtest: %s: %s\n%s\nin this world; Check makes it smaller:\n\n%s",
					side.name, f.line(), f.Detail, w)
				return &Comparison{Ours: ours.name, Theirs: theirs.name}
			}
		}
	}
	c := &Comparison{Ours: ours.name, Theirs: theirs.name, judged: sweep.Judge(p.numbers)}
	for i := range c.judged {
		c.Results = append(c.Results, resultOf(&c.judged[i]))
	}
	t.Logf("simtest: %v\n%v", g, c)
	return c
}

// paired is what both sides have measured so far.
type paired struct {
	stages   [2]*stage
	measures []measure
	numbers  []sweep.MeasureKind
}

// play plays a world with one side, and measures it. It returns what went wrong.
func (p *paired) play(side int, w *World) *failure {
	var f *failure
	at := p.stages[side]
	hung := at.attended(at, func() {
		var err error
		if f, err = at.play(w); err != nil {
			f = &failure{Name: "no world", Detail: err.Error()}
		}
		if f == nil {
			p.measure(side, at.world)
		}
	})
	if hung != nil {
		return hung
	}
	return f
}

// measure reads all numbers off a world.
func (p *paired) measure(side int, w *sim.World) {
	r := w.Result()
	for i := range p.measures {
		m := &p.numbers[i]
		to := &m.Ours
		if side == 1 {
			to = &m.Theirs
		}
		*to = append(*to, p.measures[i].of(w, &r))
	}
}

// String writes the comparison as a table and a sentence for each measure.
func (c *Comparison) String() string { return sweep.Table(c.Ours, c.Theirs, c.judged) }

// Of returns the verdict of a measure.
func (c *Comparison) Of(measure string) (v ComparisonResult, known bool) {
	for _, v := range c.Results {
		if v.Name == measure {
			return v, true
		}
	}
	return v, false
}

// NotWorse returns an error that says in which of the measures ours is worse than theirs, or
// may be by more than 1 %; nil when it is in none.
func (c *Comparison) NotWorse(measures ...string) error {
	return c.demand("not worse", measures, ComparisonResult.NotWorse)
}

// Better returns an error that says in which of the measures ours is not better than theirs;
// nil when it is in all of them.
func (c *Comparison) Better(measures ...string) error {
	return c.demand("better", measures, func(v ComparisonResult) bool { return v.Outcome == Better })
}

func (c *Comparison) demand(what string, of []string, holds func(ComparisonResult) bool) error {
	var wrong []string
	for _, name := range of {
		v, known := c.Of(name)
		switch {
		case !known:
			wrong = append(wrong, fmt.Sprintf("%q is not measured", name))
		case !holds(v):
			wrong = append(wrong, v.String())
		}
	}
	if wrong == nil {
		return nil
	}
	return fmt.Errorf("%s is not shown to be %s than %s:\n%s", c.Ours, what, c.Theirs,
		strings.Join(wrong, "\n"))
}
