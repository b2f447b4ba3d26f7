// Package testutil holds what tests of several packages need: one way to wait
// for a real process, one way to build a program that they run, and the two tiers of tests.
//
// The default tier is what `make test` and a plain `go test` run. The long tier
// adds what takes minutes: more rounds, more seeds, software emulation beside
// KVM. It runs with GODWIT_LONG=1, as `make test-all` sets it.
//
// A limit on waiting says when to give up, not how fast something has to be. On
// a machine that is slower still, GODWIT_TEST_PATIENCE=5 multiplies every limit
// by five.
//
// # Recorded vectors
//
// This part replays decisions recorded from the real KubeVirt. It reads
// the recordings and counts; what a decision means is the caller's test.
package testutil

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The environment variables that tests read.
const (
	LongKey     = "GODWIT_LONG"          // not empty: the long tier
	raceKey     = "GODWIT_RACE"          // not empty: Unraced skips nothing
	PatienceKey = "GODWIT_TEST_PATIENCE" // the factor of every limit, from 0.1 to 1000
)

// DefaultLimit is how long [Eventually] waits with a patience of 1. Everything that
// tests wait for takes a second or less on an idle machine; beside much other work, a transfer that
// compresses what it sends took more than a minute.
const DefaultLimit = 3 * time.Minute

// The pause between two looks is that of polling or, after a look that took long, as one that
// starts a process does, idle times as long as the look, up to rarely: what is waited for needs the
// processor, too.
const (
	polling = 5 * time.Millisecond
	idle    = 3
	rarely  = 200 * time.Millisecond
)

// longNote is what a test prints that does more in the long tier. The test
// command looks for it, and runs again only such tests.
const longNote = "in the long tier (" + LongKey + "=1)"

// InLongTier reports whether the long tier runs.
func InLongTier() bool { return os.Getenv(LongKey) != "" }

// Everything reports whether the long tier runs what costs most, too, and not a sample of it.
func Everything() bool { return os.Getenv(LongKey) == "all" }

// Long skips a test that belongs to the long tier.
func Long(t testing.TB) {
	t.Helper()
	if !InLongTier() {
		t.Skip("it runs " + longNote)
	}
}

// Unraced skips a long test when the race detector is on, which makes it up to ten times slower: nothing in
// it is concurrent, or a shorter test runs the same concurrent code. Its package is also tested without the
// race detector, and the long tier runs it with.
func Unraced(t testing.TB) {
	t.Helper()
	if Raced && os.Getenv(raceKey) == "" {
		t.Skip("it runs without the race detector, and with it in the long tier")
	}
}

// Rounds returns how often a test repeats what it does: short in the default tier,
// long in the long one.
func Rounds(t testing.TB, short, long int) int {
	t.Helper()
	if InLongTier() {
		return long
	}
	t.Logf("%d rounds; %d %s", short, long, longNote)
	return short
}

// Sample skips a test in the default tier unless it is one of a sample: one test in
// n. The name of the test and the seed of property tests (RAPID_SEED, which make sets
// from the commit) choose it, so that each commit tries other tests. The long tier runs
// the rest. It is for suites whose every test starts real hypervisors. Without KVM, guests run in software, which takes
// several times as long: the sample is one in 2n, and the long tier runs one in four; GODWIT_LONG=all runs all of them.
func Sample(t testing.TB, n uint32) {
	t.Helper()
	switch {
	case Sampled(t.Name(), n):
	case InLongTier():
		t.Skipf("no KVM here: it is not in this commit's sample of one in %d; GODWIT_LONG=all runs it", oneIn(n))
	default:
		t.Skipf("it is not in this commit's sample of one in %d; it runs %s", oneIn(n), longNote)
	}
}

// Sampled reports whether what has this name is of the sample that [Sample] speaks of.
func Sampled(name string, n uint32) bool { return drawn(name, oneIn(n)) }

// oneIn is how many tests there are for one of the sample.
func oneIn(n uint32) uint32 {
	switch kvm := HasKVM(); {
	case Everything() || InLongTier() && kvm:
		return 1
	case InLongTier():
		return min(n, 4)
	case kvm:
		return n
	}
	return 2 * n
}

// drawn reports whether the seed of property tests draws what has this name, one in n.
func drawn(name string, n uint32) bool {
	h := fnv.New32a()
	fmt.Fprint(h, os.Getenv("RAPID_SEED"), " ", name)
	return h.Sum32()%n == 0
}

