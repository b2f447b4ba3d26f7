package client

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
)

// unknownText is what is printed for what is not known.
const unknownText = "unknown"

// timeText formats how long something takes; nil is unknown.
func timeText(d *time.Duration) string {
	if d == nil {
		return unknownText
	}
	return humanize.Span(d.Seconds())
}

// rateText formats a rate; 0 is unknown.
func rateText(r hypervisor.Bandwidth) string {
	if r <= 0 {
		return unknownText
	}
	return r.String()
}

// percent formats a share of 1. What is not complete is never 100 %.
func percent(share float64) string {
	return fmt.Sprintf("%d %%", int(math.Floor(100*share)))
}

// Until formats the time until the end of a migration.
func (m *shownMove) Until(now time.Time) string {
	if m.PredictedEnd == nil {
		return unknownText
	}
	d := max(0, m.PredictedEnd.Sub(now))
	return timeText(&d)
}

// Downtime formats how long the guest was stopped, or is allowed to be.
func (m *shownMove) Downtime() string {
	switch {
	case m.DowntimeNanos > 0:
		return humanize.Milliseconds(float64(m.DowntimeNanos) / float64(time.Millisecond))
	case m.Ended == nil:
		return "-" // it is still to come
	}
	return unknownText
}

// Sent formats how much was sent.
func (m *shownMove) Sent() string { return m.sent() }

// Passes formats the number of passes over the memory.
func (m *shownMove) Passes() string {
	if m.Pass <= 0 {
		return "-"
	}
	return fmt.Sprint(m.Pass)
}

// load is how much of a host's memory its VMs use, from 0 to 1.
func load(h Host) float64 { return share(h.UsedBytes, h.MemoryBytes) }

// Headline is the leader and the counts, in one line.
func (o *Overview) Headline() string {
	leader := "no leader"
	if o.Leader != "" {
		leader = fmt.Sprintf("%s leads, term %d", Plain(o.Leader), o.Term)
	}
	return fmt.Sprintf("%s; %s, %s, %d migrating, %d waiting", leader,
		humanize.Count(len(o.Hosts), "host"), humanize.Count(o.VMs, "VM"), o.Running, o.Waiting)
}

// Summary is the state of a drain in a few words.
func (d *shownDrain) Summary() string {
	switch {
	case d.Empty():
		return "empty"
	case d.Done:
		return humanize.Count(len(d.Stay), "VM") + " will not leave"
	}
	return fmt.Sprintf("%d gone, %d moving, %d waiting, %d stay", len(d.Gone), len(d.Moving),
		len(d.Waiting), len(d.Stay))
}

// ETA formats what is known about the end of a drain.
func (e ETA) String() string {
	return fmt.Sprintf("at least %s, p50 %s, p95 %s", timeText(e.Least), timeText(e.P50), timeText(e.P95))
}

// bar draws a share of 1.
func bar(share float64) string {
	const width = 20
	n := int(share * width)
	return "[" + strings.Repeat("#", n) + strings.Repeat(".", width-n) + "]"
}

// A Frame is where an overview is printed as text.
type Frame struct {
	// Width and Height cut what is longer; 0 is no limit.
	Width, Height int
}

// Print prints an overview.
func (f Frame) Print(out io.Writer, o *Overview) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "godwit  %s  %s\n", o.At.Format("15:04:05Z"), o.Headline())
	if o.Trouble != "" {
		fmt.Fprintf(&b, "STORE  it does not answer, this is how it was at %s: %s\n",
			o.At.Format("15:04:05Z"), Plain(o.Trouble))
	}
	AlarmTable(&b, o.Alarms)
	for _, section := range []func(io.Writer, *Overview) error{drainTable, moveTable, hostTable, attentionTable} {
		if err := section(&b, o); err != nil {
			return err
		}
	}
	_, err := out.Write(f.cut(b.Bytes()))
	return err
}

