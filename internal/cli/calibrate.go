// Package cli implements the commands of godwit that are not daemons: flags, wiring and printing,
// no decisions. Each command is a file of its own:
//
//   - operators' commands ([ClientCommands]), on a store: see package internal/client
//   - plan drain, plan maintenance and plan failover ([PlanCommand]): see package plan
//   - simulate with many worlds, and merge ([Flags], [Merge]): see package internal/sweep
//   - bench and calibrate ([BenchCommands], [CalibrateCommand]): see package internal/bench
//   - replay ([ReplayCommand]): see package internal/audit
//   - convert ([ConvertCommand]): see package internal/importer
//
// [Read] reads the fleets that they are asked about. [Check] and [Write] write a file whole or
// not at all: a caller checks before a long computation and writes at its end. [ExplainUsage]
// reports what is wrong with a command line, with the name that was probably meant.
package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/internal/predict"
)

const help = `Fit the model of a hypervisor to migrations measured on your own hosts, and print the
error of the predictions before and after: the median and the 90th percentile of total time and
downtime, relative to the measurement. "Validated" predicts each experiment with a model that was
fitted to the others: this is the error to expect for migrations that were not measured.

A file is CSV, a controller's audit log, what virsh domjobinfo --completed has printed, one output after
the other, what Prometheus answers about KubeVirt's migrations, or what Nova answers about server migrations
while they run, one answer after the other (docs/prediction.md). Of the latter four the speed with which a
guest wrote is inferred from what was sent more than once. Migrations by post-copy or slowed by auto-converge
are left out where a file tells of them: the audit log and virsh do, KubeVirt and Nova do not. How many were
left out is printed on stderr.

The audit log knows the caps, and the links if the agents do; otherwise --link and --cap say them. A link that
is not known is taken for faster than the processors, and a note on stderr says so. Several connections are
faster than one: --connections says how many there were. KubeVirt uses 8, but 1 for VMs with a limit on CPUs
or with dedicated ones. virsh and Nova use 1 unless told otherwise. Neither KubeVirt nor Nova tells downtimes:
they are left as they are. No parameter says how fast encryption is: encrypted migrations are not fitted to,
and only how far the model is off them is learned.

With several hosts "validated" leaves out one host at a time. Each file of virsh is a host of its own.
A fitted model that predicts what was left out worse than the model to begin with is refused: it is
not written, and the exit status is 3.

CSV has one migration a line; the first line names the columns:

  ram_mib             memory of the VM                                        (needed)
  total_ms            how long the migration took                             (needed)
  downtime_ms         downtime, as the hypervisor says; empty is not known    (needed)
  ws_mib              working set that the guest writes cyclically                (0)
  rate_nominal_mib_s  how fast it writes                                          (0)
  fill_mib            memory that was ever written; the rest is zero     (all of it)
  cap_mib_s           the limit on the migration's speed; 0 is none               (0)
  link_mib_s          link speed; 0 is faster than the processors                 (0)
  downtime_limit_ms   the downtime limit                                        (300)
  autoconverge, postcopy   1 if it was allowed                                    (0)
  multifd             how many connections; 0 is one                              (0)
  switch_after_ms     when post-copy was started; -1 is never                    (-1)
  throttle_max        to how many percent auto-converge slowed the guest        (100)
  options             words joined by +: compress, xbzrle, tls-x509, mfcomp:zstd    ()
  accel               kvm, or tcg for an emulated guest                         (kvm)
  label, status       what kind of experiment it is; how it ended   (, completed)
  host                its source                                              ()

Other columns are ignored. A scenario uses the model that -o writes with model: FILE.

--json prints one object: before, after and validated (absent with fewer than two experiments),
each as godwit bench accuracy prints it; held, what was left out at a time: host or experiment; refused,
why the fitted model is not used; fitted, the number of measurements used; changes, with
parameter, from and to in nanoseconds, bytes, bytes a second or parts per thousand. The model that
-o writes also says how far it was off what was left out: plans take their ranges from it.

Exit status: 0 fitted, 2 bad input, 3 refused.`

// flags are the flags of godwit calibrate.
type flags struct {
	json   bool
	output string
	base   string
	link   string
	limit  string

	connections int
}

