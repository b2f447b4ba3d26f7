package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/internal/predict"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/plan"
	"github.com/godwit-vm/godwit/sim"
)

// mostRows is how many moves, VMs or hosts a page lists.
const mostRows = 100

// mostRefusals is how many hosts say why they do not take a VM.
const mostRefusals = 10

// A drainPage is an answer for people.
type drainPage struct {
	*whatif.Forecast
	varied []string
}

func (d drainPage) print(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, d.head())
	d.table(t)
	if err := t.Flush(); err != nil {
		return err
	}
	if len(d.ShutDown) > 0 {
		fmt.Fprintf(out, "\nShut down, because they cannot be migrated: %s\n", humanize.List(short(d.ShutDown)))
	}
	d.writes(out)
	d.remedies(out)
	d.left(out)
	d.times(out)
	if d.Deadline != nil {
		deadline(out, d)
	}
	for _, v := range d.Violations {
		fmt.Fprintln(out, "\nVIOLATED:", v)
	}
	return nil
}

// writes says of each VM where it is known from how fast its guest writes, where a file does not say it.
func (d drainPage) writes(out io.Writer) {
	rows := 0
	for _, m := range slices.Concat(d.Waves...) {
		if m.DirtyFrom == "" {
			continue
		}
		if rows++; rows == 1 {
			fmt.Fprintln(out)
		}
		if rows <= mostRows {
			fmt.Fprintf(out, "%s writes %v: %s\n", sim.Short(m.VM), m.DirtyRate, m.DirtyFrom)
		}
	}
	if rows > mostRows {
		fmt.Fprintf(out, "… and %d more; --json lists them all\n", rows-mostRows)
	}
}

func (d drainPage) head() string {
	hosts := humanize.List(d.Hosts)
	if d.LeastMoves+len(d.Left)+len(d.ShutDown) == 0 {
		return hosts + ": no VMs; it is empty now"
	}
	text := fmt.Sprintf("%s: %s in %s", hosts, humanize.Count(d.Moves, "move"),
		humanize.Count(len(d.Waves), "wave"))
	if n := len(d.Restarted); n > 0 {
		text += fmt.Sprintf(", %d by restart", n)
	}
	if n := len(d.ShutDown); n > 0 {
		text += fmt.Sprintf("; %s shut down", humanize.Count(n, "VM"))
	}
	switch {
	case len(d.Left) > 0:
		if n := len(d.Kept); n > 0 {
			text += fmt.Sprintf("; %s kept", humanize.Count(n, "VM"))
		}
		if n := len(d.CannotLeave); n > 0 {
			text += fmt.Sprintf("; %s cannot leave", humanize.Count(n, "VM"))
		}
		if n := len(d.LeftBehind); n > 0 {
			text += fmt.Sprintf("; %s left behind", humanize.Count(n, "VM"))
		}
	case d.Moves == d.LeastMoves:
		text += ", one for each VM"
	case d.FewestMoves:
		text += fmt.Sprintf(" for %s; no plan has fewer", humanize.Count(d.LeastMoves, "VM"))
	default:
		text += fmt.Sprintf(" for %s", humanize.Count(d.LeastMoves, "VM"))
	}
	return text
}

func (d drainPage) table(t io.Writer) {
	if d.Moves == 0 {
		return
	}
	disks := slices.ContainsFunc(d.Waves, func(wave []whatif.Step) bool {
		return slices.ContainsFunc(wave, func(m whatif.Step) bool { return m.DiskBytes > 0 })
	})
	fmt.Fprint(t, "\nWAVE\tVM\tFROM\tTO\tMEMORY")
	if disks {
		fmt.Fprint(t, "\tDISKS")
	}
	fmt.Fprint(t, "\tBEGINS\tTAKES\tP10–P90\tDOWNTIME\tP10–P90")
	if d.Samples != nil {
		fmt.Fprint(t, "\tTAKES, P95 OF WORLDS\tDOWNTIME, P95 OF WORLDS")
	}
	fmt.Fprintln(t)
	rows := 0
	for n, wave := range d.Waves {
		for i := range wave {
			if rows++; rows <= mostRows {
				row(t, n+1, &wave[i], disks)
			}
		}
	}
	if rows > mostRows {
		fmt.Fprintf(t, "… and %d more; --json lists them all\n", rows-mostRows)
	}
}