// SampleLong is [Long] for a test that takes minutes of the processors: in the long tier, too, it runs only if it is
// one of a sample of this commit, one in n. GODWIT_LONG=all runs it always.
func SampleLong(t testing.TB, n uint32) {
	t.Helper()
	Long(t)
	if !LongSampled(t.Name(), n) {
		t.Skipf("it is not in this commit's sample of one in %d of the long tier; GODWIT_LONG=all runs it", n)
	}
}

// LongSampled reports whether what has this name is of the sample that [SampleLong] speaks of.
func LongSampled(name string, n uint32) bool { return Everything() || drawn(name, n) }

// Emulated skips a test of software emulation in the default tier of a machine that has
// KVM: the long tier runs it.
func Emulated(t testing.TB) {
	t.Helper()
	if HasKVM() {
		Long(t)
	}
}

// SampleEmulated skips, on a machine that has KVM, a test of software emulation that runs with KVM, too, unless it
// is one of a sample of this commit: one in n. GODWIT_LONG=all runs all of them.
func SampleEmulated(t testing.TB, n uint32) {
	t.Helper()
	if HasKVM() && !LongSampled(t.Name(), n) {
		t.Skipf("it is not in this commit's sample of one in %d of software emulation; with KVM it runs", n)
	}
}

// HasKVM reports whether this process may use KVM.
func HasKVM() bool {
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err == nil {
		f.Close()
	}
	return err == nil
}

// Accelerator is the fastest one of QEMU that works here: "kvm" or "tcg".
func Accelerator() string {
	if HasKVM() {
		return "kvm"
	}
	return "tcg"
}

// QEMU is the major version of the QEMU that is installed: 7 of 7.2.22. It is 0 where none answers.
var QEMU = sync.OnceValue(func() (major int) {
	said, err := exec.Command("qemu-system-x86_64", "--version").Output()
	if err != nil {
		return 0
	}
	_, version, _ := strings.Cut(string(said), "version ")
	_, _ = fmt.Sscanf(version, "%d.", &major)
	return major
})

// Limit multiplies a limit on waiting by the patience that the environment asks for.
func Limit(d time.Duration) time.Duration {
	f, err := strconv.ParseFloat(os.Getenv(PatienceKey), 64)
	if err != nil || f < 0.1 || f > 1000 {
		return d
	}
	return time.Duration(float64(d) * f)
}

// Context returns a context that ends with the test, or after [Limit] of d.
func Context(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Limit(d))
	t.Cleanup(cancel)
	return ctx
}

// Eventually looks until check returns nil, and fails the test if it does not
// within the default limit. The error is what check saw; the last one is printed.
func Eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	EventuallyWithin(t, DefaultLimit, what, check)
}

// EventuallyWithin is [Eventually] with a limit of its own, which the patience multiplies.
func EventuallyWithin(t testing.TB, limit time.Duration, what string, check func() error) {
	t.Helper()
	if err := Poll(t.Context(), limit, check); err != nil {
		t.Fatalf("waited until %s: %v", what, err)
	}
}

// Poll looks until check returns nil. If it does not within [Limit] of limit, or
// before ctx ends, Poll returns what check saw last, and for how long it waited.
func Poll(ctx context.Context, limit time.Duration, check func() error) error {
	began, limit := time.Now(), Limit(limit)
	for {
		looked := time.Now()
		saw := check()
		if saw == nil {
			return nil
		}
		var fatal stop
		waited, took := time.Since(began), time.Since(looked)
		switch {
		case errors.As(saw, &fatal):
			return fatal.error
		case waited >= limit:
			return fmt.Errorf("gave up after %v; last: %w", waited.Round(time.Millisecond), saw)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w after %v; last: %w", context.Cause(ctx),
				waited.Round(time.Millisecond), saw)
		case <-time.After(min(max(polling, idle*took), rarely)):
		}
	}
}

// stop is an error after which waiting is of no use.
type stop struct{ error }

// Stop marks an error of a check after which it cannot become true any more:
// [Poll] returns err at once.
func Stop(err error) error { return stop{err} }

// Holds makes a check of a condition that has nothing to tell but whether it holds.
func Holds(condition func() bool) func() error {
	return func() error {
		if condition() {
			return nil
		}
		return errors.New("it does not hold")
	}
}
