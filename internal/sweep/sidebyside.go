package sweep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/godwit-vm/godwit/sim"
)

// An RunSummary is what a run came to, one world or many, to be set beside another.
type RunSummary struct {
	Name    string `json:"name"` // of the file, or of the scenario
	Samples int    `json:"samples"`
	values  map[string]Statistic
}

// RunSummaryOf returns the summary of one world. Of durations and retries its result knows nothing.
func RunSummaryOf(name string, r sim.Result) RunSummary {
	var s Sample
	s.Fill(r)
	o := RunSummary{Name: name, Samples: 1, values: map[string]Statistic{}}
	for _, m := range Measures() {
		if x := m.Of(&s); !math.IsNaN(x) && !strings.HasPrefix(m.Name, "duration") && m.Name != "retries" {
			o.values[m.Name] = statistic(m.Name, []float64{x})
		}
	}
	return o
}

// RunSummary returns the summary of a combination.
func (c *Combination) RunSummary(name string) RunSummary {
	o := RunSummary{Name: name, Samples: c.Samples, values: map[string]Statistic{}}
	for _, s := range c.Statistics {
		if s.Samples > 0 {
			o.values[s.Measure] = s
		}
	}
	return o
}

// ReadRunSummary reads what godwit simulate --json has printed, of one world or of many. Of several
// combinations it is the first.
func ReadRunSummary(name string, data []byte) (RunSummary, error) {
	var kind struct {
		Run       *Run             `json:"run"`
		Downtimes *json.RawMessage `json:"downtimeMilliseconds"`
	}
	bad := func(why any) error {
		return fmt.Errorf("%s: it is no result of godwit simulate --json: %v", name, why)
	}
	if err := json.Unmarshal(bytes.TrimSpace(data), &kind); err != nil {
		if wrong, is := errors.AsType[*json.UnmarshalTypeError](err); is {
			return RunSummary{}, bad("it has a JSON " + wrong.Value + " where that has another value")
		}
		return RunSummary{}, bad(err)
	}
	switch {
	case kind.Run != nil:
		var d Document
		if err := json.Unmarshal(data, &d); err != nil {
			return RunSummary{}, bad(err)
		}
		if len(d.Combinations) == 0 || d.Combinations[0].Samples == 0 {
			return RunSummary{}, bad("no sample is complete")
		}
		return d.Combinations[0].RunSummary(name), nil
	case kind.Downtimes != nil:
		var r sim.Result
		if err := json.Unmarshal(data, &r); err != nil {
			return RunSummary{}, bad(err)
		}
		return RunSummaryOf(name, r), nil
	}
	return RunSummary{}, bad("it has neither run nor downtimeMilliseconds")
}

// A SideBySide is two results. When Before is of many worlds and After of one, it is what was
// predicted, and what happened.
type SideBySide struct {
	Before RunSummary `json:"before"`
	After  RunSummary `json:"after"`
	Rows   []SideRow  `json:"rows"`
}

// A SideRow is one measure of both; nil is that a result does not know it.
type SideRow struct {
	Measure string     `json:"measure"`
	Before  *Statistic `json:"before"`
	After   *Statistic `json:"after"`
	// Verdict is how After compares with Before: within its p10 to p90, below or above; less, more or
	// the same where both are of one world; unknown where one does not know it, and of a makespan where
	// VMs stayed on drained hosts in a world of either.
	Verdict string `json:"verdict"`
}

// Beside sets two results side by side, measure by measure.
func Beside(before, after RunSummary) *SideBySide {
	s := &SideBySide{Before: before, After: after, Rows: []SideRow{}}
	for _, m := range Measures() {
		row := SideRow{Measure: m.Name, Verdict: "unknown"}
		b, hasBefore := before.values[m.Name]
		a, hasAfter := after.values[m.Name]
		if hasBefore {
			row.Before = &b
		}
		if hasAfter {
			row.After = &a
		}
		if !hasBefore && !hasAfter {
			continue
		}
		stayed := m.Emptied && before.values["stayed"].Max+after.values["stayed"].Max > 0
		if hasBefore && hasAfter && !stayed {
			row.Verdict = verdictOf(&b, &a)
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}

func verdictOf(before, after *Statistic) string {
	if before.Samples > 1 {
		switch {
		case after.P50 < before.P10:
			return "below"
		case after.P50 > before.P90:
			return "above"
		}
		return "within"
	}
	switch {
	case after.P50 < before.P50:
		return "less"
	case after.P50 > before.P50:
		return "more"
	}
	return "the same"
}

// Write writes two results for people. amount writes a value of a measure with its unit.
func (s *SideBySide) Write(out io.Writer, amount func(measure string, x float64) string) error {
	fmt.Fprintf(out, "\nCompared with %s:\n", s.Before.Name)
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "MEASURE\tBEFORE\tNOW\t\n")
	side := func(measure string, s *Statistic) string {
		switch {
		case s == nil:
			return "unknown"
		case s.Samples > 1:
			return fmt.Sprintf("%s (p10 %s, p90 %s)", amount(measure, s.P50), amount(measure, s.P10),
				amount(measure, s.P90))
		}
		return amount(measure, s.P50)
	}
	for i := range s.Rows {
		r := &s.Rows[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", r.Measure, side(r.Measure, r.Before),
			side(r.Measure, r.After), r.Verdict)
	}
	return t.Flush()
}
