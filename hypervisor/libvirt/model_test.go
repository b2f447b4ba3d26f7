package libvirt_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// events is everything that may happen.
var events = slices.Concat(migration, harm, ours)

// promises are what holds in every world, whatever happens.
var promises = []struct {
	name   string
	broken func(*lifeWorld) bool
}{
	{"the VM runs twice, and it is not libvirt alone that has lost an answer",
		func(w *lifeWorld) bool {
			return w.s.executes() && w.t.executes() && (w.hold || !w.lost || w.byUs)
		}},
	{"the VM runs twice, and the source is not paused next", func(w *lifeWorld) bool {
		h := &w.ours[0]
		over := h.up && w.s.up && h.todo[0] == none && !h.early && h.call != libvirt.Calling &&
			w.phase == idle
		return w.s.executes() && w.t.executes() && over &&
			libvirt.Due(h.record(), h.job(), w.glance(0), now) != libvirt.MarkUnresolved
	}},
	{"a held target runs, and was not told to", func(w *lifeWorld) bool {
		return w.hold && w.ran && !w.activated
	}},
	{"a held target was let run, and its source runs", func(w *lifeWorld) bool {
		return w.activated && w.s.executes()
	}},
	{"the source says that it kept the VM, and the target has, or had it",
		func(w *lifeWorld) bool { return w.ours[0].stage == libvirt.Kept && w.had }},
	{"the source says that the VM moved, and the target never had it", func(w *lifeWorld) bool {
		return w.ours[0].stage == libvirt.Moved && !w.had
	}},
	{"the target says that the VM has come, and it has not", func(w *lifeWorld) bool {
		return w.ours[1].stage == libvirt.Arrived && !w.had && !w.remains
	}},
	{"the target's host vouches for a copy that came", func(w *lifeWorld) bool {
		return w.vouch && w.had
	}},
	{"nothing is left of the VM", func(w *lifeWorld) bool {
		gone := w.s.run == libvirt.Gone && w.t.run == libvirt.Gone
		return gone && !w.fenced && !(w.transient && w.harmed)
	}},
	{"a broken source runs, and is not about to be paused", func(w *lifeWorld) bool {
		h := &w.ours[0]
		idle := h.up && w.s.up && h.todo[0] == none
		return idle && h.stage == libvirt.Stranded && w.s.executes() && !w.busy(0)
	}},
}

// check returns the first promise that is broken, or "".
func (w *lifeWorld) check() string {
	for _, p := range promises {
		if p.broken(w) {
			return p.name
		}
	}
	return ""
}

// happen lets an event take place.
func (w lifeWorld) happen(e event) lifeWorld {
	e.then(&w)
	return w
}

// among returns what can happen if only some kinds of faults exist.
func among(kinds string) []event {
	return slices.DeleteFunc(slices.Clone(events), func(e event) bool {
		return e.kind != "" && !slices.Contains(strings.Split(kinds, ","), e.kind)
	})
}

// TestEveryFuture explores every order in which things can happen to a migration, for
// some kinds of faults at a time.
func TestEveryFuture(t *testing.T) {
	testutil.Unraced(t)
	total := 0
	for _, row := range []struct {
		name  string
		plan  plan
		kinds string
	}{
		{"a live one that fails and is cancelled", plan{}, "failure,cancel,discard"},
		{"a live one with processes of ours that die", plan{}, "crash,failure,start"},
		{"a live one with libvirtds that die", plan{}, "libvirtd"},
		{"a live one with answers that are lost", plan{}, "lost,break,cancel,discard"},
		{"a live one with answers that are lost and processes of ours that die", plan{},
			"lost,crash,discard"},
		{"a live one with QEMUs that die", plan{}, "kill,discard,start"},
		{"a live one with a QEMU and a process of ours that die", plan{}, "kill,crash"},
		{"a live one with a target that is fenced", plan{}, "fence,lost,crash,start"},
		{"a second one", plan{again: true}, "failure,lost,cancel,discard"},
		{"a second one with processes of ours that die", plan{again: true}, "lost,crash"},
		{"a guest that is paused to let it end", plan{}, "pause guest,lost,cancel"},
		{"a guest that is paused, and processes of ours that die", plan{},
			"pause guest,lost,crash"},
		{"a held one", plan{hold: true}, "failure,lost,break,cancel,discard"},
		{"a held one with processes of ours that die", plan{hold: true}, "lost,crash,start"},
		{"a held one with libvirtds that die", plan{hold: true}, "libvirtd"},
		{"one of a VM that rests in memory", plan{resting: true}, "lost,crash,cancel,discard"},
		{"one of a VM that is shut off", plan{cold: true}, "lost,crash,cancel,discard,start"},
		{"one of a VM that is shut off, with libvirtds that die", plan{cold: true}, "libvirtd"},
		{"one of a VM that libvirt does not keep", plan{transient: true}, "lost,crash,discard"},
	} {
		t.Run(row.name, func(t *testing.T) {
			n, story := explore(begin(row.plan), among(row.kinds))
			if story != "" {
				t.Fatal(story)
			}
			t.Logf("%d worlds", n)
			total += n
		})
	}
	t.Logf("%d worlds in all", total)
	if total < 100_000 && !t.Failed() {
		t.Errorf("only %d worlds", total)
	}
}

