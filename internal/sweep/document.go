package sweep

import (
	"cmp"
	"encoding/json"
	"io"
	"math"
	"slices"
)

// A Document is what came out of a run: what --json prints, and what reports are
// made from.
type Document struct {
	Run Run `json:"run"`
	// Worlds is how many there are, Complete how many have been simulated: fewer
	// when the run was interrupted.
	Worlds       int           `json:"worlds"`
	Complete     int           `json:"complete"`
	Combinations []Combination `json:"combinations"`
	// Comparisons set every combination but the first against the first.
	Comparisons []Comparison `json:"comparisons"`
	Samples     []Sample     `json:"samples"` // by combination and sample
}

// A Combination is what came out of the samples with one setting of all axes.
type Combination struct {
	Settings []Setting `json:"settings"`
	Samples  int       `json:"samples"` // that are complete
	// NotAtRest counts the worlds that were given up, or stopped at the scenario's
	// end; Violated those in which an invariant did not hold.
	NotAtRest int `json:"notAtRest"`
	Violated  int `json:"violated"`
	// NotEmptied counts the worlds in which VMs stayed on drained hosts: their makespans, until the last VM that
	// left, are compared with no other.
	NotEmptied int         `json:"notEmptied"`
	Statistics []Statistic `json:"statistics"`
	// Outages are those of each VM that had any, over the samples, the worst first; only in a scenario
	// that fails over.
	Outages []VMOutages `json:"outages,omitempty"`
}

// Statistic returns the statistic of the named measure.
func (c *Combination) Statistic(measure string) Statistic {
	i := slices.IndexFunc(c.Statistics, func(s Statistic) bool { return s.Measure == measure })
	return c.Statistics[i]
}

// Summarize makes the document of a run from the samples that are complete, in any
// order. It orders them.
func Summarize(run Run, samples []Sample) *Document {
	slices.SortFunc(samples, func(a, b Sample) int {
		return cmp.Or(cmp.Compare(a.Combination, b.Combination), cmp.Compare(a.Sample, b.Sample))
	})
	d := &Document{Run: run, Worlds: run.Worlds(), Complete: len(samples), Samples: samples,
		Combinations: []Combination{}, Comparisons: []Comparison{}}
	if d.Run.Axes == nil {
		d.Run.Axes = Grid{}
	}
	if d.Samples == nil {
		d.Samples = []Sample{}
	}
	groups := make([][]Sample, run.Axes.Size())
	for c := range groups {
		n := 0
		for n < len(samples) && samples[n].Combination == c {
			n++
		}
		groups[c], samples = samples[:n], samples[n:]
		d.Combinations = append(d.Combinations, summarize(run.Axes.At(c), groups[c]))
		if c > 0 {
			d.Comparisons = append(d.Comparisons, against(groups[0], groups[c], c)...)
		}
	}
	return d
}

// summarize sums up the samples of one combination.
func summarize(settings []Setting, samples []Sample) Combination {
	c := Combination{Settings: settings, Samples: len(samples)}
	for i := range samples {
		if samples[i].Ending != "at rest" {
			c.NotAtRest++
		}
		if len(samples[i].Violations) > 0 {
			c.Violated++
		}
		if !samples[i].emptied() {
			c.NotEmptied++
		}
	}
	for _, m := range Measures() {
		values := make([]float64, len(samples))
		for i := range samples {
			values[i] = m.Of(&samples[i])
		}
		c.Statistics = append(c.Statistics, statistic(m.Name, values))
	}
	c.Outages = outagesByVM(samples)
	return c
}

// against compares a combination with the first, in the samples that both have.
func against(first, samples []Sample, combination int) []Comparison {
	var pairs [][2]*Sample
	for i, j := 0, 0; i < len(first) && j < len(samples); {
		switch a, b := &first[i], &samples[j]; {
		case a.Sample < b.Sample:
			i++
		case a.Sample > b.Sample:
			j++
		default:
			pairs = append(pairs, [2]*Sample{b, a})
			i, j = i+1, j+1
		}
	}
	var all []Comparison
	for _, m := range Measures() {
		if !m.Compared || len(pairs) == 0 {
			continue
		}
		values, base := make([]float64, len(pairs)), make([]float64, len(pairs))
		for i, p := range pairs {
			values[i], base[i] = m.Of(p[0]), m.Of(p[1])
			if m.Emptied && !(p[0].emptied() && p[1].emptied()) {
				values[i] = math.NaN()
			}
		}
		c := compare(values, base)
		if c.Less+c.More+c.Same == 0 {
			continue // no sample has it in both
		}
		c.Combination, c.Measure = combination, m.Name
		all = append(all, c)
	}
	return all
}

// Violated lists the samples in which an invariant did not hold.
func (d *Document) Violated() []*Sample {
	var all []*Sample
	for i := range d.Samples {
		if len(d.Samples[i].Violations) > 0 {
			all = append(all, &d.Samples[i])
		}
	}
	return all
}

// WriteJSON writes the document as one line of JSON.
func (d *Document) WriteJSON(out io.Writer) error { return line(out, d) }

func line(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
