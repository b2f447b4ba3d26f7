package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	root, tags, out, tier string
	fuzz                  time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", "../..", "the folder of the checkout")
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
	// aside lets later stages begin while this one runs: its tests mostly wait for processes, and
	// theirs need the processors.
	aside bool
}

// A result is how a stage went.
type result struct {
	name  string
	took  time.Duration
	ok    bool
	aside bool // it ran beside later stages
}

// run runs the stages of the tiers that are asked for, and prints the summary.
func run(ctx context.Context, o options) (ok bool, err error) {
	if o.tier != "default" && o.tier != "all" {
		return false, fmt.Errorf("unknown tier %q; use default or all", o.tier)
	}
	if err := os.Chdir(o.root); err != nil {
		return false, err
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
	began := time.Now()
	results, ok := runStages(ctx, stages)
	if ok && len(stages) > 0 {
		writePassed(record, passedTier{Tree: treeID(ctx), Long: s.long})
	}
	if o.tier == "all" && ctx.Err() == nil {
		more, fine := runStages(ctx, s.longTier())
		results, ok = append(results, more...), ok && fine
	}
	s.summary(os.Stdout, results, time.Since(began))
	return ok && ctx.Err() == nil, context.Cause(ctx)
}

// runStages runs the stages in their order, and those that are aside beside the later ones. Later
// stages run although an earlier one failed: one run shows everything that is wrong.
func runStages(ctx context.Context, stages []stage) (results []result, ok bool) {
	results = make([]result, len(stages))
	var aside sync.WaitGroup
	for i, s := range stages {
		if ctx.Err() != nil {
			results = results[:i]
			break
		}
		if s.aside {
			aside.Go(func() { results[i] = s.result(ctx) })
		} else {
			results[i] = s.result(ctx)
		}
	}
	aside.Wait()
	failed := slices.ContainsFunc(results, func(r result) bool { return !r.ok })
	return results, !failed && ctx.Err() == nil
}

// result runs a stage.
func (s stage) result(ctx context.Context) result {
	fmt.Printf("=== %s\n", s.name)
	began := time.Now()
	ok, err := s.run(ctx)
	if err != nil {
		fmt.Printf("%s: %v\n", s.name, err)
	}
	return result{s.name, time.Since(began), ok && err == nil, s.aside}
}

// defaultTier is what make test runs.
func (s *suite) defaultTier() []stage {
	kind := func(k kind) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) { return s.each(ctx, k) }
	}
	return []stage{
		{name: "gofmt", run: s.gofmt},
		{name: "tests of real processes, -race", run: kind(real), aside: true},
		{name: "vet", run: runs("go", "vet", "-tags", s.tags, "./...")},
		{name: "staticcheck", run: s.staticcheck},
		{name: "tests", run: kind(plain)},
		{name: "the module internal/tools", run: s.nested(toolsModule)},
		{name: "the module kubevirt", run: s.nested(kubevirtModule)},
		{name: "tests with goroutines, -race", run: kind(racing)},
	}
}

// The folders of nested modules: the libraries of Kubernetes, and the tools that only work on godwit needs.
const (
	kubevirtModule = "kubevirt"
	toolsModule    = "internal/tools"
)

// nested checks a nested module: go vet and go test of the root do not see it.
func (s *suite) nested(folder string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		fine, err := runs("go", "-C", folder, "vet", "./...")(ctx)
		if err != nil {
			return false, err
		}
		all, err := packages(ctx, folder, s.tags)
		if err != nil {
			return false, err
		}
		kinds := map[kind][]pkg{}
		for _, p := range all {
			if folder == kubevirtModule {
				p.kind = plain // its concurrent parts are those of the libraries of Kubernetes
			}
			kinds[p.kind] = append(kinds[p.kind], p)
		}
		for k, some := range kinds {
			passed, err := s.testAll(ctx, selection{kind: k, tier: "default"}, some)
			if err != nil {
				return false, err
			}
			fine = fine && passed
		}
		return fine, nil
	}
}

// staticcheck checks the root, and the tools that are godwit's own: the others start libraries of many packages, and
// are a page each.
func (s *suite) staticcheck(ctx context.Context) (bool, error) {
	path, err := output(ctx, "go", "-C", toolsModule, "tool", "-n", "staticcheck")
	if err != nil {
		return false, err
	}
	program := strings.TrimSpace(string(path))
	root, errRoot := runs(program, "-tags", s.tags, "./...")(ctx)
	tools, errTools := runs("env", "-C", toolsModule, program, "./lint", "./testrun", "./qemufaults")(ctx)
	return root && tools, errors.Join(errRoot, errTools)
}

// longTier is what make test-all adds.
func (s *suite) longTier() []stage {
	return []stage{
		{name: "long tests", run: s.longTests, aside: true},
		{name: "the programs of a cluster with KubeVirt", run: func(ctx context.Context) (bool, error) {
			// The first build takes minutes, on a busy machine more than a test may take.
			return s.kubevirtLong(ctx, "-timeout=0", "-run=^TestBuild$", "./internal/apiserver")
		}},
		{name: "the module kubevirt, long", run: func(ctx context.Context) (bool, error) {
			return s.kubevirtLong(ctx, "./...")
		}, aside: true},
		{name: "what imports goroutines, -race", run: s.raceAgain},
		{name: "fuzz targets", run: s.fuzzTargets},
		{name: "benchmarks, once", run: s.benchmarks},
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

// runs runs a program that prints what is wrong.
func runs(args ...string) func(context.Context) (bool, error) {
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
