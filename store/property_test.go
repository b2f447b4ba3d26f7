package store_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/store"
)

// Processes that stop anywhere, die, come back, resign and share names, on clocks that
// are set at will, over a store that does not answer or answers too late: the leaders'
// writes never mix, and when the faults end there is a leader.
func TestOnlyTheNewestLeaderWrites(t *testing.T) {
	var writes, terms, barred int
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		all := drawProcesses(t, w)
		defer func() {
			for _, p := range all {
				p.stop()
			}
		}()
		t.Repeat(map[string]func(*rapid.T){
			"operations": func(t *rapid.T) {
				for range rapid.IntRange(1, 12).Draw(t, "operations") {
					one(t, all).step(drawFate(t))
				}
			},
			"looks": func(t *rapid.T) {
				for range rapid.IntRange(1, 12).Draw(t, "looks") {
					w.now = w.now.Add(rapid.SampledFrom(pauses).Draw(t, "pause"))
					one(t, all).look()
				}
			},
			"a process is overtaken": func(t *rapid.T) {
				p := one(t, all)
				for range rapid.IntRange(0, 8).Draw(t, "operations") {
					p.step(answered)
				}
				p.step(drawFate(t))
				alone(w, one(t, all))
				p.step(answered)
			},
			"a clock is set": func(t *rapid.T) {
				one(t, all).skew = time.Duration(rapid.IntRange(-600, 600).Draw(t, "seconds")) *
					time.Second
			},
			"a process dies":       func(t *rapid.T) { one(t, all).stop() },
			"a process is started": func(t *rapid.T) { one(t, all).start() },
			"a process resigns":    func(t *rapid.T) { one(t, all).leave = true },
			"a write arrives": func(t *rapid.T) {
				if len(w.late) > 0 {
					i := rapid.IntRange(0, len(w.late)-1).Draw(t, "write")
					w.late[i]()
					w.late = append(w.late[:i:i], w.late[i+1:]...)
				}
			},
			"": func(t *rapid.T) {
				if w.broken != nil {
					t.Fatal(w.broken)
				}
			},
		})
		wantALeader(t, w, all)
		writes, terms, barred = writes+w.writes, terms+w.terms, barred+w.barred
	})
	t.Logf("%d writes in %d terms; %d were refused because the term was over", writes, terms,
		barred)
	if !t.Failed() && (writes == 0 || terms == 0 || barred == 0) {
		t.Error("the worlds are too calm: nothing was put to the test")
	}
}

var pauses = []time.Duration{0, time.Second, 5 * time.Second, time.Minute}

func drawProcesses(t *rapid.T, w *world) []*process {
	var all []*process
	for range rapid.IntRange(2, 4).Draw(t, "processes") {
		p := &process{world: w, identity: rapid.SampledFrom([]string{"a", "b", "c"}).
			Draw(t, "identity")}
		p.start()
		all = append(all, p)
	}
	return all
}

func drawFate(t *rapid.T) fate {
	return rapid.SampledFrom([]fate{answered, answered, answered, answered, refused, lost,
		late}).Draw(t, "fate")
}

func one(t *rapid.T, all []*process) *process { return rapid.SampledFrom(all).Draw(t, "who") }

// alone lets one run alone for long enough to take over, which it might not live to see.
func alone(w *world, p *process) {
	for n := 0; n < 60 && !p.leads() && !p.dead; n++ {
		w.now = w.now.Add(5 * time.Second)
		p.look()
	}
}

// wantALeader ends the faults, and wants one leader that writes, at the latest when
// every process has been silent for as long as it takes to be believed.
func wantALeader(t *rapid.T, w *world, all []*process) {
	w.settle(all, 2*time.Minute, func(*process) {})
	before := w.writes
	w.settle(all, time.Minute, func(*process) {})
	var leaders, harmed int
	for _, p := range all {
		if p.leads() {
			leaders++
		}
		_, two := errors.AsType[*store.IdentityError](p.err)
		if two && p.leads() {
			t.Fatalf("%s leads in a name that another has", p.session)
		} else if p.err != nil && !two {
			harmed++
		}
	}
	switch {
	case w.broken != nil:
		t.Fatal(w.broken)
	case leaders != 1 || w.writes == before || harmed > 0:
		t.Fatalf("%d lead, %d writes, %d with an error; stored is %+v", leaders,
			w.writes-before, harmed, w.leader())
	}
}
