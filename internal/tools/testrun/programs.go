package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// A program is the test program of a package. It is kept in the output folder: the linker works again only
// on what has changed since, while go test links each program in each run, which took a quarter of the
// processor time of the default tier.
type program struct {
	pkg
	file string
}

// A selection says which tests run, and how.
type selection struct {
	kind    kind
	tier    string // default, again (with the race detector, in the long tier) or long
	pattern string // of the tests; empty is all
}

// limits are how long the tests of one package may take.
var limits = map[string]time.Duration{"default": 20 * time.Minute, "again": 40 * time.Minute, "long": 75 * time.Minute}

// test tests the packages of the module that have these paths.
func (s *suite) test(ctx context.Context, r selection, paths []string) (bool, error) {
	var named []pkg
	for _, p := range s.packages {
		if slices.Contains(paths, p.path) {
			named = append(named, p)
		}
	}
	return s.testAll(ctx, r, named)
}

// testAll builds the tests of some packages, and runs them as go test does: each in its own folder, and as
// many at once as there are processors, and one more of those that mostly wait.
func (s *suite) testAll(ctx context.Context, r selection, all []pkg) (bool, error) {
	ready, ok, built := make(chan program), true, error(nil)
	go func() {
		defer close(ready)
		for _, group := range groups(all) {
			fine, err := s.build(ctx, r.kind, group, ready)
			ok, built = ok && fine, errors.Join(built, err)
		}
	}()
	var mu sync.Mutex
	var executing sync.WaitGroup
	var ran error
	failed := false
	workers := runtime.NumCPU()
	if r.kind == real && r.tier == "default" {
		workers++
	}
	for range workers {
		executing.Go(func() {
			for p := range ready {
				fine, err := s.execute(ctx, r, p)
				mu.Lock()
				failed, ran = failed || !fine, errors.Join(ran, err)
				mu.Unlock()
			}
		})
	}
	executing.Wait()
	return ok && !failed, errors.Join(built, ran)
}

// groups puts the packages of one parent folder together: their programs have different names. The
// order stays.
func groups(all []pkg) (groups [][]pkg) {
	for _, p := range all {
		same := func(g []pkg) bool { return path.Dir(g[0].path) == path.Dir(p.path) }
		if i := slices.IndexFunc(groups, same); i >= 0 {
			groups[i] = append(groups[i], p)
		} else {
			groups = append(groups, []pkg{p})
		}
	}
	return groups
}

// build builds the programs of a group and passes them on. One that cannot be built is a failure.
func (s *suite) build(ctx context.Context, k kind, group []pkg, ready chan<- program) (ok bool, err error) {
	folder, err := s.folder(k, group[0])
	if err != nil {
		return false, err
	}
	args := []string{"go", "test", "-c", "-o", folder + string(filepath.Separator), "-vet=off", "-tags", s.tags,
		"-ldflags=-s -w"}
	if k != plain {
		args = append(args, "-race")
	}
	for _, p := range group {
		args = append(args, p.path)
	}
	unlock := s.alone(folder)
	compile := command(ctx, args...)
	compile.Dir = group[0].module
	said, err := compile.CombinedOutput()
	unlock()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return false, nil
	case err != nil && !errors.As(err, &exit):
		return false, err
	case err != nil && len(group) > 1: // one of them; the others are tested
		ok = true
		for _, p := range group {
			fine, err := s.build(ctx, k, []pkg{p}, ready)
			if err != nil {
				return false, err
			}
			ok = ok && fine
		}
		return ok, nil
	case err != nil:
		s.unbuilt(group[0].path, string(said))
		return false, nil
	}
	for _, p := range group {
		ready <- program{p, filepath.Join(folder, path.Base(p.path)+".test")}
	}
	return true, nil
}

// folder is where the programs of the packages beside p are. It is made.
func (s *suite) folder(k kind, p pkg) (string, error) {
	kinds := map[bool]string{true: "plain", false: "race"}
	parent := strings.ReplaceAll(strings.Trim(path.Dir(p.path), "."), "/", "_")
	folder, err := filepath.Abs(filepath.Join(s.out, "tests", kinds[k == plain], parent))
	if err != nil {
		return "", err
	}
	return folder, os.MkdirAll(folder, 0o755)
}

// alone keeps two builds out of one folder.
func (s *suite) alone(folder string) (unlock func()) {
	s.mu.Lock()
	lock := s.building[folder]
	if lock == nil {
		lock = &sync.Mutex{}
		s.building[folder] = lock
	}
	s.mu.Unlock()
	lock.Lock()
	return lock.Unlock
}

// unbuilt notes a package whose tests cannot be built.
func (s *suite) unbuilt(path, said string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail(path, []string{said})
	fmt.Fprintf(s.w, "FAIL\t%s [build failed]\n", path)
}

// politely is what runs the tests of a package that start no processes, so that those that do come first, which run beside
// them: networks, hypervisors and leases do not wait.
func (p pkg) politely() []string {
	if p.kind == real || p.module != "" {
		return nil
	}
	return []string{"nice", "-n", "5"}
}

// execute runs a program.
func (s *suite) execute(ctx context.Context, r selection, p program) (bool, error) {
	converter, err := converter(ctx)
	if err != nil {
		return false, err
	}
	// test2json ignores signals, and what it starts would do so, too.
	args := append(p.politely(), converter, "-t", "-p", p.path, "env", "--default-signal=INT,QUIT", p.file,
		"-test.v=test2json", "-test.paniconexit0", "-test.timeout="+limits[r.tier].String())
	if r.pattern != "" {
		args = append(args, "-test.run="+r.pattern)
	}
	ctx, cancel := context.WithTimeout(ctx, limits[r.tier]+time.Minute) // it ends by itself before
	defer cancel()
	cmd := command(ctx, args...)
	cmd.Dir = p.dir
	cmd.Env = append(r.environment(), "PWD="+p.dir)
	ok, err := s.follow(cmd, true)
	if cmd.ProcessState != nil {
		s.mu.Lock()
		s.cpu[p.path] += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		s.mu.Unlock()
	}
	return ok, err
}

// converter is the program that turns what a test program prints into events.
var converter = func() func(context.Context) (string, error) {
	var mu sync.Mutex
	var file string
	return func(ctx context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if file != "" {
			return file, nil
		}
		out, err := output(ctx, "go", "tool", "-n", "test2json")
		file = strings.TrimSpace(string(out))
		return file, err
	}
}()

// environment is that of the tests of a run. A process with the race detector sleeps for a second when it
// ends, unless it is told not to: the scripts start hundreds of them.
func (r selection) environment() []string {
	env := append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	switch {
	case r.tier == "long" && os.Getenv("GODWIT_LONG") == "all":
		return env
	case r.tier == "long":
		return append(env, "GODWIT_LONG=1")
	case r.tier == "again":
		return append(env, "GODWIT_LONG=", "GODWIT_RACE=1")
	case r.tier == "default" && r.kind == racing:
		return append(env, "GODWIT_LONG=", "RAPID_CHECKS="+racedChecks)
	}
	return append(env, "GODWIT_LONG=")
}
