package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/sim"
)

// mostLeft is how many explanations why VMs stayed are in the table.
const mostLeft = 20

// table prints the answer as text.
func (a answer) table(out io.Writer, ending sim.Ending) error {
	a.down(out)
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "%s (seed %d)\n\n", a.Scenario, a.Seed)
	if len(a.Evacuations) > 0 {
		fmt.Fprintf(t, "HOST\tDRAINED AT\tEMPTY AFTER\tLEFT\n")
	}
	for _, e := range a.Evacuations {
		empty := "never"
		switch {
		case e.EmptySeconds != nil:
			empty = humanize.Span(*e.EmptySeconds - e.StartSeconds)
		case len(e.Left) == 0: // no VM has to leave any more
			empty = "cancelled"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\n", e.Host, humanize.Span(e.StartSeconds), empty, len(e.Left))
	}
	if len(a.Evacuations) > 0 {
		fmt.Fprintln(t)
	}
	m := a.Migrations
	fmt.Fprintf(t, "migrations\t%d: %d succeeded, %d failed, %d cancelled", m.Total, m.Succeeded,
		m.Failed, m.Aborted)
	if n := m.Total - m.Succeeded - m.Failed - m.Aborted; n > 0 {
		fmt.Fprintf(t, ", %d unfinished", n)
	}
	fmt.Fprintln(t)
	a.failed(t)
	if m.MemoryLost > 0 {
		fmt.Fprintf(t, "\t%d lost their memory on arrival and were restarted\n", m.MemoryLost)
	}
	a.stood(t)
	if b := a.Brownout; b != nil {
		fmt.Fprintf(t, "brownout\t%s with guests slowed by auto-converge, up to %d %% of CPU time taken, "+
			"p50 %s, p99 %s, max %s, at %.0f %% on average\n", humanize.Count(b.Migrations, "migration"),
			b.MaxPercent, humanize.Span(b.P50Seconds), humanize.Span(b.P99Seconds),
			humanize.Span(b.MaxSeconds), b.MeanPercent)
	}
	fmt.Fprintln(t, a.took())
	fmt.Fprintf(t, "simulated\tlast change at %s, %s in %.2f s\n", humanize.Span(a.VirtualSeconds),
		humanize.Count(int(a.Events), "event"), a.WallSeconds)
	if err := t.Flush(); err != nil {
		return err
	}
	for i, t := range a.Troubles {
		fmt.Fprintf(out, "%s%s: %s\n", []string{"\n", ""}[min(i, 1)], t.Host, t.Why)
	}
	a.left(out)
	for _, v := range a.Violations {
		fmt.Fprintf(out, "\nVIOLATED at %s: %s: %s\n", humanize.Span(v.AtSeconds), v.Invariant,
			v.Detail)
	}
	switch ending {
	case sim.Futile:
		fmt.Fprintln(out, "\nended early: the same migrations fail repeatedly")
	case sim.TimeIsUp:
		if n := a.unfinished(); n > 0 {
			fmt.Fprintf(out, "\nstopped at the scenario's end (until:): %s had not ended\n", humanize.Count(n, "migration"))
		}
	}
	return nil
}

// unfinished counts the migrations that had not ended.
func (a answer) unfinished() int {
	m := &a.Migrations
	return m.Total - m.Succeeded - m.Failed - m.Aborted
}

// mostWhys is how many reasons of failures are in the table.
const mostWhys = 5

// failed says why migrations failed.
func (a answer) failed(t io.Writer) {
	few := min(len(a.Failures), mostWhys)
	for _, f := range a.Failures[:few] {
		of := sim.Short(f.VM)
		if f.More {
			of += " and others"
		}
		fmt.Fprintf(t, "\t%d of %s: %s\n", f.Count, of, f.Why)
	}
	if more := len(a.Failures) - few; more > 0 {
		fmt.Fprintf(t, "\t… and for %s more; --json lists them all\n", humanize.Count(more, "reason"))
	}
}

// mostDown is how many VMs that are down have a line of their own.
const mostDown = 5

// down says first of all which VMs should run at the end and do not.
func (a answer) down(out io.Writer) {
	few := min(len(a.Down), mostDown)
	for _, d := range a.Down[:few] {
		fmt.Fprintf(out, "%s has been down for %s, since %s\n", sim.Short(d.VM),
			humanize.Span(d.Seconds), humanize.Span(d.SinceSeconds))
	}
	switch more := len(a.Down) - few; {
	case more == 1:
		fmt.Fprintln(out, "… and 1 more VM is down; --json lists it")
	case more > 1:
		fmt.Fprintf(out, "… and %d more VMs are down; --json lists them all\n", more)
	}
	if few > 0 {
		fmt.Fprintln(out)
	}
}

