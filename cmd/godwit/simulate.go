package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/internal/cli"
	"github.com/godwit-vm/godwit/internal/sweep"
	"github.com/godwit-vm/godwit/sim"
)

// simulateFlags are the flags of godwit simulate.
type simulateFlags struct {
	cli.Flags
	json  bool
	trace string
	html  string
	// compare is a file with an earlier result.
	compare string
}

const simulateHelp = `Simulate a scenario in virtual time: the production controller and agents run on
modelled hosts. The scenario contains the fleet, or names a file with it: godwit's own YAML, or what
Kubernetes with KubeVirt, OpenStack, Ganeti or libvirt says of itself: godwit help convert has the
commands. A scenario, and a fleet in godwit's own YAML, may have up to 4 MiB; other files may have any
size.

With --samples and --sweep the command simulates many worlds, on all cores, and compares the
combinations sample by sample. The samples differ in their seed, and as vary: in the scenario
describes:

  vary:
    dirty: lognormal(0.5)        # factor of each VM's dirty rates
    workingSet: uniform(0.5, 2)  # factor of each VM's working set; also triangular(LOW, MODE, HIGH)
    link: choice(0.5, 1)         # factor of each host's link speed
    faults: [10% within 1h crash-agent any-host for=30s, 3x within 2h reset n1 any-host]

With failover: {} in the scenario, hosts that are silent are fenced and VMs restarted elsewhere, as by the
controller; the results then have how long each VM was out.

--compare sets the result beside an earlier one: before and after a change, or, when the earlier one is of
many worlds and this one of a single world, what was predicted and what happened.

--sweep sets any field of the scenario to other values, as order or hosts[0].memory, or
hosts[*].memory for all; an empty value is the scenario's own. In addition, policy=FILE
replaces the migration policies, and link=SPEED the speed of every host's link.

Exit status: 0 every invariant held, 1 an invariant was violated, 2 bad input, 130 interrupted.`

func simulateCommand() *cobra.Command {
	var f simulateFlags
	c := &cobra.Command{
		Use:   "simulate SCENARIO.yaml",
		Short: "Simulate a scenario",
		Long:  simulateHelp,
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			plan, err := f.Read(args[0])
			if err != nil {
				return err
			}
			cli.Warn(os.Stderr, plan.Warnings)
			if err := cli.Apart(f.trace, plan.Files...); err != nil {
				return fmt.Errorf("--trace: %w", err)
			}
			if err := cli.Check(f.html, append(plan.Files, f.trace)...); err != nil {
				return fmt.Errorf("--html: %w", err)
			}
			before, err := f.before()
			if err != nil {
				return err
			}
			if !plan.Many() {
				return simulate(c.Context(), c.OutOrStdout(), plan, f, before)
			}
			if f.trace != "" {
				return errors.New("--trace needs a single world: " +
					"give --seed, and one value to each --sweep")
			}
			if f.html != "" && plan.Sharded() {
				return errors.New("--html does not work with --shard: give it to godwit merge")
			}
			cli.CollectLess()
			d, err := plan.Simulate(c.Context(), c.OutOrStdout(), f.json)
			if d == nil {
				return err
			}
			report := sweep.SweepReport(d)
			if before != nil {
				report.Compared = sweep.Beside(*before, d.Combinations[0].RunSummary(d.Run.Scenario))
				err = errors.Join(err, cli.PrintBeside(c.OutOrStdout(), report.Compared))
			}
			if f.html != "" {
				err = errors.Join(err, cli.Write(f.html, report.WriteHTML))
			}
			return err
		},
	}
	f.Add(c.Flags())
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON object instead of a table")
	c.Flags().StringVar(&f.trace, "trace", "",
		"write all events to this `FILE` as they happen")
	c.Flags().StringVar(&f.html, "html", "",
		"write a self-contained HTML page with charts to this `FILE`")
	c.Flags().StringVar(&f.compare, "compare", "",
		"set the result beside the one in this `FILE`, that --json has printed")
	return c
}

// before reads the result that this one is compared with; nil is none.
func (f *simulateFlags) before() (*sweep.RunSummary, error) {
	if f.compare == "" {
		return nil, nil
	}
	if f.json {
		return nil, errors.New("--compare prints a table, or goes into the page of --html: leave --json out")
	}
	data, err := os.ReadFile(f.compare)
	if err != nil {
		return nil, fmt.Errorf("--compare: %w", err)
	}
	o, err := sweep.ReadRunSummary(f.compare, data)
	if err != nil {
		return nil, fmt.Errorf("--compare: %w", err)
	}
	return &o, nil
}

// simulate runs the one world of a plan and prints its result.
func simulate(ctx context.Context, out io.Writer, plan *cli.Plan, f simulateFlags,
	before *sweep.RunSummary) error {
	s, err := plan.Scenario(0)
	if err != nil {
		return err
	}
	if s, err = s.Draw(s.Seed); err != nil {
		return err
	}
	config := s.Config(s.Seed)
	trace, err := traceTo(f.trace, &config)
	if err != nil {
		return err
	}
	var recorder *sweep.Recorder
	if f.html != "" {
		recorder = sweep.Record(&config)
		recorder.Network = s.Fleet.Network
	}
	began := time.Now()
	bar := newProgress()
	config.Tick = func(w *sim.World) bool {
		bar.show(w)
		return ctx.Err() == nil && trace.failed == nil
	}
	w, err := s.Build(config)
	if err != nil {
		return err
	}
	name, seed, until := s.Name, s.Seed, s.Until // the rest may be large, and is released
	ending := w.Run(until)
	bar.done()
	if err := errors.Join(trace.close(), context.Cause(ctx)); err != nil {
		return err
	}
	if ending == sim.AtRest {
		w.CheckAtRest()
	}
	a := answer{Scenario: name, Seed: seed, WallSeconds: time.Since(began).Seconds(),
		Ending: ending.String(), Result: w.Result()}
	if err := a.print(out, f.json, ending); err != nil {
		return err
	}
	var beside *sweep.SideBySide
	if before != nil {
		beside = sweep.Beside(*before, sweep.RunSummaryOf(name, a.Result))
		if err := cli.PrintBeside(out, beside); err != nil {
			return err
		}
	}
	if recorder != nil {
		d := recorder.Document(w, name, ending)
		d.Seed, d.Compared = seed, beside
		if err := cli.Write(f.html, d.WriteHTML); err != nil {
			return err
		}
	}
	return a.verdict()
}

// answer is what --json prints.
type answer struct {
	Scenario    string  `json:"scenario"`
	Seed        uint64  `json:"seed"`
	WallSeconds float64 `json:"wallSeconds"`
	Ending      string  `json:"ending"` // why the simulation ended
	sim.Result
}

// verdict returns [cli.ErrSweepViolated] when an invariant did not hold.
func (a answer) verdict() error {
	if len(a.Violations) > 0 {
		return cli.ErrSweepViolated
	}
	return nil
}

func (a answer) print(out io.Writer, asJSON bool, ending sim.Ending) error {
	if asJSON {
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		return e.Encode(a)
	}
	return a.table(cli.Plain(out), ending)
}
