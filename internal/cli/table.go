package cli

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/internal/sweep"
	"github.com/godwit-vm/godwit/sim"
)

const (
	// mostViolated is how many worlds that broke an invariant a page names.
	mostViolated = 10
)

// sweepTable prints a document for people.
func sweepTable(out io.Writer, d *sweep.Document) error {
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "%s: %s, %s each (seed %d)\n", d.Run.Scenario,
		humanize.Count(len(d.Combinations), "combination"), humanize.Count(d.Run.Samples, "sample"),
		d.Run.Seed)
	if d.Complete < d.Worlds {
		fmt.Fprintf(t, "interrupted: %d of %s complete\n", d.Complete,
			humanize.Count(d.Worlds, "world"))
	}
	fmt.Fprintln(t)
	shown := d.Combinations[:min(len(d.Combinations), mostRows)]
	for i, c := range shown {
		fmt.Fprintf(t, "%d\t%s\n", i+1, sweep.Label(c.Settings))
	}
	if more := len(d.Combinations) - mostRows; more > 0 {
		fmt.Fprintf(t, "… and %d more; --json has them all\n", more)
	}
	fmt.Fprintln(t, "\n\t"+strings.Join([]string{"MAKESPAN", "P90", "P99", "DURATION", "P99",
		"DOWNTIME", "P99", "FAILED", "RETRIES", "STAYED", "MOVED"}, "\t"))
	for i := range shown {
		sweepRow(t, i+1, &shown[i])
	}
	fmt.Fprintln(t, "\nFAILED, RETRIES and STAYED are means over the samples, the others medians; "+
		"P90 and P99\nare percentiles of the column before them.")
	if err := t.Flush(); err != nil {
		return err
	}
	outages(out, shown)
	downAtEnd(out, d)
	brownouts(out, shown)
	notEmptied(out, shown)
	compared(out, d)
	unrested := 0
	for _, c := range d.Combinations {
		unrested += c.NotAtRest
	}
	if unrested > 0 {
		fmt.Fprintf(out, "\n%s did not become idle: ended early, or stopped at until:\n",
			humanize.Count(unrested, "world"))
	}
	printViolated(out, &d.Run, d.Violated())
	return nil
}

func sweepRow(t io.Writer, number int, c *sweep.Combination) {
	if c.Samples == 0 {
		fmt.Fprintf(t, "%d\tno sample is complete\n", number)
		return
	}
	at := func(measure string) sweep.Statistic { return c.Statistic(measure) }
	some := func(measure string, write func(sweep.Statistic) string) string {
		if s := at(measure); s.Samples > 0 {
			return write(s)
		}
		return "–" // nothing moved in any sample
	}
	makespan := func(of func(sweep.Statistic) float64) string {
		return some("makespanSeconds", func(s sweep.Statistic) string { return humanize.Span(of(s)) })
	}
	fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.2f\t%.2f\t%.2f\t%v\n", number,
		makespan(func(s sweep.Statistic) float64 { return s.P50 }),
		makespan(func(s sweep.Statistic) float64 { return s.P90 }),
		makespan(func(s sweep.Statistic) float64 { return s.P99 }),
		some("durationP50Seconds", func(s sweep.Statistic) string { return humanize.Span(s.P50) }),
		some("durationP99Seconds", func(s sweep.Statistic) string { return humanize.Span(s.P99) }),
		some("downtimeP50Milliseconds",
			func(s sweep.Statistic) string { return humanize.Milliseconds(s.P50) }),
		some("downtimeP99Milliseconds",
			func(s sweep.Statistic) string { return humanize.Milliseconds(s.P99) }),
		at("failures").Mean, at("retries").Mean, at("stayed").Mean,
		hypervisor.Bytes(at("bytesTransferred").P50))
}

// mostOut is how many VMs with outages have a line of their own.
const mostOut = 5

// outages says how long VMs that should run did not, of combinations that fail over.
func outages(out io.Writer, shown []sweep.Combination) {
	for i := range shown {
		c := &shown[i]
		if len(c.Outages) == 0 {
			continue
		}
		all := c.Statistic("outageSeconds")
		fmt.Fprintf(out, "\n%d  outages: VM-minutes p50 %.1f, p99 %.1f, max %.1f a sample; %s in any sample\n",
			i+1, all.P50/60, all.P99/60, all.Max/60, humanize.Count(len(c.Outages), "VM"))
		for _, v := range c.Outages[:min(len(c.Outages), mostOut)] {
			fmt.Fprintf(out, "   %s in %d of %s: mean %s, p99 %s, max %s\n", sim.Short(v.VM), v.Samples,
				humanize.Count(c.Samples, "sample"), humanize.Span(v.Mean), humanize.Span(v.P99),
				humanize.Span(v.Max))
		}
		if more := len(c.Outages) - mostOut; more > 0 {
			fmt.Fprintf(out, "   … and %d more; --json lists them all\n", more)
		}
	}
}

// downAtEnd says in how many worlds VMs that should run are down at the end.
func downAtEnd(out io.Writer, d *sweep.Document) {
	worlds, most := 0, 0
	for i := range d.Samples {
		if n := d.Samples[i].Down; n > 0 {
			worlds, most = worlds+1, max(most, n)
		}
	}
	if worlds > 0 {
		fmt.Fprintf(out, "\nIn %s VMs are down at the end, up to %d in one.\n",
			humanize.Count(worlds, "world"), most)
	}
}

