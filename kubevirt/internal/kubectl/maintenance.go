package kubectl

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/kubevirt/internal/evacuate"
	"github.com/godwit-vm/godwit/kubevirt/internal/forecast"
	"github.com/godwit-vm/godwit/plan"
)

func (p *plugin) maintenance() *cobra.Command {
	var q forecast.Rollout
	c := &cobra.Command{Use: "maintenance SELECTOR", Short: "Plan batches in which nodes are emptied and serviced",
		Long: `Plan in which batches the nodes with a label selector are emptied, serviced and taken back, so that there is always
room for their VMs, and simulate how long it takes. Nothing is changed: drain the nodes of a batch, service and uncordon
them, and ask again.

An empty selector is all nodes.`,
		Example: "  kubectl godwit maintenance node-role.kubernetes.io/worker --service 15m --together 3",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			selector, err := labels.Parse(args[0])
			if err != nil {
				return fmt.Errorf("%q is no label selector: %w", args[0], err)
			}
			cl, _, err := p.open()
			if err != nil {
				return err
			}
			v, err := p.look(c.Context(), cl)
			if err != nil {
				return err
			}
			if q.Nodes = selected(v, selector); len(q.Nodes) == 0 {
				return fmt.Errorf("no node has the labels %s: kubectl get nodes --show-labels lists them", selector)
			}
			if q.Rates, err = p.measured(c.Context()); err != nil {
				return err
			}
			m, err := q.Plan(c.Context(), &v.Cluster)
			if err != nil {
				return err
			}
			return p.print(c.OutOrStdout(), m, func(w io.Writer) { p.batches(w, m) })
		}}
	c.Flags().DurationVar(&q.Service, "service", 10*time.Minute, "`TIME` that a node is away once it is empty")
	c.Flags().IntVar(&q.Together, "together", 0, "at most `NUMBER` nodes at once; 0 is no limit")
	c.Flags().IntVar(&q.Keep, "keep", 0, "leave room for so many further nodes that fail: `NUMBER`")
	return c
}

// selected returns the nodes with labels.
func selected(v *evacuate.View, s labels.Selector) (names []string) {
	for i := range v.Nodes {
		if s.Matches(labels.Set(v.Nodes[i].Labels)) {
			names = append(names, v.Nodes[i].Name)
		}
	}
	return names
}

func (p *plugin) batches(w io.Writer, m *forecast.Maintenance) {
	fmt.Fprintln(w, "BATCH\tNODES\tMOVES\tBEGINS\tEMPTY\tBACK\tFULLEST")
	for i := range m.Batches {
		b, t := &m.Batches[i], &m.Times.Batches[i]
		fmt.Fprintf(w, "%d\t%s\t%d\t%s\t%s\t%s\t%d %%\n", i+1, humanize.List(b.Hosts), plan.Count(b.Waves), seconds(t.BeginsSeconds),
			seconds(t.MovedSeconds), seconds(t.BackSeconds), b.Fill)
		if p.output == "wide" {
			for _, wave := range b.Waves {
				for _, move := range wave {
					fmt.Fprintf(w, "\t%s: %s to %s\t\t\t\t\t\n", move.VM, move.Source, move.Target)
				}
			}
		}
	}
	fmt.Fprintln(w)
	for i := range m.Obstacles {
		fmt.Fprintf(w, "%s is in no batch: %s\n", m.Obstacles[i].Host, m.Obstacles[i].Text)
	}
	for i := range m.Times.Batches {
		for _, o := range m.Times.Batches[i].Obstacles {
			fmt.Fprintf(w, "batch %d: %s\n", i+1, o.Text)
		}
	}
	for _, vm := range m.ShutDown {
		fmt.Fprintf(w, "%s is shut down\n", vm)
	}
	unreadable(w, m.Unreadable)
	fmt.Fprintf(w, "%d batches, %d moves of %d VMs; all is over after %s; at least %d batches are needed\n", len(m.Batches), m.Moves, m.VMs,
		seconds(m.Times.EndsSeconds), m.Least)
}
