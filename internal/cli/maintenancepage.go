package cli

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/plan"
	"github.com/godwit-vm/godwit/sim"
)

// print prints the plan for people.
func (a maintenanceAnswer) print(out io.Writer) error {
	fmt.Fprintln(out, a.head())
	if a.Keep > 0 {
		notLookedAt(out, a.Down)
	}
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	if len(a.Batches) > 0 {
		fmt.Fprintln(t, "\nBATCH\tBEGINS\tEMPTY\tBACK\tMOVES\tFULLEST\tHOSTS")
	}
	for i, b := range a.Batches {
		s := a.Times.Batches[i]
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%d\t%d %%\t%s\n", i+1, when(s.BeginsSeconds),
			when(s.MovedSeconds), when(s.BackSeconds), plan.Count(b.Waves),
			b.Fill, humanize.List(b.Hosts))
	}
	if a.Moves > 0 {
		fmt.Fprintln(t, "\nBATCH\tWAVE\tVM\tFROM\tTO")
	}
	rows := 0
	for i, b := range a.Batches {
		a.moves(t, fmt.Sprint(i+1), b.Waves, &rows)
	}
	if a.Home != nil {
		a.moves(t, "return", a.Home.Waves, &rows)
	}
	if rows > mostRows {
		fmt.Fprintf(t, "… and %d more; --json lists them all\n", rows-mostRows)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	a.rest(out)
	return a.calendar(out)
}

// calendar prints which batches are serviced in which nights.
func (a maintenanceAnswer) calendar(out io.Writer) error {
	if a.Calendar == nil {
		return nil
	}
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "\nNIGHT\tUNTIL\tBATCH\tBEGINS\tENDS\tPROBABILITY")
	for _, n := range a.Calendar.Nights {
		for _, b := range n.Batches {
			name := fmt.Sprint(b.Batch)
			if b.Batch > len(a.Batches) {
				name = "return"
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%.1f %%\n", n.Begin.Format("Mon 2006-01-02 15:04"), n.End.Format("15:04"), name,
				b.Begins.Format("15:04"), roundedUp(b.Ends).Format("15:04"), 100*b.Probability)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, left := range a.Calendar.Left {
		fmt.Fprintf(out, "batch %d and those after it are in no night: %s\n", left.Batch, left.Text)
	}
	if len(a.Calendar.Left) == 0 {
		fmt.Fprintf(out, "all end in their nights with a probability of %.1f %%, with %s\n", 100*a.Calendar.Probability,
			settings(&a.Settings))
	}
	return nil
}

// roundedUp is a time in whole minutes that is not before another one.
func roundedUp(t time.Time) time.Time {
	if whole := t.Truncate(time.Minute); whole.Before(t) {
		return whole.Add(time.Minute)
	}
	return t
}

func (a maintenanceAnswer) head() string {
	hosts := 0
	for _, b := range a.Batches {
		hosts += len(b.Hosts)
	}
	if hosts == 0 {
		return "none of the hosts can be serviced"
	}
	text := humanize.Count(hosts, "host") + " in 1 batch"
	if len(a.Batches) > 1 {
		text = fmt.Sprintf("%d hosts in %d batches", hosts, len(a.Batches))
	}
	switch {
	case len(a.Obstacles) > 0 || a.Least == 0:
	case a.Least == len(a.Batches):
		text += " (no plan has fewer)"
	default:
		text += fmt.Sprintf(" (no plan has fewer than %d)", a.Least)
	}
	text += fmt.Sprintf(", %s for %s", humanize.Count(a.Moves, "move"), humanize.Count(a.VMs, "VM"))
	if a.Keep > 0 {
		text += fmt.Sprintf("; %s survived at any time", humanize.Count(a.Keep, "more failure"))
	}
	return text
}

// moves lists moves, as long as there are rows.
func (a maintenanceAnswer) moves(t io.Writer, batch string, waves []plan.Wave, rows *int) {
	for n, wave := range waves {
		for _, m := range wave {
			if *rows++; *rows <= mostRows {
				note := ""
				if slices.Contains(a.Restarted, m.VM) {
					note = "\tshut down, then started there"
				}
				fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s%s\n", batch, n+1, sim.Short(m.VM), m.Source,
					m.Target, note)
			}
		}
	}
}

// rest prints when the maintenance is finished, which VMs return, and the obstacles.
func (a maintenanceAnswer) rest(out io.Writer) {
	switch t := a.Times; {
	case t.EndsSeconds == nil:
		fmt.Fprintln(out, "\nnever finished: see the obstacles")
	case *t.EndsSeconds > 0:
		fmt.Fprintf(out, "\nfinished after %s, %.2f times the lower bound %s\n",
			humanize.Span(*t.EndsSeconds), *t.EndsSeconds/max(t.BoundSeconds, 1e-9),
			humanize.Span(t.BoundSeconds))
		if t.Range != nil {
			modelRange(out, *t.Range)
		}
	}
	if len(a.ShutDown) > 0 {
		fmt.Fprintf(out, "shut down when their host is drained, and off from then on: %s\n",
			humanize.List(short(a.ShutDown)))
	}
	if h := a.Home; h != nil {
		fmt.Fprintf(out, "return: %s, %s", humanize.Count(h.Moves, "move"),
			after("begun", a.Times.Back.BeginsSeconds))
		if len(h.Parked) > 0 {
			fmt.Fprintf(out, "; parked in between: %s", humanize.List(short(h.Parked)))
		}
		fmt.Fprintln(out)
		if len(h.Left) > 0 {
			fmt.Fprintf(out, "not returned: %s; %s\n", humanize.List(short(h.Left)), map[bool]string{
				true:  "no order of moves returns them",
				false: "no order was found, and no proof that there is none"}[h.Proven])
		}
	}
	for i := range a.Times.Batches {
		obstacles(out, fmt.Sprintf("batch %d", i+1), &a.Times.Batches[i])
	}
	obstacles(out, "return", a.Times.Back)
	for i := range a.Obstacles {
		certificate(out, &a.Obstacles[i], a.Keep)
	}
	for _, v := range a.Times.Violations {
		fmt.Fprintln(out, "\nVIOLATED:", v)
	}
}

// obstacles prints which VMs do not move in a batch, if there is one, and why.
func obstacles(out io.Writer, what string, s *whatif.Batch) {
	if s == nil {
		return
	}
	few := humanize.Few(len(s.Obstacles))
	for _, o := range s.Obstacles[:few] {
		fmt.Fprintf(out, "obstacle in %s: %s\n", what, o.Text)
	}
	if more := len(s.Obstacles) - few; more > 0 {
		fmt.Fprintf(out, "  … and %d more; --json lists them all\n", more)
	}
}
