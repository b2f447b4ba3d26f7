package planner

import (
	"fmt"
	"io"

	"github.com/godwit-vm/godwit/internal/words"
	"github.com/godwit-vm/godwit/sim/rehearse"
)

// deadline says what came of --within or --by.
func deadline(out io.Writer, d *rehearse.Deadline) {
	fmt.Fprintf(out, "\nEmpty within %s with a probability of %g%%: ", words.Span(d.WithinSeconds),
		100*d.Confidence)
	if d.With == nil {
		fmt.Fprintln(out, "no limits were found that make it")
	} else {
		w := d.With
		fmt.Fprintf(out, "yes, with %s\n", settings(&w.Settings))
		fmt.Fprintf(out, "in time in %d of %s that it was not chosen by: with 95%% confidence a "+
			"probability of %.1f%% or more\n", w.InTime, words.Count(w.Runs, "world"),
			100*w.AtLeast)
	}
	for _, t := range d.Trials {
		fmt.Fprintf(out, "  %s: %s", settings(&t.Settings), after("empty", t.EmptySeconds))
		if t.Runs > 0 {
			fmt.Fprintf(out, ", in time in %d of %d", t.InTime, t.Runs)
		}
		fmt.Fprintln(out)
	}
	for _, o := range d.Obstacles {
		fmt.Fprintln(out, "in the way:", o.Text)
	}
}

func settings(s *rehearse.Settings) string {
	text := fmt.Sprintf("perCluster=%d perSource=%d order=%s", s.PerCluster, s.PerSource, s.Order)
	if s.Bandwidth > 0 {
		text += fmt.Sprintf(" bandwidth=%v", s.Bandwidth)
	}
	return text
}