// CalibrateCommand returns godwit calibrate.
func CalibrateCommand() *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "calibrate FILE…",
		Short: "Fit the model to migrations measured on your own hosts",
		Long:  help,
		Args:  cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return run(c.OutOrStdout(), Plain(c.ErrOrStderr()), args, &f)
		},
	}
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON object instead of a table")
	c.Flags().StringVarP(&f.output, "output", "o", "", "write the fitted model to this `FILE`")
	c.Flags().StringVar(&f.base, "from", "", "start with the model in this `FILE`; default: qemu")
	c.Flags().StringVar(&f.link, "link", "", "`SPEED` of the links, for files that do not say it: 10Gbit/s")
	c.Flags().StringVar(&f.limit, "cap", "", "limit on each migration, for files that do not say it (`SPEED`)")
	c.Flags().IntVar(&f.connections, "connections", 0, "connections of each migration, for files that do not say it; "+
		"default: 8 with KubeVirt, 1 with virsh and Nova, in a log what its hosts take (`N`)")
	return c
}

func run(out, errs io.Writer, paths []string, f *flags) error {
	if err := Check(f.output, append(slices.Clone(paths), f.base)...); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	base := fake.QEMU()
	if f.base != "" {
		var err error
		if base, _, err = config.ReadModelFile(f.base); err != nil {
			return err
		}
	}
	all, notes, err := f.measurements(paths)
	if err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintln(errs, note)
	}
	path := strings.Join(paths, ", ")
	r, err := predict.Fit(all, base)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if f.output != "" && r.Refused == "" {
		err := Write(f.output, func(w io.Writer) error {
			fmt.Fprintf(w, "# fitted to %s by godwit calibrate\n",
				humanize.Count(r.Fitted, "measurement"))
			if err := config.WriteModel(w, r.Model); err != nil {
				return err
			}
			return config.WriteModelErrors(w, r.Errors)
		})
		if err != nil {
			return err
		}
	}
	if f.json {
		err = json.NewEncoder(out).Encode(r)
	} else {
		err = table(out, r, len(all))
	}
	if r.Refused != "" {
		err = errors.Join(err, ErrPlanNotDone)
	}
	return err
}

// table prints the answer as text.
func table(out io.Writer, r *predict.Result, n int) error {
	fmt.Fprintf(out, "fitted to %d of %s\n\n", r.Fitted, humanize.Count(n, "measurement"))
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "         \tN\tTOTAL MEDIAN\tP90\tDOWNTIME MEDIAN\tP90\t\n")
	row := func(name string, a predict.Accuracy) {
		fmt.Fprintf(t, "%-9s\t%d\t%.1f %%\t%.1f %%\t", name, a.Count, 100*a.Total.Median, 100*a.Total.P90)
		if a.NoDowntime == a.Count {
			fmt.Fprint(t, "unknown\tunknown\t\n")
			return
		}
		fmt.Fprintf(t, "%.1f %%\t%.1f %%\t\n", 100*a.Downtime.Median, 100*a.Downtime.P90)
	}
	row("before", r.Before.All)
	row("after", r.After.All)
	if r.Validated != nil {
		row("validated", r.Validated.All)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	switch {
	case r.Refused != "":
		fmt.Fprintf(out, "\nthe fitted model is refused: %s\n", r.Refused)
		return nil
	case r.Fitted == 0:
		fmt.Fprintln(out, "\nnot fitted: no parameter says how fast encryption or compressed channels are; only how far the model "+
			"is off was learned")
		return nil
	case r.Validated != nil:
		fmt.Fprintf(out, "validated: one %s at a time was left out of the fit\n", map[string]string{
			"host": "host", "experiment": "part of the experiments"}[r.Held])
	default:
		fmt.Fprintln(out, "not validated: that needs two experiments or more")
	}
	fmt.Fprintln(out)
	if len(r.Changes) == 0 {
		fmt.Fprintln(out, "no parameter was improved")
	}
	t = tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, c := range r.Changes {
		fmt.Fprintf(t, "%s\t%s\t→ %s\n", c.Parameter, c.Said(c.From), c.Said(c.To))
	}
	return t.Flush()
}
