package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/sim"
)

// traced plays events in a world of two hosts, and returns the entries of its trace with one of some words.
func traced(t *testing.T, words []string, until time.Duration, happen map[time.Duration][]sim.Event) []string {
	t.Helper()
	var all []string
	w := grid(t, sim.Config{Trace: func(e sim.Entry) {
		if slices.ContainsFunc(words, func(word string) bool { return strings.Contains(e.What, word) }) {
			all = append(all, fmt.Sprintf("%v %s", e.At, e.What))
		}
	}}, 2, 1, 1)
	for at, list := range happen {
		for _, e := range list {
			w.At(at, e)
		}
	}
	w.Run(until)
	for _, v := range w.Violations() {
		t.Errorf("%s: %s", v.Invariant, v.Detail)
	}
	return all
}

// Of two faults that break the same thing the one counts that ends last, also when it begins last.
func TestOfFaultsThatOverlapTheOneCountsThatEndsLast(t *testing.T) {
	const long, short, start = 50 * time.Second, 2 * time.Second, 10 * time.Second
	none := 0
	for _, test := range []struct {
		name  string
		fault func(time.Duration) sim.Event
		ends  string
		good  bool // without an end it is for good
	}{
		{"an agent", func(d time.Duration) sim.Event { return sim.CrashAgent{Host: "n1", For: d} }, "agent restarts", false},
		{"the controller", func(d time.Duration) sim.Event { return sim.CrashController{For: d} }, "controller restarts", false},
		{"the store", func(d time.Duration) sim.Event { return sim.FullStore{For: d} }, "the store has room again", false},
		{"a daemon", func(d time.Duration) sim.Event { return sim.CrashHypervisor{Host: "n1", For: d} }, "hypervisor daemon restarts", false},
		{"a link", func(d time.Duration) sim.Event { return sim.CutLink{A: "n1", B: "n2", For: d} }, "link n1–n2 heals", true},
		{"a host", func(d time.Duration) sim.Event { return sim.CrashHost{Host: "n1", For: d} }, "host returns", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			check := func(want []string, first, second time.Duration) {
				t.Helper()
				got := traced(t, []string{test.ends}, 10*time.Minute, map[time.Duration][]sim.Event{
					start: {test.fault(first)}, start + time.Second: {test.fault(second)}})
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("for %v, and a second later for %v (-want +got):\n%s", first, second, diff)
				}
			}
			ends := func(at time.Duration) []string { return []string{fmt.Sprintf("%v %s", at, test.ends)} }
			check(ends(start+long), long, short)
			check(ends(start+time.Second+long), short, long)
			if test.good {
				check(nil, 0, short)
				check(nil, short, 0)
			}
		})
	}
	died := traced(t, []string{"died in", "process restarts"}, 10*time.Minute, map[time.Duration][]sim.Event{
		start:                         {sim.CrashAgent{Host: "n1", For: short, After: &none}, sim.Drain{Host: "n1"}},
		start + 1500*time.Millisecond: {sim.CrashAgent{Host: "n1", For: long}}})
	if len(died) != 2 || died[1] != fmt.Sprintf("%v process restarts", start+1500*time.Millisecond+long) {
		t.Errorf("it died at a write, and its crash lasts: %v", died)
	}
}

// A host that returned, and crashed again for good, does not return because the first crash is over.
func TestAFaultThatWasMendedDoesNotEndALaterOne(t *testing.T) {
	got := traced(t, []string{"host "}, 10*time.Minute, map[time.Duration][]sim.Event{
		time.Second:      {sim.CrashHost{Host: "n1", For: time.Minute}},
		10 * time.Second: {sim.Return{Host: "n1"}},
		20 * time.Second: {sim.CrashHost{Host: "n1"}}})
	want := []string{"1s host loses power", "10s host returns", "20s host loses power"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatHappensToAHostThatThereIsNotDoesNothing(t *testing.T) {
	const nope = "nope"
	for _, e := range []sim.Event{sim.CrashAgent{Host: nope}, sim.DropNotifications{Host: nope}, sim.Repeat{Host: nope},
		sim.StaleReads{Host: nope}, sim.DropAnswers{Host: nope, Times: 1}, sim.CrashHypervisor{Host: nope},
		sim.CrashHost{Host: nope}, sim.CrashHost{}, sim.Fence{Host: nope}, sim.Fence{}, sim.Return{Host: nope},
		sim.Skew{Host: nope}, sim.Reboot{Host: nope}, sim.Reboot{}, sim.Drain{Host: nope}, sim.Undrain{Host: nope},
		sim.Close{Host: nope}, sim.Open{Host: nope}, sim.CrashHypervisor{}, sim.SecondAgent{Host: nope},
		sim.EmptyDirectory{Host: nope}, sim.Adopt{Host: nope}, sim.Dead{Host: nope}} {
		t.Run(fmt.Sprintf("%T%+v", e, e), func(t *testing.T) {
			w := grid(t, sim.Config{}, 2, 1, 1)
			w.At(time.Second, e)
			w.Run(10 * time.Minute)
			if got := w.Evacuations(); len(got) > 0 {
				t.Errorf("it was drained: %+v", got)
			}
			if got := w.Copies("default/v1-1"); len(got) != 1 || got[0].Host != "n1" || !got[0].State.Executes() {
				t.Errorf("the VM is %v", got)
			}
			said := traced(t, []string{"there is no host"}, time.Minute, map[time.Duration][]sim.Event{time.Second: {e}})
			if len(said) != 1 {
				t.Errorf("the trace says %v", said)
			}
		})
	}
}
