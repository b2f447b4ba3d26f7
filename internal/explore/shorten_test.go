package explore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// Whichever steps are written as the usual ones, they lead to where they led.
func TestStretchesLeadToWhereTheStepsLed(t *testing.T) {
	shorter := 0
	for seed := range uint64(10) {
		w := played(t, 3)
		var list []step
		walk(w, seed, 100, func(s step) { list = append(list, s) })
		way := stretches(w.Scene, list)
		shorter += len(list) - len(way)
		v, n := newModel(w.Scene, len(way)), 0
		for _, s := range way {
			for next := range s.steps(v) {
				v.apply(next)
				n++
			}
		}
		v.Faults = w.Faults
		a, b := newKeeper(w), newKeeper(v)
		same := fmt.Sprint(v.Broken) == fmt.Sprint(w.Broken)
		if a.print() != b.print() || n != len(list) || !same {
			t.Fatalf("seed %d: %d steps, and %d as %d stretches, lead elsewhere", seed,
				len(list), n, len(way))
		}
	}
	if shorter < 250 {
		t.Errorf("only %d lines less", shorter)
	}
}

// unwanted says that a move of web is wrong that ends while a link is cut.
func unwanted(*controller.Config, *agent.Config) Judge {
	return func(w View) (name, detail string) {
		if web := w.VM("web"); web.Host != "n1" && w.(*World).Cut != 0 {
			return "never-there", "web is on " + string(web.Host)
		}
		return "", ""
	}
}

// A violation is reported with a transcript that is as short as can be, and that leads to it
// again.
func TestAViolationHasAShortTranscript(t *testing.T) {
	testutil.Unraced(t)
	for seed := range uint64(3) {
		set, err := ParseScene(drain)
		if err != nil {
			t.Fatal(err)
		}
		set.Configure = unwanted
		r, err := Deep(t.Context(), Config{Scene: set, Faults: AllFaults &^ Power, Budget: 4,
			Seed: seed + 1, Workers: 1, Runs: 200, Calm: 12})
		if err != nil || r.Violation == nil {
			t.Fatalf("%v, %v", r, err)
		}
		c := r.Violation
		text := c.Transcript()
		if n := lines(text); n != c.Commands() || n > 8 {
			t.Errorf("%d commands, it says %d:\n%s", n, c.Commands(), text)
		}
		if err := again(text); err != nil {
			t.Errorf("%v:\n%s", err, text)
		}
		at := strings.Index(text, "\n\n") + 2
		for i := range c.way {
			fewer := text[:at]
			for _, s := range slices.Delete(slices.Clone(c.way), i, i+1) {
				fewer += s.write(set) + "\n"
			}
			if again(fewer) == nil {
				t.Errorf("%q is not needed:\n%s", c.way[i].write(set), text)
			}
		}
	}
}

// lines counts those that are no comments.
func lines(text string) (n int) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			n++
		}
	}
	return n
}

// again plays a transcript to the same violation.
func again(text string) error {
	v, err := ReplayWith(text, unwanted)
	if err == nil && (v == nil || v.Invariant != "never-there") {
		err = fmt.Errorf("it leads to %v", v)
	}
	return err
}

// What is left out, usual, or less is what is not needed.
func TestWhatIsNotNeededIsLeftOut(t *testing.T) {
	look, kill := step{Op: Look, A: 1}, step{Op: Kill, A: 1}
	usual := func(n int) stretch { return stretch{usual: n} }
	s := shortener{way: []stretch{usual(40), {step: look}, usual(2), {step: kill}, {step: look},
		usual(9)}}
	s.good = func(way []stretch) bool { // eleven steps, then a kill
		before := 0
		for _, s := range way {
			if s.step == kill && before >= 11 {
				return true
			}
			before += max(1, s.usual)
		}
		return false
	}
	if s.shorten(); !slices.Equal(s.way, []stretch{usual(11), {step: kill}}) {
		t.Errorf("left are %v", s.way)
	}
}

// Every stretch is read as it is written.
func TestStretchesAreReadAsTheyAreWritten(t *testing.T) {
	set, err := parse(drain)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []stretch{{usual: 2}, {usual: mostUsual}, {step: step{Op: Time}}} {
		if got, err := readStretch(set, s.write(set)); err != nil || got != s {
			t.Errorf("%q is read as %v, %v", s.write(set), got, err)
		}
	}
}
