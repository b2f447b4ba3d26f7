package kubectl

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/kubevirt/internal/dirty"
	"github.com/godwit-vm/godwit/kubevirt/internal/forecast"
)

// An Outlook is how simulations of a drain went.
type Outlook struct {
	Nodes []string  `json:"nodes"`
	At    time.Time `json:"at"` // when the cluster was as it was simulated
	whatif.Summary
	// VMs are those that leave, the slowest first; Left are those that stay.
	VMs  []VMOutlook       `json:"vms"`
	Left []hypervisor.VMID `json:"left"`
	// Unreadable are the VMs that are left out, since they cannot be read, and why. Those on the nodes are in Left, too.
	Unreadable map[hypervisor.VMID]string `json:"unreadable,omitempty"`
	// Deadline is what --by asks for, and InTime in how many percent of the simulations it is met, at least: 0 if
	// VMs stay.
	Deadline *time.Time `json:"deadline,omitempty"`
	InTime   *int32     `json:"inTimePercent,omitempty"`

	rates map[hypervisor.VMID]dirty.Rate
}

// A VMOutlook is how one VM fared in the simulations.
type VMOutlook struct {
	VM hypervisor.VMID `json:"vm"`
	// Writes is how fast its guest writes, and from where that is known; nil is that it is not.
	Writes *dirty.Rate `json:"writes"`
	whatif.MoveSummary
}

func (p *plugin) forecast() *cobra.Command {
	var (
		q  forecast.Question
		by string
	)
	c := &cobra.Command{Use: "forecast NODE…", Short: "Say how long it may take to empty nodes",
		Long: `Simulate many times how nodes are emptied, as the cluster is now, with links and guests that differ from time to
time, and say how long it takes, how likely a deadline is met, and how long each VM moves and stands still. Nothing is changed.`,
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: p.nodes,
		RunE: func(c *cobra.Command, args []string) error {
			q.Nodes = args
			o, err := p.outlook(c, q, by)
			if err != nil {
				return err
			}
			return p.print(c.OutOrStdout(), o, func(w io.Writer) { p.odds(w, o) })
		}}
	c.Flags().IntVar(&q.Samples, "samples", 100, "simulate `NUMBER` times")
	c.Flags().IntVar(&q.Outbound, "parallel", 0, "at most `NUMBER` migrations leave a node at once (default: KubeVirt's limit)")
	c.Flags().StringVar(&by, "by", "", "say how likely the nodes are empty at this `TIME`: 06:00, 2h from now, or 2026-12-01T06:00:00Z")
	return c
}

// outlook simulates.
func (p *plugin) outlook(c *cobra.Command, q forecast.Question, by string) (*Outlook, error) {
	o := &Outlook{Nodes: q.Nodes, At: p.now(), VMs: []VMOutlook{}}
	if by != "" {
		at, err := deadline(by, o.At)
		if err != nil {
			return nil, err
		}
		o.Deadline = &at
	}
	cl, _, err := p.open()
	if err != nil {
		return nil, err
	}
	v, err := p.look(c.Context(), cl)
	if err != nil {
		return nil, err
	}
	if q.Rates, err = p.measured(c.Context()); err != nil {
		return nil, err
	}
	f, err := forecast.Ask(c.Context(), &v.Cluster, q)
	if err != nil {
		return nil, err
	}
	o.rates, o.Left, o.Unreadable = f.Rates, f.Left, f.Unreadable
	if f.Samples != nil {
		o.Summary = *f.Samples
	}
	for vm, summary := range o.Summary.VMs {
		x := VMOutlook{VM: vm, MoveSummary: summary}
		if r, known := o.rates[vm]; known {
			x.Writes = &r
		}
		o.VMs = append(o.VMs, x)
	}
	slices.SortFunc(o.VMs, func(a, b VMOutlook) int {
		return cmp.Or(slower(a.Seconds.P95, b.Seconds.P95), cmp.Compare(a.VM, b.VM))
	})
	if o.Deadline != nil {
		percent := forecast.For(f, o.At).InTime(o.Deadline.Sub(o.At))
		o.InTime = &percent
	}
	return o, nil
}

// slower orders times, the longest first: nil is never.
func slower(a, b *float64) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return cmp.Compare(*b, *a)
}

func (p *plugin) odds(w io.Writer, o *Outlook) {
	what := "EMPTY"
	if len(o.Left) > 0 {
		what = "ALL OTHERS LEFT"
	}
	fmt.Fprintf(w, "%s\tp50\tp95\tp99\tWORST\n", what)
	s := &o.Summary.Seconds
	fmt.Fprintf(w, "after\t%s\t%s\t%s\t%s\n", seconds(s.P50), seconds(s.P95), seconds(s.P99), seconds(s.Max))
	fmt.Fprintf(w, "at\t%s\t%s\t%s\t%s\n", clock(o.At, s.P50), clock(o.At, s.P95), clock(o.At, s.P99), clock(o.At, s.Max))
	fmt.Fprintf(w, "\nin %d of %d simulations all VMs have left that can; %d VMs stay\n", o.Empty, o.Runs, len(o.Left))
	if o.InTime != nil {
		inTime(w, *o.Deadline, *o.InTime)
	}
	fmt.Fprintln(w, "\nVM\tMOVED\tTWICE\tTAKES p50\tp95\tDOWNTIME p95\tGUEST WRITES")
	for _, v := range o.VMs {
		fmt.Fprintf(w, "%s\t%d of %d\t%d\t%s\t%s\t%s\t%s\n", v.VM, v.Moved, v.Runs, v.Retried, seconds(v.MoveSummary.Seconds.P50), seconds(v.MoveSummary.Seconds.P95),
			milliseconds(v.Downtime.P95), p.writes(rateOf(o.rates, v.VM)))
	}
	for _, vm := range o.Left {
		fmt.Fprintf(w, "%s\tstays\t\t\t\t\n", vm)
	}
	unreadable(w, o.Unreadable)
}

func milliseconds(n *float64) string {
	if n == nil {
		return "never"
	}
	return fmt.Sprintf("%.0f ms", *n)
}

func clock(from time.Time, after *float64) string {
	if after == nil {
		return "never"
	}
	return from.Add(time.Duration(*after * float64(time.Second))).Format(time.TimeOnly)
}
