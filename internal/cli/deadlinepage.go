package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/sim"
)

// deadline prints the result of --within or --by.
func deadline(out io.Writer, p drainPage) {
	d, empty, none := p.Deadline, p.empty(), p.Moves == 0 && len(p.Left) > 0
	if none {
		empty = "empty"
	}
	fmt.Fprintf(out, "\n%s within %s with a probability of %g%%: ",
		strings.ToUpper(empty[:1])+empty[1:], humanize.Span(d.WithinSeconds), 100*d.Confidence)
	switch {
	case d.With == nil && none:
		fmt.Fprintln(out, "no, no VM can leave")
	case d.With == nil:
		fmt.Fprintln(out, "no limits were found that meet it")
	default:
		w := d.With
		fmt.Fprintf(out, "yes, with %s\n", settings(&w.Settings))
		fmt.Fprintf(out, "in time in %d of %s that were not used to choose them: with 95%% confidence a "+
			"probability of %.1f%% or more\n", w.InTime, humanize.Count(w.Runs, "world"),
			100*w.AtLeast)
		order(out, d)
	}
	for _, t := range d.Trials {
		fmt.Fprintf(out, "  %s: %s", settings(&t.Settings), after(empty, t.EmptySeconds))
		if t.Runs > 0 {
			fmt.Fprintf(out, ", in time in %d of %d", t.InTime, t.Runs)
		}
		fmt.Fprintln(out)
	}
	for _, o := range d.Obstacles {
		fmt.Fprintln(out, "obstacle:", o.Text)
	}
	for i := range d.Remedies {
		rescue(out, p, &d.Remedies[i], empty)
	}
}

// rescue prints what would meet a deadline that no limits meet.
func rescue(out io.Writer, p drainPage, r *whatif.DeadlineRemedy, empty string) {
	what := r.Option
	if len(r.VMs) > 0 {
		what += " " + humanize.List(short(r.VMs))
	}
	if r.BeforeSeconds > 0 {
		what += ", which takes " + humanize.Span(r.BeforeSeconds)
	}
	fmt.Fprintf(out, "remedy: %s: %s, in time in %d of %d", what, after(empty, r.Trial.EmptySeconds), r.Trial.InTime, r.Trial.Runs)
	if r.Trial.Settings != p.Settings {
		fmt.Fprintf(out, ", with %s", settings(&r.Trial.Settings))
	}
	if r.Risk != "" {
		fmt.Fprintf(out, "; %s", r.Risk)
	}
	fmt.Fprintln(out)
}

// order lists the moves of an order that controllers do not have, for operators who request the
// migrations one by one.
func order(out io.Writer, d *whatif.Deadline) {
	if d.With.Settings.Order != whatif.LongestFirst {
		return
	}
	fmt.Fprintln(out, "controllers do not have this order: request the migrations yourself, in this one")
	rows := 0
	for n, wave := range d.Waves {
		for _, m := range wave {
			if rows++; rows <= mostRows {
				fmt.Fprintf(out, "  wave %d: %s to %s\n", n+1, sim.Short(m.VM), m.Target)
			}
		}
	}
	if rows > mostRows {
		fmt.Fprintf(out, "  … and %d more; --json lists them all\n", rows-mostRows)
	}
}

func settings(s *whatif.Settings) string {
	text := fmt.Sprintf("perCluster=%s perSource=%s order=%s", limit(s.PerCluster, "unlimited"),
		limit(s.PerSource, "unlimited"), s.Order)
	if s.Bandwidth > 0 {
		text += fmt.Sprintf(" bandwidth=%v", s.Bandwidth)
	}
	return text
}
