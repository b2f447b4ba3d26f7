package kubectl

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
	"github.com/godwit-vm/godwit/kubevirt/internal/forecast"
)

func (p *plugin) plan() *cobra.Command {
	var q forecast.Question
	c := &cobra.Command{Use: "plan NODE…", Short: "Say how nodes would be emptied, and how long it takes",
		Long: `Plan how nodes are emptied, simulate it, and say how long it takes. Nothing is changed.

-o json prints what godwit plan drain --json prints.`,
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: p.nodes,
		RunE: func(c *cobra.Command, args []string) error {
			q.Nodes = args
			return p.simulate(c, q, nil)
		}}
	c.Flags().IntVar(&q.Samples, "samples", 100, "simulate `NUMBER` times")
	c.Flags().IntVar(&q.Outbound, "parallel", 0, "at most `NUMBER` migrations leave a node at once (default: KubeVirt's limit)")
	return c
}

// simulate prints a plan and what its simulations say, and how likely a deadline is met; nil is none.
func (p *plugin) simulate(c *cobra.Command, q forecast.Question, by *time.Time) error {
	cl, _, err := p.open()
	if err != nil {
		return err
	}
	v, err := p.look(c.Context(), cl)
	if err != nil {
		return err
	}
	if q.Rates, err = p.measured(c.Context()); err != nil {
		return err
	}
	f, err := forecast.Ask(c.Context(), &v.Cluster, q)
	if err != nil {
		return err
	}
	return p.print(c.OutOrStdout(), f.Forecast, func(w io.Writer) {
		p.moves(w, f.Forecast)
		unreadable(w, f.Unreadable)
		if by != nil {
			inTime(w, *by, forecast.For(f, v.Now).InTime(by.Sub(v.Now)))
		}
	})
}

// unreadable names the VMs that are left out.
func unreadable(w io.Writer, all map[hypervisor.VMID]string) {
	for _, vm := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(w, "%s is left out, it cannot be read: %s\n", vm, all[vm])
	}
}

// inTime says in how many percent of the simulations a deadline is met, at least.
func inTime(w io.Writer, by time.Time, percent int32) {
	fmt.Fprintf(w, "empty by %s in at least %d %% of the simulations\n", by.Format(time.DateTime), percent)
}

func (p *plugin) moves(w io.Writer, f *whatif.Forecast) {
	fmt.Fprintln(w, "VM\tFROM\tTO\tMEMORY\tTAKES\tDOWNTIME\tNOTE")
	for _, wave := range f.Waves {
		for _, m := range wave {
			takes, downtime := seconds(m.Seconds), "-"
			if m.Moves {
				downtime = milliseconds(m.DowntimeMilliseconds)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%v\t%s\t%s\t%s\n", m.VM, m.Source, m.Target, m.MemoryBytes, takes, downtime, m.Note)
		}
	}
	for _, vm := range f.ShutDown {
		fmt.Fprintf(w, "%s\t\t\t\t\t\tis shut down\n", vm)
	}
	fmt.Fprintln(w)
	for _, proof := range f.Proofs {
		fmt.Fprintf(w, "stays: %s\n", proof.String())
	}
	if s := f.Samples; s != nil {
		what := "empty"
		if len(f.Left) > 0 {
			what = "not empty: all other VMs have left"
		}
		fmt.Fprintf(w, "%s after %s (p50), %s (p95) in %d simulations; %d VMs stay\n", what, seconds(s.Seconds.P50),
			seconds(s.Seconds.P95), s.Runs, len(f.Left))
		return
	}
	fmt.Fprintf(w, "nothing moves; %d VMs stay\n", len(f.Left))
}

func seconds(n *float64) string {
	if n == nil {
		return "never"
	}
	return (time.Duration(*n * float64(time.Second))).Round(100 * time.Millisecond).String()
}

func (p *plugin) status() *cobra.Command {
	return &cobra.Command{Use: "status", Short: "List the nodes that are emptied",
		Long: `List the NodeEvacuations, what is left on their nodes, and what blocks, and from where it is known how fast the guests
that leave write to memory. -o wide lists every VM.`,
		Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
			cl, _, err := p.open()
			if err != nil {
				return err
			}
			if err := may(c.Context(), cl, right{"list", v1alpha1.Group, "nodeevacuations"}); err != nil {
				return err
			}
			var all v1alpha1.NodeEvacuationList
			if err := cl.List(c.Context(), &all); err != nil {
				return err
			}
			return p.print(c.OutOrStdout(), &all, func(w io.Writer) { p.list(w, all.Items) })
		}}
}

func (p *plugin) list(w io.Writer, all []v1alpha1.NodeEvacuation) {
	fmt.Fprintln(w, "NODE\tPHASE\tVMS LEFT\tMOVING\tBLOCKED\tMOVED\tETA")
	for i := range all {
		s := &all[i].Status
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", all[i].Spec.NodeName, s.Phase, number(s.VMsLeft), number(s.Moving),
			number(s.Blocked), len(s.Moved), s.ETA)
	}
	for i := range all {
		s := &all[i].Status
		if p.output == "wide" && len(s.VMs) > 0 {
			fmt.Fprintf(w, "\nON %s\tSTATE\tTAKES\tDOWNTIME\tGUEST WRITES\tMIGRATION\tREASON\n", all[i].Spec.NodeName)
			for j := range s.VMs {
				p.leaving(w, &s.VMs[j])
			}
		} else if len(s.VMs) > 0 {
			fmt.Fprintf(w, "%s: guests' writes to memory: %s\n", all[i].Spec.NodeName, p.sources(s.VMs))
		}
		blocked(w, all[i].Spec.NodeName, s.BlockedVMs)
	}
}

// leaving prints a VM that leaves, with what is expected of it and why.
func (p *plugin) leaving(w io.Writer, v *v1alpha1.LeavingVM) {
	takes, downtime := "", ""
	switch {
	case v.ExpectedSeconds != nil && v.ExpectedDowntimeMilliseconds != nil:
		takes = (time.Duration(*v.ExpectedSeconds) * time.Second).String()
		downtime = fmt.Sprintf("%d ms", *v.ExpectedDowntimeMilliseconds)
	case v.Converges != nil && !*v.Converges:
		takes = "never"
	}
	fmt.Fprintf(w, "%s/%s\t%s\t%s\t%s\t%s\t%s\t%s\n", v.Namespace, v.Name, v.State, takes, downtime, p.writes(v.Writes),
		v.Migration, v.Reason)
}

func blocked(w io.Writer, node string, all []v1alpha1.BlockedVM) {
	for _, b := range all {
		fmt.Fprintf(w, "%s: %s/%s cannot leave:\n", node, b.Namespace, b.Name)
		for _, why := range b.Reasons {
			fmt.Fprintf(w, "  %s\n", why)
		}
		for _, help := range b.Help {
			fmt.Fprintf(w, "  what would help: %s\n", help)
		}
	}
}

func number(n *int32) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}