// TestWhatIsNotSafe: what our processes and the cluster must not do, because a promise
// would be broken.
func TestWhatIsNotSafe(t *testing.T) {
	for _, row := range []struct {
		name  string
		plan  plan
		kinds string
	}{
		{"look at the domain first, and only then at the call that moves it",
			plan{hasty: true}, "lost"},
		{"take a source that hands over for one that has stopped for good",
			plan{hold: true, credulous: true}, "lost"},
		{"end a target because its source runs again", plan{rash: true}, "lost,discard"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, story := explore(begin(row.plan), among(row.kinds))
			if story == "" {
				t.Fatal("nothing is wrong with it: it need not be avoided")
			}
			t.Log(story)
		})
	}
}

// most bounds how many worlds one exploration may visit.
const most = 1_000_000

// explore visits every world that can come of one, and returns how many there are and
// how the first came about in which a promise is broken, or which ends badly.
func explore(from lifeWorld, may []event) (int, string) {
	return backendtest.Explore(from, may, most, func(w *lifeWorld, visited int) string {
		broken := w.check()
		if broken == "" && visited%sample == 0 {
			if bad := w.end(); bad != nil {
				return bad.Error()
			}
		}
		return broken
	})
}

// sample is of how many worlds one is let come to its end.
const sample = 11

// TestAnyFuture walks through worlds in which much may happen, and then lets them come
// to an end.
func TestAnyFuture(t *testing.T) {
	kinds := []string{"failure", "cancel", "discard", "crash", "break", "libvirtd", "lost",
		"pause guest", "fence", "start"}
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOfDistinct(rapid.SampledFrom(kinds), rapid.ID).Draw(t, "faults")
		may := among(strings.Join(some, ","))
		flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
		w := begin(plan{hold: flag("hold"), resting: flag("resting"), transient: flag("transient")})
		backendtest.Walk(t, w, may, rapid.IntRange(20, 120).Draw(t, "length"), (*lifeWorld).check,
			lifeWorld.end)
	})
}

// end lets a world without more harm come to rest, with a cluster that cares, and
// says what is wrong with how it ends.
func (w lifeWorld) end() error {
	for range 60 {
		before := w
		for i := range events {
			e := &events[i]
			for n := 0; e.kind == "" && e.when(&w) && n < 8; n++ {
				w = w.happen(*e)
			}
		}
		if broken := w.check(); broken != "" {
			return fmt.Errorf("at the end: %s", broken)
		}
		if w == before && !w.care() {
			return w.verdict()
		}
	}
	return fmt.Errorf("it never comes to rest: %v", w)
}

// String is what matters of a world.
func (w lifeWorld) String() string {
	text := fmt.Sprintf("%+v\nlibvirt: phase %d coming %d\nlost %v had %v ran %v vouch %v\n",
		w.plan, w.phase, w.coming, w.lost, w.had, w.ran, w.vouch)
	for i, h := range w.ours {
		text += fmt.Sprintf("%v, due %v: %+v, early %v, call %d, doing %v\n%+v\n", w.says(i),
			libvirt.Due(h.record(), h.job(), w.glance(i), now), *w.side(i), h.early, h.call, h.todo,
			h.mind)
	}
	return text
}

// care does what a cluster does about a migration that has come to rest: it discards
// the target, and, where nothing else helps, asks [Resolve], which sees both hosts.
func (w *lifeWorld) care() bool {
	s, t := &w.ours[0], &w.ours[1]
	before := *w
	ask := func(i int, r request) bool {
		h := &w.ours[i]
		h.asked = r
		h.plan(w.looks(i)...)
		for h.todo[0] != none {
			w.step(i)
		}
		return *w != before
	}
	over := s.stage != libvirt.Sending
	waits := !w.fenced && t.stage != libvirt.Arrived && !w.vouch && !w.had
	switch {
	case over && waits && ask(1, toDiscard):
	case s.stage != libvirt.Stranded:
		return false
	case w.hold && w.says(1) == hypervisor.Received && w.s.alive(): // the operator's word
		return ask(0, toResume)
	case w.hold && w.says(1) == hypervisor.Received:
		return ask(1, toActivate)
	case (w.t.run == libvirt.ShutoffFailed || w.remains) && ask(0, toResume): // the same
	default:
		return false
	}
	return true
}

// verdict says what is wrong with a world in which nothing happens any more.
func (w *lifeWorld) verdict() error {
	s, t := &w.ours[0], &w.ours[1]
	here := s.known && !s.unresolved && w.s.run != libvirt.Gone && (s.stage == libvirt.Kept ||
		s.stage == libvirt.Resumed || s.stage == libvirt.Abandoned)
	there := t.known && t.stage == libvirt.Arrived && w.t.run != libvirt.Gone && w.had
	excused := w.harmed || w.fenced || w.transient && w.s.run == libvirt.Gone || s.guestPaused
	switch {
	case here && there && !w.harmed:
		return fmt.Errorf("the VM is at both: %v", *w)
	case !here && !there && !excused:
		return fmt.Errorf("the VM is nowhere: %v", *w)
	case !w.cold && !w.resting && !w.hold && !excused && !w.s.executes() && !w.t.executes():
		return fmt.Errorf("the guest was not paused, and it stands: %v", *w)
	case w.s.executes() && w.t.executes():
		return fmt.Errorf("the VM runs twice: %v", *w)
	}
	return nil
}
