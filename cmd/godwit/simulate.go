package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
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
}

const simulateHelp = `Simulate runs the real controller and agents over modelled hosts, in virtual
time. The scenario holds the fleet, or names a file with it: godwit's own YAML, or what
kubectl get nodes,vmis,vmims,migrationpolicies,kubevirts,namespaces,resourcequotas -A -o yaml
prints, or another format that godwit help convert lists. A scenario has 4 MiB at most, and so has a fleet
in godwit's own YAML; other files may have any size.

With --samples and --sweep it simulates many worlds, on all cores, and compares the
combinations sample by sample. What differs between samples besides the seed the
scenario says in vary:, as

  vary:
    dirty: lognormal(0.5)        # each VM's rates, times a factor of its own
    workingSet: uniform(0.5, 2)  # each VM's hot set; also triangular(LOW, MODE, HIGH)
    link: choice(0.5, 1)         # each host's link
    faults: [10% within 1h crash-agent any-host for=30s, 3x within 2h reset n1 any-host]

Sweeps give any field of the scenario other values, as order or hosts[0].memory, or
hosts[*].memory for all; an empty value is the scenario's own. Besides, policy=FILE
replaces the migration policies, and link=SPEED the speed of every host's link.

Exit status: 0 it ran and every invariant held, 1 an invariant was violated,
2 bad input, 130 it was interrupted.`

func simulateCommand() *cobra.Command {
	var f simulateFlags
	c := &cobra.Command{
		Use:   "simulate SCENARIO.yaml",
		Short: "Simulate what a scenario says, and tell what happens",
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
			if !plan.Many() {
				return simulate(c.Context(), c.OutOrStdout(), plan, f)
			}
			if f.trace != "" {
				return errors.New("--trace is of one world: " +
					"give --seed, and one value to each --sweep")
			}
			if f.html != "" && plan.Sharded() {
				return errors.New("--html is not of a shard: give it to godwit merge")
			}
			if os.Getenv("GOGC") == "" {
				debug.SetGCPercent(400) // worlds are small and short: collecting costs a quarter
			}
			d, err := plan.Simulate(c.Context(), c.OutOrStdout(), f.json)
			if d != nil && f.html != "" {
				err = errors.Join(err, cli.Write(f.html, sweep.SweepReport(d).WriteHTML))
			}
			return err
		},
	}
	f.Add(c.Flags())
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON object instead of a table")
	c.Flags().StringVar(&f.trace, "trace", "",
		"write everything to this `FILE`, while it happens")
	c.Flags().StringVar(&f.html, "html", "",
		"write a page with charts, which needs no network, to this `FILE`")
	return c
}

// simulate runs the one world of a plan and prints its result.
func simulate(ctx context.Context, out io.Writer, plan *cli.Plan, f simulateFlags) error {
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
	name, seed, until := s.Name, s.Seed, s.Until // the rest may be large, and is let go of
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
	if recorder != nil {
		d := recorder.Document(w, name, ending)
		d.Seed = seed
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
