package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/user"
	"runtime"
	"slices"
	"strings"
	"time"
)

// slowest is how many packages the summary names, and slowestTests how many tests.
const (
	slowest      = 10
	slowestTests = 20
)

// summary prints what ran, what was skipped and why, and how long it took.
func (s *suite) summary(w io.Writer, stages []result, took time.Duration) {
	s.most(w, fmt.Sprintf("the %d slowest packages: seconds, and of the processors", slowest), s.took)
	s.most(w, fmt.Sprintf("the %d that use the processors most", slowest), s.cpu)
	all := time.Duration(0)
	for _, used := range s.cpu {
		all += used
	}
	fmt.Fprintf(w, "  the tests of all packages used the processors for %.1f s\n", all.Seconds())
	s.slowestTests(w)
	fmt.Fprintf(w, "\nran for real: %s\n", orNone(sorted(s.used)))
	fmt.Fprintf(w, "the machine: %s, %d cores, KVM %s, userfaultfd %s, user %s, RAPID_SEED=%s\n",
		runtime.Version(), runtime.NumCPU(), present("/dev/kvm"), present("/dev/userfaultfd"),
		userName(), cmp.Or(os.Getenv("RAPID_SEED"), "0"))
	skips := 0
	for _, why := range sorted(s.skipped) {
		skips += s.skipped[why]
	}
	fmt.Fprintf(w, "skipped: %d\n", skips)
	for _, why := range sorted(s.skipped) {
		fmt.Fprintf(w, "  %4d  %s\n", s.skipped[why], why)
	}
	s.table(w, stages, took)
	for _, key := range s.failed {
		fmt.Fprintf(w, "FAILED: %s\n", key)
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", s.passed, len(s.failed), skips)
}

// most lists the packages that come first by some measure.
func (s *suite) most(w io.Writer, title string, by map[string]time.Duration) {
	fmt.Fprintf(w, "\n%s\n", title)
	for _, name := range first(slowest, by) {
		fmt.Fprintf(w, "  %7.1f s %7.1f s  %s\n", s.took[name].Seconds(), s.cpu[name].Seconds(), name)
	}
}

// slowestTests lists the tests that took longest, with their subtests.
func (s *suite) slowestTests(w io.Writer) {
	fmt.Fprintf(w, "\nthe %d slowest tests: seconds of both tiers, with pauses\n", slowestTests)
	for _, name := range first(slowestTests, s.tests) {
		fmt.Fprintf(w, "  %7.1f s  %s\n", s.tests[name].Seconds(), name)
	}
}

// first returns the n names with the longest times, the longest first.
func first(n int, by map[string]time.Duration) []string {
	names := sorted(by)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(by[b], by[a]) })
	return names[:min(n, len(names))]
}

// table prints the stages, and how long they took together.
func (s *suite) table(w io.Writer, stages []result, took time.Duration) {
	fmt.Fprintln(w, "\nstage                                 seconds")
	for _, r := range stages {
		word := ""
		if r.aside {
			word = "  beside the next ones"
		}
		if !r.ok {
			word += "  FAILED"
		}
		fmt.Fprintf(w, "%-36s %8.1f%s\n", r.name, r.took.Seconds(), word)
	}
	fmt.Fprintf(w, "%-36s %8.1f\n", "together", took.Seconds())
}

func orNone(words []string) string {
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, "; ")
}

func present(path string) string {
	if _, err := os.Stat(path); err != nil {
		return "absent"
	}
	return "present"
}

func userName() string {
	u, err := user.Current()
	if err != nil {
		return "unknown"
	}
	return u.Username
}
