package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/internal/bench"
	"github.com/godwit-vm/godwit/internal/humanize"
)

const evacuationHelp = `Compare drain policies on a fixed set of clusters: KubeVirt's defaults, those
of Nova and oVirt, and godwit's evacuation policies.

The first table shows the time until the last VM has left, divided by a lower
bound that no live migration can beat (every byte of memory that is not zero
crosses its links once); "never" is a host that some VM did not leave within
two days. The second shows the 99th percentile of the downtimes in milliseconds.
Limits that an operator has set hold for every policy; the simulator's invariants
are checked in every run.

Without CLUSTER the whole set is run. --json prints one object: seed, median
(of the ratios, by policy) and outcomes.

Exit status: 0 every invariant held, 1 one was violated, 2 bad input.`

// evacuationLab is what --json prints.
type evacuationLab struct {
	Seed     uint64             `json:"seed"`
	Median   map[string]float64 `json:"median"`
	Outcomes []bench.Outcome    `json:"outcomes"`
}

func evacuationCommand() *cobra.Command {
	var answer evacuationLab
	var asJSON bool
	c := &cobra.Command{
		Use:   "evacuation [CLUSTER…]",
		Short: "Compare drain policies on a fixed set of clusters",
		Long:  evacuationHelp,
		RunE: func(c *cobra.Command, args []string) error {
			if err := answer.run(args); err != nil {
				return err
			}
			if asJSON {
				if err := json.NewEncoder(c.OutOrStdout()).Encode(answer); err != nil {
					return err
				}
			} else if err := answer.table(c.OutOrStdout()); err != nil {
				return err
			}
			return answer.sound()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object instead of tables")
	c.Flags().Uint64Var(&answer.Seed, "seed", 1, "seed of the simulator's random choices")
	return c
}

// run lets every candidate empty every cluster.
func (a *evacuationLab) run(names []string) error {
	set, err := bench.Find(names...)
	if err != nil {
		return err
	}
	for i := range set {
		for _, who := range bench.Candidates() {
			o, err := bench.Run(&set[i], who, a.Seed)
			if err != nil {
				return err
			}
			a.Outcomes = append(a.Outcomes, o)
		}
	}
	a.Median = bench.Medians(a.Outcomes)
	return nil
}

// sound reports a violation of an invariant.
func (a *evacuationLab) sound() error {
	for _, o := range a.Outcomes {
		for _, v := range o.Violations {
			return fmt.Errorf("cluster %s, %s: %w: %s: %s", o.Cluster, o.Candidate,
				ErrSweepViolated, v.Invariant, v.Detail)
		}
	}
	return nil
}

// table prints the answer as text.
func (a *evacuationLab) table(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	bounded := func(o *bench.Outcome) string {
		return o.Cluster + "\t" + humanize.Span(o.BoundSeconds)
	}
	a.rows(t, "TIME / LOWER BOUND\tBOUND", bounded, func(o *bench.Outcome) string {
		if o.Left > 0 {
			return "never"
		}
		return fmt.Sprintf("%.2f", o.Ratio)
	})
	fmt.Fprint(t, "median\t\t")
	for _, who := range bench.Candidates() {
		fmt.Fprintf(t, "%.2f\t", a.Median[who.Name])
	}
	fmt.Fprint(t, "\n\n")
	named := func(o *bench.Outcome) string { return o.Cluster }
	a.rows(t, "P99 DOWNTIME, MS", named, func(o *bench.Outcome) string {
		return fmt.Sprintf("%.0f", o.Downtime.P99)
	})
	return t.Flush()
}

// rows prints one figure of every outcome, a line for each cluster.
func (a *evacuationLab) rows(t io.Writer, title string, row, figure func(*bench.Outcome) string) {
	fmt.Fprintf(t, "%s\t", title)
	for _, who := range bench.Candidates() {
		fmt.Fprintf(t, "%s\t", who.Name)
	}
	for i := range a.Outcomes {
		o := &a.Outcomes[i]
		if i%len(bench.Candidates()) == 0 {
			fmt.Fprintf(t, "\n%s\t", row(o))
		}
		fmt.Fprintf(t, "%s\t", figure(o))
	}
	fmt.Fprintln(t)
}
