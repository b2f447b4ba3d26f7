package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/internal/sweep"
)

const mergeHelp = `Merge the shards of one run of godwit simulate --shard, and print what the whole run
would have printed. The command refuses shards of different versions, scenarios or sweeps, and
shards that are missing, duplicate or incomplete.

In Kubernetes, give a Job completionMode: Indexed and completions: 8, and run in its pods
godwit simulate SCENARIO.yaml --samples 1000 --shard job/8 -o /results/$(JOB_COMPLETION_INDEX)
with a shared volume. A pod that is terminated leaves an incomplete shard, which is refused.

Exit status: 0 every invariant held in every world, 1 one was violated, 2 bad input.`

// Merge returns godwit merge.
func Merge() *cobra.Command {
	var asJSON bool
	var html string
	c := &cobra.Command{
		Use:   "merge FILE…",
		Short: "Merge the shards of a simulation",
		Long:  mergeHelp,
		Args:  cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := Check(html, args...); err != nil {
				return fmt.Errorf("--html: %w", err)
			}
			var parts []*sweep.Part
			for _, path := range args {
				p, err := readPart(path)
				if err != nil {
					return err
				}
				parts = append(parts, p)
			}
			d, err := sweep.Merge(parts)
			if err != nil {
				return err
			}
			if err := Print(c.OutOrStdout(), d, asJSON); err != nil {
				return err
			}
			if html != "" {
				if err := Write(html, sweep.SweepReport(d).WriteHTML); err != nil {
					return err
				}
			}
			return sweepVerdict(d)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object instead of a table")
	c.Flags().StringVar(&html, "html", "",
		"write a self-contained HTML page with charts to this `FILE`")
	return c
}

func readPart(path string) (*sweep.Part, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return sweep.ReadPart(path, f)
}