func row(t io.Writer, wave int, m *whatif.Step, disks bool) {
	fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%v", wave, sim.Short(m.VM), m.Source, m.Target, m.MemoryBytes)
	if disks {
		fmt.Fprintf(t, "\t%v", m.DiskBytes)
	}
	if m.Moves && m.Predicted != nil {
		fmt.Fprintf(t, "\t%s\t%s\t%s\t%s\t%s", humanize.Span(*m.BeginsSeconds), humanize.Span(*m.Seconds),
			spans(m.Predicted.Seconds), humanize.Milliseconds(*m.DowntimeMilliseconds),
			downtimes(m.Predicted.Downtime))
	} else {
		fmt.Fprint(t, "\t\t\t\t\t")
	}
	note := m.Note
	if m.Moves && m.Attempts > 1 && note == "" {
		note = "takes " + humanize.Count(m.Attempts, "attempt")
	}
	if m.Restart && note == "" {
		note = "shut down, then started there"
	}
	if m.BrownoutSeconds > 0 && note == "" {
		note = fmt.Sprintf("auto-converge slows it for %s, by up to %d %%",
			humanize.Span(m.BrownoutSeconds), m.BrownoutPercent)
	}
	if f := m.Drawn; f != nil {
		fmt.Fprintf(t, "\t%s\t%s", when(f.Seconds.P95), downtime(f.Downtime.P95))
		if stays := f.Runs - f.Moved; stays > 0 && note == "" {
			note = fmt.Sprintf("stays in %d of %d worlds", stays, f.Runs)
		}
		if f.Retried > 0 && f.Moved > 0 && m.Note == "" {
			if note != "" {
				note += "; "
			}
			note += fmt.Sprintf("retried in %d of %d worlds", f.Retried, f.Runs)
		}
	}
	if note != "" {
		fmt.Fprintf(t, "\t%s", note)
	}
	fmt.Fprintln(t)
}

// left prints which VMs cannot leave, and why.
func (d drainPage) left(out io.Writer) {
	if len(d.Left) == 0 {
		return
	}
	fmt.Fprintln(out)
	if len(d.Kept) > 0 {
		fmt.Fprintf(out, "Kept (drains do not move them): %s\n", humanize.List(short(d.Kept)))
	}
	if len(d.CannotLeave) > 0 {
		fmt.Fprintf(out, "Cannot leave: %s\n", humanize.List(short(d.CannotLeave)))
	}
	d.behind(out)
	if len(d.Proofs) == 0 {
		fmt.Fprintln(out, "Not proven that some have to stay: the search ended early.")
	}
	if s := d.Spare; s != nil {
		fmt.Fprintf(out, "With %s more, like %s, ", humanize.Count(s.Hosts, "host"), s.Like)
		if s.Left == 0 {
			fmt.Fprintln(out, "all VMs would leave.")
		} else {
			fmt.Fprintf(out, "%s would stay.\n", humanize.Count(s.Left, "VM"))
		}
	}
	for i := range d.Proofs {
		fmt.Fprintln(out, "Why:", &d.Proofs[i])
		refusals(out, d.Proofs[i].Refusals)
	}
}

// behind prints which VMs are left behind, and whether fewer could be.
func (d drainPage) behind(out io.Writer) {
	n := len(d.LeftBehind)
	if n == 0 {
		return
	}
	fmt.Fprintf(out, "Left behind: %s\n", humanize.List(short(d.LeftBehind)))
	switch least := d.MustStay - len(d.CannotLeave) - len(d.Kept); {
	case d.FewestLeft && n == 1:
		fmt.Fprintln(out, "No plan leaves fewer. Another VM that frees as much room could stay instead.")
	case d.FewestLeft:
		fmt.Fprintln(out, "No plan leaves fewer. Other VMs that free as much room could stay instead.")
	case least > 0:
		fmt.Fprintf(out, "At least %d of the VMs have to be left behind; a plan with fewer than "+
			"%d was not found.\n", least, n)
	default:
		fmt.Fprintf(out, "A plan that leaves fewer than %d was not found, and may exist.\n", n)
	}
}

