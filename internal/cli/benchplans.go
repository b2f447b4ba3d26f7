package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/internal/bench"
)

const benchPlansHelp = `Plan the drains of the benchmark set with godwit and with others, and print what each plan costs. The
clusters follow from seeds: every machine prints the same. docs/benchmark.md says what is in the set.

  SOLVED     of how many clusters the hosts were emptied
  MOVES      migrations; of the tight clusters, over those that every candidate has solved
  GiB        memory that was moved
  FULLEST    memory in use on the fullest host afterwards
  TIME       in the simulator, with KubeVirt's limits (2 from a host, 5 in the cluster), 10 Gbit/s and
             guests that write nothing

--cluster N prints the cluster of N hosts in the format of Ganeti's htools instead, for other planners.

--json prints a list of rows: set, contestant (the candidate), solved, questions, moves, movedGiB, fullest, seconds (null
is not known), recorded (what made the plan, where it was made before).`

// benchPlansCommand returns godwit bench plans.
func benchPlansCommand() *cobra.Command {
	var asJSON bool
	var cluster int
	c := &cobra.Command{
		Use:   "plans",
		Short: "Compare plans of drains on the benchmark set",
		Long:  benchPlansHelp,
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			out := c.OutOrStdout()
			if cluster != 0 {
				if cluster < 2 || cluster > mostCluster {
					return fmt.Errorf("--cluster %d: needs 2 to %d hosts", cluster, mostCluster)
				}
				_, err := io.WriteString(out, bench.Ganeti(cluster))
				return err
			}
			rows, err := bench.ComparePlans(c.Context(), bench.Sizes()...)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(out).Encode(rows)
			}
			return plansTable(out, rows)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a list of rows instead of a table")
	c.Flags().IntVar(&cluster, "cluster", 0, "print the cluster of `N` hosts, in the format of Ganeti's htools")
	return c
}

// mostCluster is how many hosts the cluster has that is printed.
const mostCluster = 100_000

func plansTable(out io.Writer, rows []bench.PlanRow) error {
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "SET\tCONTESTANT\tSOLVED\tMOVES\tGiB\tFULLEST\tTIME")
	known := func(x *float64, format string, factor float64) string {
		if x == nil {
			return "–"
		}
		return fmt.Sprintf(format, *x*factor)
	}
	for i := range rows {
		r := &rows[i]
		name := r.Candidate
		if r.Recorded != "" {
			name += " (recorded plan)"
		}
		fmt.Fprintf(t, "%s\t%s\t%d of %d\t%d\t%s\t%s\t%s\n", r.Set, name, r.Solved, r.Questions, r.Moves,
			known(r.MovedGiB, "%.1f", 1), known(r.Fullest, "%.1f %%", 100), known(r.Seconds, "%.1f s", 1))
	}
	return t.Flush()
}
