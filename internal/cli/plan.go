package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/sweep"
	"github.com/godwit-vm/godwit/inventory"
)

// ErrSweepViolated says that a run broke an invariant; it has been reported.
var ErrSweepViolated = errors.New("an invariant was violated")

// Flags are the flags of godwit simulate that make many worlds out of one.
type Flags struct {
	samples int
	axes    []string
	shard   string
	output  string
	seed    uint64

	set *pflag.FlagSet
}

// Add adds the flags to a command's.
func (f *Flags) Add(set *pflag.FlagSet) {
	f.set = set
	set.Uint64Var(&f.seed, "seed", 0, "seed of all random choices (default: the scenario's)")
	set.IntVar(&f.samples, "samples", 1,
		"simulate `N` worlds that differ in their seed, and as vary: says")
	set.StringArrayVar(&f.axes, "sweep", nil,
		"simulate a field with each of these values, as limits.perCluster=2,5,10 or\n"+
			"policy=a.yaml,b.yaml; repeat it for all combinations (`PATH=VALUES`)")
	set.StringVar(&f.shard, "shard", "",
		"simulate part `I/N` of the worlds and print lines for godwit merge;\n"+
			"job/N takes I from a Kubernetes Job")
	set.StringVarP(&f.output, "output", "o", "",
		"write the shard to this `FILE`; - is standard output, the default")
}

// A Plan is what is to be simulated: one world or many.
type Plan struct {
	run   sweep.Run
	shard sweep.Shard
	path  string
	base  *config.Scenario // as it is written
	flags *Flags
	// Warnings are what should be known about the scenario, with the values that it is given.
	Warnings []inventory.Problem
	// Files are what was read, and [Flags]' output: nothing else may be written to them.
	Files []string
}

// Read reads the scenario and tries every value of every axis.
func (f *Flags) Read(path string) (*Plan, error) {
	p := &Plan{path: path, flags: f}
	base, err := config.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p.base = base
	p.run = sweep.Run{Version: BuildName(), Scenario: base.Name, File: filepath.Base(path),
		Seed: base.Seed, Samples: f.samples, Axes: sweep.Grid{}}
	if f.set.Changed("seed") {
		p.run.Seed = f.seed
	}
	p.Files = base.Files
	asWritten := true // it is simulated with no value changed
	for _, text := range f.axes {
		axis, err := sweep.ParseAxis(text)
		if err != nil {
			return nil, fmt.Errorf("--sweep: %w", err)
		}
		if axis.Path == "seed" && f.set.Changed("seed") {
			return nil, errors.New("--seed and --sweep seed=… exclude each other: use one")
		}
		p.run.Axes = append(p.run.Axes, axis)
		if err := p.try(axis); err != nil {
			return nil, err
		}
		asWritten = asWritten && slices.Contains(axis.Values, "")
	}
	if asWritten {
		p.warned(base)
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.run.Digest, err = digest(p.Files); err != nil {
		return nil, err
	}
	if err := Apart(f.output, p.Files...); err != nil {
		return nil, fmt.Errorf("--output: %w", err)
	}
	p.Files = append(p.Files, f.output)
	return p, nil
}

// check refuses flags that do not fit together.
func (p *Plan) check() error {
	f := p.flags
	if err := p.run.Axes.Check(); err != nil {
		return fmt.Errorf("--sweep: %w", err)
	}
	if err := p.run.Check(); err != nil {
		return fmt.Errorf("--samples: %w", err)
	}
	if f.output != "" && f.shard == "" {
		return errors.New("--output is where --shard writes: without it, use --json")
	}
	if f.shard == "" {
		return nil
	}
	var err error
	if p.shard, err = sweep.ParseShard(f.shard, os.Getenv); err != nil {
		return fmt.Errorf("--shard: %w", err)
	}
	return nil
}

// try reads the scenario with each value of an axis, and remembers the files that were read and
// what they warn of.
func (p *Plan) try(axis sweep.Axis) error {
	for _, value := range axis.Values {
		if value == "" {
			continue
		}
		o := config.Override{Path: axis.Path, Value: value}
		s, err := config.ReadFile(p.path, o)
		if err != nil {
			return fmt.Errorf("--sweep %s: %w", o, err)
		}
		p.Files = append(p.Files, s.Files...)
		p.warned(s)
	}
	return nil
}

// warned remembers what a scenario warns of, unless another one does, too.
func (p *Plan) warned(s *config.Scenario) {
	for _, w := range s.Fleet.Warnings {
		if !slices.Contains(p.Warnings, w) {
			p.Warnings = append(p.Warnings, w)
		}
	}
}

// Sharded reports whether only a part is to be simulated: there is no document of it.
func (p *Plan) Sharded() bool { return p.shard.Count > 0 }

// Many reports whether the answer is that of a sweep, not of one world.
func (p *Plan) Many() bool {
	return p.run.Worlds() > 1 || p.flags.set.Changed("samples") || p.Sharded()
}

// Scenario returns the scenario of a combination, with the seed of its first sample.
func (p *Plan) Scenario(combination int) (*config.Scenario, error) {
	settings := p.run.Axes.At(combination)
	var overrides []config.Override
	for _, s := range settings {
		if s.Value != "" {
			overrides = append(overrides, config.Override(s))
		}
	}
	s := *p.base
	if len(overrides) > 0 {
		read, err := config.ReadFile(p.path, overrides...)
		if err != nil {
			return nil, fmt.Errorf("--sweep %s: %w", sweep.Label(settings), err)
		}
		s = *read
	}
	if p.flags.set.Changed("seed") {
		s.Seed = p.run.Seed
	}
	return &s, nil
}