// stood prints the downtimes, and the amount that was sent.
func (a answer) stood(t io.Writer) {
	if d := a.Downtime; a.DowntimeCount == 0 {
		fmt.Fprintln(t, "downtime\tno VM was migrated")
	} else {
		fmt.Fprintf(t, "downtime\tp50 %s, p99 %s, max %s\n", humanize.Milliseconds(d.P50),
			humanize.Milliseconds(d.P99), humanize.Milliseconds(d.Max))
	}
	if o := a.Outages; o.TotalSeconds >= 1 {
		fmt.Fprintf(t, "outages\t%s in all, the longest %s\n", humanize.Span(o.TotalSeconds),
			humanize.Span(o.LongestSeconds))
	}
	a.out(t)
	switch n := a.BytesUnknown; {
	case n == 0:
		fmt.Fprintf(t, "moved\t%v\n", a.BytesTransferred)
	case a.BytesTransferred == 0:
		fmt.Fprintf(t, "moved\tunknown: %s ended without a report of the source\n",
			humanize.Count(n, "migration"))
	default:
		fmt.Fprintf(t, "moved\tmore than %v: %s ended without a report of the source\n",
			a.BytesTransferred, humanize.Count(n, "migration"))
	}
}

// mostOut is how many VMs with outages have a line of their own.
const mostOut = 5

// out prints how long VMs that should run did not, the longest first, where hosts fail over.
func (a answer) out(t io.Writer) {
	worst := slices.Clone(a.OutagesByVM)
	slices.SortStableFunc(worst, func(a, b sim.VMOutage) int { return cmp.Compare(b.Seconds, a.Seconds) })
	for _, o := range worst[:min(len(worst), mostOut)] {
		fmt.Fprintf(t, "\t%s of %s\n", humanize.Span(o.Seconds), sim.Short(o.VM))
	}
	if more := len(worst) - mostOut; more > 0 {
		fmt.Fprintf(t, "\t… and of %d more; --json lists them all\n", more)
	}
}

// took compares the time it took with the physical lower bound, in a row of the
// table. The bound covers all that moved, also while nothing was drained: when it
// is longer than the drains took, no ratio makes sense.
func (a answer) took() string {
	first, last, left := a.Drained()
	together := !slices.ContainsFunc(a.Evacuations, func(e sim.Evacuation) bool { return e.StartSeconds != first })
	took, bound := last-first, humanize.Span(a.LowerBoundSeconds)+" (bytes over the narrowest link)"
	switch {
	case a.Migrations.Succeeded == 0:
		return "lower bound\tunknown: no VM was migrated"
	case !left || a.LowerBoundSeconds == 0:
		return "lower bound\t" + bound
	case took < a.LowerBoundSeconds || !together: // nothing to be compared
		return fmt.Sprintf("took\t%s until the last VM had left\nlower bound\t%s",
			humanize.Span(took), bound)
	}
	return fmt.Sprintf("took\t%s until the last VM had left, %.2f times the lower bound %s",
		humanize.Span(took), took/a.LowerBoundSeconds, bound)
}

// left explains which VMs stayed, grouped by host and reasons.
func (a answer) left(out io.Writer) {
	explained, more := 0, 0
	for _, e := range a.Evacuations {
		for rest := e.Left; len(rest) > 0; {
			alike := 1
			for alike < len(rest) && slices.Equal(rest[alike].Reasons, rest[0].Reasons) {
				alike++
			}
			if explained++; explained > mostLeft {
				more += alike
			} else {
				stay(out, rest[:alike], e.Host)
			}
			rest = rest[alike:]
		}
	}
	if more > 0 {
		fmt.Fprintf(out, "\n… and %d more; --json lists them all\n", more)
	}
}

// stay prints VMs that stay for the same reasons.
func stay(out io.Writer, alike []sim.RemainingVM, host hypervisor.HostName) {
	who := sim.Short(alike[0].VM) + " stays"
	if n := len(alike) - 1; n > 0 {
		who = fmt.Sprintf("%s and %d more stay", sim.Short(alike[0].VM), n)
	}
	fmt.Fprintf(out, "\n%s on %s\n", who, host)
	for _, r := range alike[0].Reasons {
		fmt.Fprintf(out, "  %s\n", humanize.Unmet(r.Check, r.Need, r.Have))
	}
}
