package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	tags, out, tier string
	fuzz            time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.tier, "tier", "default", "default, or all: the long tier as well")
	flag.StringVar(&o.tags, "tags", "libvirt_dlopen", "build tags")
	flag.StringVar(&o.out, "out", "bin", "the folder for logs and for what has passed")
	flag.DurationVar(&o.fuzz, "fuzztime", 2*time.Second, "how long each fuzz target runs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := run(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
	}
	if err != nil || !ok {
		stop()
		os.Exit(1)
	}
}

// A stage is one row of the table at the end.
type stage struct {
	name string
	run  func(context.Context) (ok bool, err error)
}

// A result is how a stage went.
type result struct {
	name string
	took time.Duration
	ok   bool
}

// run runs the stages of the tiers that are asked for, and prints the summary.
func run(ctx context.Context, o options) (ok bool, err error) {
	if o.tier != "default" && o.tier != "all" {
		return false, fmt.Errorf("unknown tier %q; use default or all", o.tier)
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return false, err
	}
	s := newSuite(o)
	record := filepath.Join(o.out, "passed.json")
	passed, again := readPassed(record, treeID(ctx))
	var stages []stage
	if again && o.tier == "all" {
		fmt.Println("the default tier has passed on this commit: it is not repeated")
		s.long = passed.Long
	} else {
		stages = s.defaultTier()
	}
	results, ok := runStages(ctx, stages)
	if ok && len(stages) > 0 {
		writePassed(record, passedTier{Tree: treeID(ctx), Long: s.long})
	}
	if o.tier == "all" && ctx.Err() == nil {
		more, fine := runStages(ctx, s.longTier())
		results, ok = append(results, more...), ok && fine
	}
	s.summary(os.Stdout, results)
	return ok && ctx.Err() == nil, context.Cause(ctx)
}

// runStages runs one stage after the other. Later stages run although an earlier one
// failed: one run shows everything that is wrong.
func runStages(ctx context.Context, stages []stage) (results []result, ok bool) {
	ok = true
	for _, s := range stages {
		if ctx.Err() != nil {
			return results, false
		}
		fmt.Printf("=== %s\n", s.name)
		began := time.Now()
		fine, err := s.run(ctx)
		if err != nil {
			fmt.Printf("%s: %v\n", s.name, err)
		}
		fine = fine && err == nil
		results = append(results, result{s.name, time.Since(began), fine})
		ok = ok && fine
	}
	return results, ok
}

// defaultTier is what make test runs.
func (s *suite) defaultTier() []stage {
	return []stage{
		{"gofmt", s.gofmt},
		{"vet", program("go", "vet", "-tags", s.tags, "./...")},
		{"staticcheck", program("go", "tool", "staticcheck", "-tags", s.tags, "./...")},
		{"tests", func(ctx context.Context) (bool, error) { return s.each(ctx, plain) }},
		{"the module internal/tools", program("go", "-C", "internal/tools", "vet", "./...")},
		{"the module kubevirt", s.kubevirt},
		{"tests with goroutines, -race", func(ctx context.Context) (bool, error) {
			return s.each(ctx, racing)
		}},
		{"tests of real processes, -race", func(ctx context.Context) (bool, error) {
			return s.each(ctx, real)
		}},
	}
}

// kubevirt checks the nested module: go vet and go test of the root do not see it.
func (s *suite) kubevirt(ctx context.Context) (bool, error) {
	const dir = "kubevirt"
	fine, err := program("go", "-C", dir, "vet", "./...")(ctx)
	if err != nil {
		return false, err
	}
	passed, err := s.testIn(ctx, dir, plain, "default", []string{"./..."})
	return fine && passed, err
}

// longTier is what make test-all adds.
func (s *suite) longTier() []stage {
	return []stage{
		{"long tests", s.longTests},
		{"the module kubevirt, long", func(ctx context.Context) (bool, error) {
			return s.testIn(ctx, "kubevirt", plain, "long", []string{"./..."})
		}},
		{"what imports goroutines, -race", s.raceAgain},
		{"fuzz targets", s.fuzzTargets},
		{"benchmarks, once", s.benchmarks},
	}
}

// gofmt fails if it would change a file.
func (s *suite) gofmt(ctx context.Context) (bool, error) {
	out, err := output(ctx, "gofmt", "-l", ".")
	if len(out) > 0 {
		fmt.Printf("gofmt would change:\n%s", out)
	}
	return err == nil && len(out) == 0, err
}

// program runs a program that prints what is wrong.
func program(args ...string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		cmd := command(ctx, args...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		err := cmd.Run()
		return err == nil, err
	}
}

// sorted returns the keys of a map in order.
func sorted[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
