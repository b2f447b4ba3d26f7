package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/sim/scenario"
)

// simulateFlags are the flags of godwit simulate.
type simulateFlags struct {
	seed  uint64
	json  bool
	trace string
}

const simulateHelp = `Simulate runs the real controller and agents over modelled hosts, in virtual
time. The scenario holds the fleet, or names a file with it: godwit's own YAML, or what
kubectl get nodes,vmis,vmims,migrationpolicies,kubevirts,namespaces -A -o yaml prints.

Exit status: 0 it ran and every invariant held, 1 an invariant was violated,
2 bad input.`

func simulateCommand() *cobra.Command {
	var f simulateFlags
	c := &cobra.Command{
		Use:   "simulate SCENARIO.yaml",
		Short: "Simulate what a scenario says, and tell what happens",
		Long:  simulateHelp,
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return simulate(c.Context(), c.OutOrStdout(), args[0], f, c.Flags().Changed("seed"))
		},
	}
	c.Flags().Uint64Var(&f.seed, "seed", 1,
		"what all chance follows from (default: the scenario's)")
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON object instead of a table")
	c.Flags().StringVar(&f.trace, "trace", "", "write everything that happens to this `FILE`")
	return c
}

// simulate runs a scenario and prints its result.
func simulate(ctx context.Context, out io.Writer, path string, f simulateFlags, seeded bool) error {
	debug.SetGCPercent(400) // a short life with one growing heap
	s, err := scenario.ReadFile(path)
	if err != nil {
		return err
	}
	if !seeded {
		f.seed = s.Seed
	}
	for _, p := range s.Fleet.Warnings {
		fmt.Fprintln(os.Stderr, "warning:", p.Error())
	}
	config := s.Config(f.seed)
	closeTrace, err := traceTo(f.trace, &config)
	if err != nil {
		return err
	}
	began := time.Now()
	bar := newProgress()
	config.Tick = func(w *sim.World) bool { bar.show(w); return ctx.Err() == nil }
	w, err := s.Build(config)
	if err != nil {
		return err
	}
	ending := w.Run(s.Until)
	bar.done()
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if ending == sim.AtRest {
		w.CheckAtRest()
	}
	if err := closeTrace(); err != nil {
		return err
	}
	a := answer{Scenario: s.Name, Seed: f.seed, WallSeconds: time.Since(began).Seconds(),
		Ending: ending.String(), Result: w.Result()}
	if err := a.print(out, f.json, ending); err != nil {
		return err
	}
	return a.verdict()
}

// traceTo lets a world write its trace to a file, if there is to be one.
func traceTo(path string, config *sim.Config) (func() error, error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	buffered := bufio.NewWriter(f)
	config.Trace = func(e sim.Entry) { fmt.Fprintln(buffered, e) }
	return func() error {
		if err := buffered.Flush(); err != nil {
			return fmt.Errorf("trace %s: %w", path, err)
		}
		return f.Close()
	}, nil
}

// answer is what --json prints.
type answer struct {
	Scenario    string  `json:"scenario"`
	Seed        uint64  `json:"seed"`
	WallSeconds float64 `json:"wallSeconds"`
	Ending      string  `json:"ending"` // why the simulation ended
	sim.Result
}

// verdict returns errViolated when an invariant did not hold.
func (a answer) verdict() error {
	if len(a.Violations) > 0 {
		return errViolated
	}
	return nil
}

func (a answer) print(out io.Writer, asJSON bool, ending sim.Ending) error {
	if asJSON {
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		return e.Encode(a)
	}
	return a.table(out, ending)
}
