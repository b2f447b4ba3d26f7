package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// An event is one line of go test -json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// A suite collects what the tests of all stages say.
type suite struct {
	options
	w io.Writer // what people see

	mu       sync.Mutex
	packages []pkg
	passed   int
	failed   []string       // "package test"
	skipped  map[string]int // by reason
	took     map[string]time.Duration
	cpu      map[string]time.Duration // of test programs and what they waited for
	tests    map[string]time.Duration // by "package test", without subtests
	building map[string]*sync.Mutex   // by folder
	used     map[string]bool          // hypervisors, stores and browsers that were used
	long     map[string][]string      // tests that do more in the long tier, by package
	log      *os.File
}

func newSuite(o options) *suite {
	return &suite{options: o, w: os.Stdout, skipped: map[string]int{},
		took: map[string]time.Duration{}, cpu: map[string]time.Duration{},
		tests: map[string]time.Duration{}, building: map[string]*sync.Mutex{}, used: map[string]bool{}, long: map[string][]string{}}
}

// load finds the packages once.
func (s *suite) load(ctx context.Context) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.packages == nil {
		s.packages, err = packages(ctx, "", s.tags)
	}
	return err
}

// of returns the packages that are tested as those of a kind.
func (s *suite) of(k kind) (paths []string) {
	for _, p := range s.packages {
		if p.kind == k || k == plain && len(p.unraced) > 0 && !p.parted() {
			paths = append(paths, p.path)
		}
	}
	return paths
}

// parted tells whether only those tests of a package run without the race detector that do not run with
// it: the others start real processes, and do all of their work with it.
func (p pkg) parted() bool { return p.kind == real && len(p.unraced) > 0 && !p.samples }

// each runs the tests of all packages of a kind.
func (s *suite) each(ctx context.Context, k kind) (bool, error) {
	if err := s.load(ctx); err != nil {
		return false, err
	}
	ok := true
	if paths := s.of(k); len(paths) > 0 {
		fine, err := s.test(ctx, selection{kind: k, tier: "default"}, paths)
		if err != nil {
			return false, err
		}
		ok = fine
	}
	for _, p := range s.packages {
		if k != plain || !p.parted() {
			continue
		}
		fine, err := s.test(ctx, selection{k, "default", only(p.unraced)}, []string{p.path})
		if err != nil {
			return false, err
		}
		ok = ok && fine
	}
	return ok, nil
}

// racedChecks is how many cases of a property the default tier tries with the race detector, which
// makes each of them some ten times slower. The long tier tries them all.
const racedChecks = "30"

// kubevirtLong runs go test in the folder of the module kubevirt, as the long tier does.
func (s *suite) kubevirtLong(ctx context.Context, args ...string) (bool, error) {
	all := []string{"go", "test", "-json", "-count=1", "-vet=off", "-tags", s.tags,
		"-timeout", limits["long"].String(), "-p", fmt.Sprint(runtime.NumCPU())}
	cmd := command(ctx, append(all, args...)...)
	cmd.Dir, cmd.Env = kubevirtModule, selection{tier: "long"}.environment()
	return s.follow(cmd, false)
}

// follow runs a program that prints the events of tests. The line of a package is printed, unless
// go test does it.
func (s *suite) follow(cmd *exec.Cmd, line bool) (bool, error) {
	cmd.Stderr = s.w
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	err = s.read(out, line)
	ended := cmd.Wait()
	var exit *exec.ExitError
	if err == nil && ended != nil && !errors.As(ended, &exit) {
		err = ended // it did not run
	}
	return ended == nil && err == nil, err
}

// A reading takes the events of one run of go test into account. Several run at a time, and two of
// them may test one package.
type reading struct {
	*suite
	said map[string][]string // what a test that has not ended has printed
	line bool                // the line of a package is to be printed
}

// read reads the events of a run of go test to their end.
func (s *suite) read(r io.Reader, line bool) error {
	run := reading{s, map[string][]string{}, line}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 1<<20), 64<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(s.w, lines.Text())
			continue
		}
		run.event(e)
	}
	return lines.Err()
}

