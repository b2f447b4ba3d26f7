package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/internal/bench"
	"github.com/godwit-vm/godwit/internal/humanize"
)

const convergenceHelp = `Compare convergence policies on the same transfers: KubeVirt's legacy
monitor and stall detector, Nova's downtime ramp, oVirt's schedule, and godwit's
own. Guests are drawn from the distributions that --traces names (all by
default), --count of each; the same seed draws the same guests. Every policy gets
a 500 ms downtime limit, in three modes: pre-copy alone, with auto-converge, and
with post-copy.

TOOK is the mean time until a transfer has ended, successful or not; DOWNTIME is the
median of the successful ones; BROWNOUT is the mean time for which auto-converge slows
a guest; AGAINST is the time of a policy divided by that of forecast, where both
succeeded.

--json prints one object: distributions, count, seed, and terms, each with a
name and rows.`

// convergence is what --json prints.
type convergence struct {
	Distributions []string     `json:"distributions"`
	Count         int          `json:"count"`
	Seed          uint64       `json:"seed"`
	Terms         []termsTable `json:"terms"`
}

type termsTable struct {
	Name string      `json:"name"`
	Rows []bench.Row `json:"rows"`
}

// allTerms is the name of the table over all terms together.
const allTerms = "all terms"

func convergenceCommand() *cobra.Command {
	var answer convergence
	var traces []string
	var asJSON bool
	c := &cobra.Command{
		Use:   "convergence",
		Short: "Compare convergence policies on the same guests",
		Long:  convergenceHelp,
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := answer.run(traces); err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(answer)
			}
			return answer.table(c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object instead of a table")
	c.Flags().StringSliceVar(&traces, "traces", nil,
		"distributions to draw guests from: "+strings.Join(names(), ", "))
	c.Flags().IntVar(&answer.Count, "count", 100, "guests of each distribution")
	c.Flags().Uint64Var(&answer.Seed, "seed", 1, "seed that draws the guests")
	return c
}

func names() []string {
	var list []string
	for _, d := range bench.Distributions() {
		list = append(list, d.Name)
	}
	return list
}

// run lets every policy move every guest on all terms.
func (a *convergence) run(traces []string) error {
	if a.Count < 1 || a.Count > 10_000 {
		return fmt.Errorf("--count %d: draw 1 to 10000 guests of each distribution", a.Count)
	}
	if a.Distributions = traces; len(traces) == 0 {
		a.Distributions = names()
	}
	guests, err := a.draw()
	if err != nil {
		return err
	}
	together := make([][]bench.ContestOutcome, len(bench.ContestPolicies()))
	for _, terms := range bench.AllTerms() {
		outcomes, err := bench.RunAll(guests, terms)
		if err != nil {
			return err
		}
		a.Terms = append(a.Terms, termsTable{terms.Name, bench.Rows(outcomes)})
		for i := range outcomes {
			together[i] = append(together[i], outcomes[i]...)
		}
	}
	a.Terms = append(a.Terms, termsTable{allTerms, bench.Rows(together)})
	return nil
}

// draw draws the guests.
func (a *convergence) draw() ([]bench.Trace, error) {
	all := bench.Distributions()
	var guests []bench.Trace
	for _, name := range a.Distributions {
		i := slices.IndexFunc(all, func(d bench.Distribution) bool { return d.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("--traces %s: there is no such distribution; use %s", name,
				strings.Join(names(), ", "))
		}
		guests = append(guests, all[i].Traces(a.Count, a.Seed)...)
	}
	return guests, nil
}

// table prints the answer as text.
func (a *convergence) table(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(out, "%s of each of: %s (seed %d)\n", humanize.Count(a.Count, "guest"),
		strings.Join(a.Distributions, ", "), a.Seed)
	for _, terms := range a.Terms {
		fmt.Fprintf(t, "\n%s\tENDED\tTOOK\tP50\tP99\tDOWNTIME\tP99\tMAX\tBROWNOUT\t"+
			"SENT\tAGAINST\t\n", strings.ToUpper(terms.Name))
		for _, r := range terms.Rows {
			fmt.Fprintf(t, "%s\t%d/%d\t%s\t%s\t%s\t", r.Policy, r.Succeeded, r.Runs,
				humanize.Span(r.MeanSeconds), humanize.Span(r.P50Seconds), humanize.Span(r.P99Seconds))
			fmt.Fprintf(t, "%.0f ms\t%.0f ms\t%.0f ms\t%s\t%v\t%.2f\t\n", r.P50Downtime,
				r.P99Downtime, r.MaxDowntime, humanize.Span(r.BrownoutSeconds), r.MeanSent,
				r.Against)
		}
	}
	return t.Flush()
}