// brownouts says where auto-converge slowed guests down: how much, and for how long.
func brownouts(out io.Writer, shown []sweep.Combination) {
	said := false
	for i := range shown {
		long, much := shown[i].Statistic("brownoutMaxSeconds"),
			shown[i].Statistic("brownoutMaxPercent")
		if long.Max <= 0 {
			continue
		}
		if !said {
			fmt.Fprintln(out, "\nBrownout: guests were slowed down by auto-converge")
		}
		said = true
		fmt.Fprintf(out, "%d  for up to %s (median of the samples; at most %s), by up to %.0f %% "+
			"of CPU time\n", i+1, humanize.Span(long.P50), humanize.Span(long.Max), much.Max)
	}
}

// notEmptied says in how many samples VMs stayed on drained hosts.
func notEmptied(out io.Writer, shown []sweep.Combination) {
	said := false
	for i := range shown {
		c := &shown[i]
		if c.NotEmptied == 0 {
			continue
		}
		if !said {
			fmt.Fprintln(out, "\nNot emptied: VMs stayed on drained hosts, so that MAKESPAN is until the last one that left, "+
				"and is not compared")
		}
		said = true
		fmt.Fprintf(out, "%d  in %d of %s\n", i+1, c.NotEmptied, humanize.Count(c.Samples, "sample"))
	}
}

// compared prints what differs from the first combination, for certain or not.
func compared(out io.Writer, d *sweep.Document) {
	if len(d.Comparisons) == 0 {
		return
	}
	fmt.Fprintln(out, "\nCompared with 1, sample by sample, with a confidence of 95 %:")
	for _, c := range d.Comparisons {
		if c.Outcome == sweep.Undecided && c.Measure != "makespanSeconds" ||
			c.Combination >= mostRows {
			continue
		}
		pairs := c.Less + c.More + c.Same
		switch c.Outcome {
		case sweep.Undecided:
			fmt.Fprintf(out, "%d  %s: undecided (%s to %s), less in %d and more in %d samples\n",
				c.Combination+1, phrase(c.Measure), sweepAmount(c.Measure, c.Low),
				sweepAmount(c.Measure, c.High), c.Less, c.More)
		case sweep.Lower:
			fmt.Fprintf(out, "%d  %s: %s less (%s to %s), in %d of %d samples\n", c.Combination+1,
				phrase(c.Measure), sweepAmount(c.Measure, -c.Mean), sweepAmount(c.Measure, -c.High),
				sweepAmount(c.Measure, -c.Low), c.Less, pairs)
		default:
			fmt.Fprintf(out, "%d  %s: %s more (%s to %s), in %d of %d samples\n", c.Combination+1,
				phrase(c.Measure), sweepAmount(c.Measure, c.Mean), sweepAmount(c.Measure, c.Low),
				sweepAmount(c.Measure, c.High), c.More, pairs)
		}
	}
}

// printViolated names the worlds in which an invariant did not hold, and how to
// see them again.
func printViolated(out io.Writer, run *sweep.Run, all []*sweep.Sample) {
	if len(all) > 0 {
		fmt.Fprintf(out, "\nVIOLATED in %s:\n", humanize.Count(len(all), "world"))
	}
	for _, s := range all[:min(len(all), mostViolated)] {
		settings := run.Axes.At(s.Combination)
		v := s.Violations[0]
		fmt.Fprintf(out, "%s, seed %d, at %s: %s: %s\n", sweep.Label(settings), s.Seed,
			humanize.Span(v.AtSeconds), v.Invariant, v.Detail)
		fmt.Fprintf(out, "  godwit simulate %s --seed %d", word(run.File), s.Seed)
		for _, set := range settings {
			if set.Value != "" && set.Path != "seed" {
				fmt.Fprintf(out, " --sweep %s", word(set.String()))
			}
		}
		fmt.Fprintln(out)
	}
	if more := len(all) - mostViolated; more > 0 {
		fmt.Fprintf(out, "… and %d more; --json has them all\n", more)
	}
}

// word writes a word so that a shell takes it as one.
func word(text string) string {
	if strings.ContainsAny(text, " \t*?[]{}()<>|&;$`'\"\\!#~") {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	return text
}

// phrase returns a measure without its unit: "downtimeP99Milliseconds" is "downtime p99".
func phrase(measure string) string {
	units := strings.NewReplacer("Seconds", "", "Milliseconds", "", "Transferred", "")
	text := units.Replace(measure)
	if name, is := strings.CutSuffix(text, "P99"); is {
		return name + " p99"
	}
	return text
}

// sweepAmount writes a value of a measure with its unit.
func sweepAmount(measure string, x float64) string {
	sign := ""
	if x < 0 {
		sign = "-"
	}
	switch size := math.Abs(x); {
	case strings.HasSuffix(measure, "Milliseconds"):
		return fmt.Sprintf("%s%.0f ms", sign, size)
	case strings.HasSuffix(measure, "Seconds"):
		return sign + humanize.Span(size)
	case measure == "bytesTransferred":
		return sign + hypervisor.Bytes(size).String()
	default:
		return fmt.Sprintf("%s%.2f", sign, size)
	}
}

// PrintBeside prints two results side by side.
func PrintBeside(out io.Writer, s *sweep.SideBySide) error { return s.Write(out, sweepAmount) }