var (
	// realThing is how tests name what they run on.
	realThing = regexp.MustCompile(`(libvirt [0-9.]+, )?QEMU [0-9.]+, (kvm|tcg|qemu)|` +
		`etcd [0-9][0-9.]*, [0-9]+ members?|Chromium [0-9.]+|` +
		`kube-apiserver [0-9.]+`)
	// doesMore is what testutil.Long and testutil.Rounds print.
	doesMore = "in the long tier (GODWIT_LONG=1)"
	// reason is the place and the text of a message, or the command of a script that skips it.
	reason = regexp.MustCompile(`^\s+([a-z0-9_]+\.go):\d+: (.*)|^\s+> (?:\[.*\] )?skip '(.*)'$`)
)

// event takes one event into account.
func (s reading) event(e event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(e)
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output", "build-output":
		s.output(key, e)
	case "pass", "fail", "skip":
		s.end(key, e)
	}
}

// output takes a line of output into account.
func (s reading) output(key string, e event) {
	for _, thing := range realThing.FindAllString(e.Output, -1) {
		s.used[thing] = true
	}
	if strings.Contains(e.Output, doesMore) && e.Test != "" &&
		!slices.Contains(s.long[e.Package], e.Test) {
		s.long[e.Package] = append(s.long[e.Package], e.Test)
	}
	if e.Test == "" {
		if !strings.Contains(e.Output, "[no tests to run]") && telling(e.Output) {
			fmt.Fprint(s.w, e.Output)
		}
		return
	}
	s.said[key] = append(s.said[key], e.Output)
}

// telling leaves out what go test prints for every package that passes, but for its own line.
func telling(line string) bool {
	return line != "PASS\n" && !strings.HasPrefix(line, "coverage:")
}

// end takes the end of a test, or of a package, into account.
func (s reading) end(key string, e event) {
	said := s.said[key]
	delete(s.said, key)
	if e.Test == "" {
		s.took[e.Package] += time.Duration(e.Elapsed * float64(time.Second))
		if e.Action == "fail" {
			s.fail(e.Package, s.left(e.Package))
		}
		if s.line {
			word := map[bool]string{true: "FAIL", false: "ok  "}[e.Action == "fail"]
			fmt.Fprintf(s.w, "%s\t%s\t%.3fs\n", word, e.Package, e.Elapsed)
		}
		return
	}
	if !strings.Contains(e.Test, "/") {
		s.tests[key] += time.Duration(e.Elapsed * float64(time.Second))
	}
	switch e.Action {
	case "pass":
		s.passed++
	case "skip":
		s.skipped[reasonOf(said)]++
	case "fail":
		s.fail(key, said)
	}
}

// left returns what tests of a package that have not ended have printed: it was
// stopped, or it panicked.
func (s reading) left(path string) (said []string) {
	for _, key := range sorted(s.said) {
		if strings.HasPrefix(key, path+" ") {
			said = append(said, s.said[key]...)
			delete(s.said, key)
		}
	}
	return said
}

// fail prints a failure at once.
func (s *suite) fail(key string, said []string) {
	s.failed = append(s.failed, key)
	fmt.Fprintf(s.w, "--- FAIL: %s\n%s", key, strings.Join(said, ""))
}

// reasonOf finds why a test was skipped in what it printed.
func reasonOf(said []string) string {
	for _, line := range slices.Backward(said) {
		if m := reason.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			if strings.Contains(line, doesMore) {
				return "it belongs to the long tier"
			}
			return m[2] + m[3]
		}
	}
	return "it gives no reason"
}

// write keeps every event in the log.
func (s *suite) write(e event) {
	if s.log == nil {
		var err error
		if s.log, err = os.Create(filepath.Join(s.out, "test.log")); err != nil {
			s.log = os.Stderr
		}
	}
	if e.Output != "" {
		fmt.Fprintf(s.log, "%s %s: %s", filepath.Base(e.Package), e.Test, e.Output)
	}
}

// command is a program in a process group of its own. When ctx ends, the group is
// interrupted: go test, the tests that it has started, and what these have started.
func command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 30 * time.Second
	return cmd
}

// output returns what a program prints.
func output(ctx context.Context, args ...string) ([]byte, error) {
	cmd := command(ctx, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("%s: %w", strings.Join(args[:min(3, len(args))], " "), err)
	}
	return out, nil
}