func drainTable(out io.Writer, o *Overview) error {
	if len(o.Drains) == 0 {
		return nil
	}
	t := table(out)
	fmt.Fprint(t, "\nDRAIN\tPROGRESS\tVMS\tEMPTY IN\n")
	for i := range o.Drains {
		d := &o.Drains[i]
		eta := d.ETA.String()
		if d.Done {
			eta = "-"
		}
		fmt.Fprintf(t, "%s\t%s %s\t%s\t%s\n", Plain(string(d.Host)), bar(d.Share()),
			percent(d.Share()), d.Summary(), eta)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i := range o.Drains {
		for _, s := range o.Drains[i].Stay {
			fmt.Fprintf(out, "%s stays on %s: %s\n", Plain(string(s.VM)),
				Plain(string(o.Drains[i].Host)), Plain(s.Why))
		}
		for _, s := range o.Drains[i].Failed {
			fmt.Fprintf(out, "%s failed to leave %s: %s\n", Plain(string(s.VM)),
				Plain(string(o.Drains[i].Host)), Plain(s.Why))
		}
	}
	return nil
}

func moveTable(out io.Writer, o *Overview) error {
	if len(o.Moves) == 0 {
		return nil
	}
	t := table(out)
	fmt.Fprint(t, "\nMIGRATION\tPHASE\tFROM\tTO\tPROGRESS\tSENT\tRATE\tPASS\tDOWNTIME\tEND IN\n")
	for i := range o.Moves {
		m := &o.Moves[i]
		end, rate := m.Until(o.At), rateText(m.Rate)
		if m.Ended != nil {
			end, rate = "ended", "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s %s\t%s\t%s\t%s\t%s\t%s%s\n", Plain(string(m.Name)),
			m.Phase, dash(m.Source), dash(m.Target), bar(m.Share()), percent(m.Share()), m.Sent(),
			rate, m.Passes(), m.Downtime(), end, why(m.Because()))
	}
	return more(t, o.MoreMoves)
}

func hostTable(out io.Writer, o *Overview) error {
	t := table(out)
	fmt.Fprint(t, "\nHOST\tSTATE\tVMS\tMEMORY\tUSED\tCPUS\n")
	for _, h := range o.Hosts {
		fmt.Fprintf(t, "%s\t%s\t%d\t%s %s\t%s of %s\t%d of %d%s\n", dash(h.Name), h.State, h.VMs,
			bar(load(h)), percent(load(h)), h.UsedBytes, h.MemoryBytes, h.UsedCPUs, h.CPUs,
			why(h.Why))
	}
	return more(t, 0)
}

func attentionTable(out io.Writer, o *Overview) error {
	if len(o.Attention) == 0 {
		return nil
	}
	t := table(out)
	fmt.Fprint(t, "\nVM\tHOST\tSTATE\tWHY\n")
	for _, v := range o.Attention {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", Plain(string(v.Name)), dash(v.Host),
			Plain(v.State), Plain(v.Why))
	}
	return more(t, o.MoreAttention)
}

// more ends a table, and says how many rows it has not.
func more(t *tabwriter.Writer, n int) error {
	if n > 0 {
		fmt.Fprintf(t, "… and %d more\n", n)
	}
	return t.Flush()
}

// cut leaves out what does not fit: the ends of long lines, and the last lines of many.
func (f Frame) cut(text []byte) []byte {
	lines := strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
	if f.Height > 1 && len(lines) > f.Height-1 {
		hidden := len(lines) - (f.Height - 2)
		lines = append(lines[:f.Height-2], fmt.Sprintf("… %s more: enlarge the terminal, or use "+
			"godwit status", humanize.Count(hidden, "line")))
	}
	for i, line := range lines {
		if f.Width > 1 && utf8.RuneCountInString(strings.TrimRight(line, "\n")) > f.Width {
			lines[i] = string([]rune(line)[:f.Width-1]) + "…\n"
		}
	}
	return []byte(strings.TrimSuffix(strings.Join(lines, ""), "\n") + "\n")
}
