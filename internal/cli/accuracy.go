package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/predict"
)

const accuracyHelp = `Predict measured migrations, and print the error of the predictions by class: the
median and the 90th percentile, relative to the measurement. A downtime below 10 ms counts as 10 ms.
INSIDE is the share of the measurements between p10 and p90, which are learned from the others.

Without a file the command uses measurements of QEMU 7.2 that are part of godwit, and the model of
the machine on which they were made. The columns of a file are those of godwit help calibrate.

--json prints one object:

  source     the file, or "built in"
  model      the model's file, or "built in"
  all        class, count, lost (predicted never to complete), total and downtime, each
             with median and p90: 0.05 is 5 %
  classes    the same for each class
  ranges     by class, the shares of measurements between p10 and p90 (total, downtime), and how
             far p50 is off (medianTotal, medianDowntime), for measurements that the ranges
             were not learned from, one at a time; untried: all runs of an experiment together
  noise      the same for each run of an experiment when the others predict it: no model is
             much better than that
  endless    how many did not complete; agreed: how many of them do not in the model

Exit status: 0 compared, 2 bad input.`

// accuracy is what --json prints.
type accuracy struct {
	Source string `json:"source"`
	Model  string `json:"model"`
	predict.Report
	Ranges  []predict.Coverage `json:"ranges"`
	Untried []predict.Coverage `json:"untried"`
	Noise   predict.Accuracy   `json:"noise"`
}

const builtIn = "built in"

func accuracyCommand() *cobra.Command {
	var model string
	var asJSON bool
	c := &cobra.Command{
		Use:   "accuracy [MEASUREMENTS.csv]",
		Short: "Compare predictions with measured migrations",
		Long:  accuracyHelp,
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			a := accuracy{Source: strings.Join(args, ""), Model: model}
			if err := a.compare(); err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(a)
			}
			return a.table(c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&model, "model", "", "predict with the model in this `FILE`")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object instead of a table")
	return c
}

// compare reads what there is to be read, and compares.
func (a *accuracy) compare() error {
	model, all, err := fake.QEMU(), []predict.Migration(nil), error(nil)
	if a.Source == "" {
		a.Source, model = builtIn, predict.Machine()
		all, err = predict.BuiltIn()
	} else {
		f, failed := os.Open(a.Source)
		if failed != nil {
			return failed
		}
		defer f.Close()
		all, err = predict.Read(a.Source, f)
	}
	if err != nil {
		return err
	}
	if a.Model == "" {
		a.Model = builtIn
	} else if model, _, err = config.ReadModelFile(a.Model); err != nil {
		return err
	}
	if a.Report, err = predict.Compare(all, model); err != nil {
		return err
	}
	samples, err := predict.Samples(all, model)
	a.Ranges, a.Untried = predict.HoldOut(samples), predict.HoldOutExperiments(samples)
	a.Noise = predict.Noise(all)
	return err
}

// table prints the answer for people.
func (a *accuracy) table(out io.Writer) error {
	fmt.Fprintf(out, "measurements: %s, model: %s\n\n", a.Source, a.Model)
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "CLASS         \tN\tTOTAL MEDIAN\tP90\tDOWNTIME MEDIAN\tP90\tLOST\t\n")
	for _, c := range append(a.Classes, a.All, a.Noise) {
		fmt.Fprintf(t, "%-14s\t%d\t%.1f %%\t%.1f %%\t%.1f %%\t%.1f %%\t%d\t\n", c.Class, c.Count,
			100*c.Total.Median, 100*c.Total.P90, 100*c.Downtime.Median, 100*c.Downtime.P90, c.Lost)
	}
	fmt.Fprint(t, "\nRANGE p10–p90  \tN\tTOTAL INSIDE\tDOWNTIME INSIDE\tTOTAL MEDIAN\tDOWNTIME MEDIAN\t\n")
	for _, c := range a.Ranges {
		fmt.Fprintf(t, "%-14s\t%d\t%.0f %%\t%.0f %%\t%.1f %%\t%.1f %%\t\n", c.Class, c.Count,
			100*c.Total, 100*c.Downtime, 100*c.MedianTotal, 100*c.MedianDowntime)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nranges: learned from the other measurements of the class; the median is that of p50")
	fmt.Fprintln(out, "noise: each run of an experiment, predicted by the others")
	if a.Endless > 0 {
		fmt.Fprintf(out, "%d did not complete; in the model %d of them do not\n", a.Endless,
			a.Agreed)
	}
	return nil
}