func refusals(out io.Writer, all []plan.Refusal) {
	for i, r := range all {
		if i >= mostRefusals {
			fmt.Fprintf(out, "  … and %s; --json lists them all\n", humanize.Count(len(all)-i, "host"))
			return
		}
		fmt.Fprintf(out, "  %s", r.Host)
		for _, why := range r.Why {
			fmt.Fprintf(out, "  %s", why)
		}
		fmt.Fprintln(out)
	}
}

// times prints when the hosts are empty.
func (d drainPage) times(out io.Writer) {
	if d.Moves+len(d.ShutDown) == 0 {
		return
	}
	s := d.Settings
	fmt.Fprintf(out, "\n%s at once in the cluster, %s out of each host",
		limit(s.PerCluster, "any number"), limit(s.PerSource, "any number"))
	if s.PerTarget > 0 {
		fmt.Fprintf(out, ", %s into each", limit(s.PerTarget, "any number"))
	}
	if s.Bandwidth > 0 {
		fmt.Fprintf(out, ", %v each at most", s.Bandwidth)
	}
	empty := d.empty()
	fmt.Fprintf(out, ": %s\n", after(empty, d.EmptySeconds))
	d.ranges(out)
	if d.Samples == nil {
		return
	}
	fmt.Fprintf(out, "%s, seed %d, each with\n", humanize.Count(d.Samples.Runs, "world"), d.Seed)
	listed(out, d.varied)
	fmt.Fprintf(out, "%s in %d of %d", empty, d.Samples.Empty, d.Samples.Runs)
	if t := d.Samples.Seconds; d.Samples.Empty > 0 {
		fmt.Fprintf(out, ": p50 %s, p95 %s, p99 %s", when(t.P50), when(t.P95), when(t.P99))
	}
	fmt.Fprintln(out)
}

// empty returns how empty the hosts become.
func (d drainPage) empty() string {
	switch len(d.Left) {
	case 0:
		return "empty"
	case 1:
		return "empty except " + sim.Short(d.Left[0])
	}
	return fmt.Sprintf("empty except %d VMs", len(d.Left))
}

// modelRange prints how long it takes in all, as far as predictions of single migrations may be off.
func modelRange(out io.Writer, r predict.Range) {
	fmt.Fprintf(out, "p10 to p90, as far as the model of a migration may be off: %s\n", spans(r))
}

// ranges prints where the ranges of the table come from.
func (d drainPage) ranges(out io.Writer) {
	if r := d.EmptyRange; r != nil && d.Moves > 0 {
		modelRange(out, *r)
	}
	classes := map[string]predict.Prediction{}
	for _, wave := range d.Waves {
		for i := range wave {
			if p := wave[i].Predicted; p != nil {
				classes[p.Class] = *p
			}
		}
	}
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		p := classes[class]
		fmt.Fprintf(out, "  %s\n", p.Basis())
	}
}

func spans(r predict.Range) string { return humanize.Span(r.P10) + "–" + humanize.Span(r.P90) }

func downtimes(r predict.Range) string {
	return humanize.Milliseconds(r.P10) + "–" + humanize.Milliseconds(r.P90)
}

// remedies prints what lets VMs move that do not converge.
func (d drainPage) remedies(out io.Writer) {
	for _, wave := range d.Waves {
		for i := range wave {
			for _, r := range wave[i].Remedies {
				fmt.Fprintf(out, "\n%s: with %s it takes %s, downtime %s", sim.Short(wave[i].VM), r.Option,
					humanize.Span(r.Seconds), humanize.Milliseconds(r.DowntimeMilliseconds))
				if r.BrownoutPercent > 0 {
					fmt.Fprintf(out, ", slowed for %s by up to %d %%", humanize.Span(r.BrownoutSeconds), r.BrownoutPercent)
				}
				if r.Risk != "" {
					fmt.Fprintf(out, "; %s", r.Risk)
				}
				fmt.Fprintln(out)
			}
		}
	}
}
