package qmp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/qemu"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// events is everything that may happen.
var events = slices.Concat(precopy, postcopy, ours, harm)

// promises are what holds in every world, whatever happens.
var promises = []struct {
	name   string
	broken func(*world) bool
}{
	{"the VM runs twice", func(w *world) bool { return w.source.runs() && w.target.runs() }},
	{"the source runs and the target is free to", func(w *world) bool {
		t := &w.target
		free := t.stage.MayHaveRun() || t.stopped && !t.hold && !t.refused &&
			t.stage == qmp.Listening && t.run != qemu.InMigrate
		return w.source.runs() && t.alive && t.known && free
	}},
	{"the VM is lost and no host is dead", func(w *world) bool {
		dead := w.killedSource || w.killedTarget || w.ended || w.abandoned
		return !w.holds() && !dead
	}},
	{"the VM is lost with a target that never ran", func(w *world) bool {
		excused := w.killedSource || w.ended || w.mayHaveRun
		return !w.holds() && !excused
	}},
	{"the VM is lost with a source that was not needed any more", func(w *world) bool {
		excused := w.killedTarget || w.ended || w.abandoned
		return !w.holds() && w.target.stage.MayHaveRun() && w.shut && !excused
	}},
	{"a host says that the VM has come there, and it cannot have", func(w *world) bool {
		return w.target.came() && !w.target.stage.MayHaveRun()
	}},
	{"a target is let run before it has what it needs", func(w *world) bool { return w.early }},
	{"a held target starts unasked", func(w *world) bool {
		return w.target.hold && w.target.stage.MayHaveRun() && !w.started
	}},
	{"a job that was begun is said never to have been", func(w *world) bool {
		return w.source.known && w.source.says() == hypervisor.JobNone
	}},
	{"the source says that it failed, and the target has run", func(w *world) bool {
		s := w.source.says()
		return w.source.known && w.ranAtTarget && w.source.alive && !w.source.ending &&
			!w.ended && (s == hypervisor.JobFailed || s == hypervisor.JobCancelled)
	}},
}

// glance is a look at one moment.
func (h *host) glance() qmp.Look {
	l := qmp.Look{Alive: h.alive, Run: h.run}
	if h.stage.Live() {
		l.Migration = h.mig
	}
	return l
}

// says is what is said of the job to who asks now.
func (h *host) says() hypervisor.JobStatus {
	return qmp.Told(h.record(), h.job(), h.glance())
}

// check returns the first promise that is broken, or "".
func (w *world) check() string {
	for _, p := range promises {
		if p.broken(w) {
			return p.name
		}
	}
	return ""
}

// happen lets an event take place.
func (w world) happen(e event) world {
	late := w.target.stage.MayHaveRun()
	e.then(&w)
	ready := w.target.run != qemu.InMigrate && (w.packed || w.target.mig == qemu.Completed)
	w.early = w.early || !late && !ready && w.target.stage.MayHaveRun()
	w.ranAtTarget = w.ranAtTarget || w.target.runs()
	w.mayHaveRun = w.mayHaveRun || w.target.stage.MayHaveRun()
	w.ended = w.ended || w.source.doing == hypervisor.Stopping ||
		w.source.doing == hypervisor.Rebooting && w.source.ending
	return w
}

// among returns what can happen if only some kinds of faults exist.
func among(kinds string) []event {
	return slices.DeleteFunc(slices.Clone(events), func(e event) bool {
		return e.kind != "" && !slices.Contains(strings.Split(kinds, ","), e.kind)
	})
}

// TestEveryFutureOf explores every order in which things can happen to a
// migration, for some kinds of faults at a time.
func TestEveryFutureOf(t *testing.T) {
	testutil.Unraced(t)
	for _, row := range []struct {
		name  string
		plan  plan
		kinds string
	}{
		{"pre-copy that fails and is cancelled", plan{}, "failure,cancel,discard"},
		{"pre-copy with processes of ours that die", plan{}, "failure,crash"},
		{"pre-copy with QEMUs that die", plan{}, "kill,discard"},
		{"pre-copy with lost words", plan{}, "failure,loss,kill"},
		{"pre-copy that is held", plan{holdSwitchOver: true}, "failure,cancel"},
		{"pre-copy to a held target", plan{hold: true}, "failure,cancel,discard"},
		{"a paused VM that is unpaused on the way", plan{paused: true}, "pause,failure"},
		{"a guest that is paused to let it end", plan{}, "pause guest,pause"},
		{"a VM that is stopped or rebooted on the way", plan{}, "stop,power off"},
		{"post-copy that fails", plan{}, "post-copy,failure"},
		{"post-copy with a link that breaks", plan{}, "post-copy,link"},
		{"post-copy with QEMUs that die", plan{}, "post-copy,kill"},
		{"post-copy with processes of ours that die", plan{}, "post-copy,crash"},
		{"post-copy of a VM that is stopped", plan{}, "post-copy,stop"},
	} {
		t.Run(row.name, func(t *testing.T) {
			testutil.Sample(t, 4)
			explore(t, begin(row.plan), among(row.kinds), (*world).check)
		})
	}
}

// A transfer that is held before its switch-over comes to its end whenever it is cancelled.
func TestAHeldTransferThatIsCancelledEnds(t *testing.T) {
	testutil.Unraced(t)
	ends := func(w *world) string {
		if err := w.end(); err != nil {
			return err.Error()
		}
		return ""
	}
	explore(t, begin(plan{holdSwitchOver: true}), among("cancel,crash"), ends)
}

// most bounds how many worlds one exploration may visit.
const most = 400_000

// explore looks at everything that can become of a world. Check says what is wrong with one.
func explore(t *testing.T, from world, may []event, check func(*world) string) {
	t.Helper()
	n, story := backendtest.Explore(from, may, most, func(w *world, _ int) string { return check(w) })
	if story != "" {
		t.Fatal(story)
	}
	t.Logf("%d worlds", n)
}

// TestAnyFuture walks through worlds in which everything may happen, and then
// lets them come to an end.
func TestAnyFuture(t *testing.T) {
	kinds := []string{"failure", "cancel", "discard", "crash", "kill", "loss", "pause",
		"pause guest", "stop", "power off", "post-copy", "link"}
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOfDistinct(rapid.SampledFrom(kinds), rapid.ID).Draw(t, "faults")
		may := among(strings.Join(some, ","))
		w := begin(plan{rapid.Bool().Draw(t, "paused"), rapid.Bool().Draw(t, "hold"),
			rapid.Bool().Draw(t, "hold switch-over")})
		backendtest.Walk(t, w, may, rapid.IntRange(1, 120).Draw(t, "length"), (*world).check,
			world.end)
	})
}

// end lets a world without more harm come to rest, with a cluster that cares, and
// says what is wrong with how it ends.
func (w world) end() error {
	can := func(name string) bool {
		i := slices.IndexFunc(events, func(e event) bool { return e.name == name })
		ok := i >= 0 && events[i].when(&w)
		if ok {
			w = w.happen(events[i])
		}
		return ok
	}
	w.link, w.source.up, w.target.up = true, true, true
	for range 400 {
		before := w
		for _, e := range events {
			for w.source.todo[0] != none {
				w.step(&w.source)
			}
			for w.target.todo[0] != none {
				w.step(&w.target)
			}
			if e.kind == "" && e.when(&w) {
				w = w.happen(e)
			}
		}
		if broken := w.check(); broken != "" {
			return fmt.Errorf("at the end: %s", broken)
		}
		if w == before && !w.care(can) {
			return w.verdict()
		}
	}
	return fmt.Errorf("it never comes to rest: %+v", w)
}

// care does what a cluster does about a migration that has come to rest.
func (w *world) care(can func(string) bool) bool {
	s, t := &w.source, &w.target
	unresolved := s.unresolved || !s.alive || s.stage != qmp.Sending
	stands := s.alive && (s.run == qemu.Paused || s.run == qemu.PostMigrate) && !s.postCopied
	switch {
	case stands && s.mig != qemu.Completed && can("the operator unpauses the VM again"),
		s.doing != hypervisor.Absent && can("patience ends"),
		(unresolved || t.refused) && can("the cluster discards the target"),
		t.stage.MayHaveRun() && t.alive && s.known && s.stage == qmp.Sending && s.alive &&
			s.mig == qemu.Completed && can("the cluster releases the source"),
		can("the cluster gives up the source"):
		return true
	}
	return false
}

// verdict says what is wrong with a world in which nothing happens any more.
func (w *world) verdict() error {
	s, t := &w.source, &w.target
	free := s.run == qemu.Running || s.run == qemu.Paused || s.run == qemu.PostMigrate
	here := s.alive && s.known && free && !(s.stage == qmp.Sending && s.mig == qemu.Completed)
	there := t.alive && t.stage.MayHaveRun()
	dead := w.killedSource || w.killedTarget || w.ended || w.abandoned
	switch {
	case here && !there && s.run != qemu.Running && !s.paused && !s.guestPaused && !s.postCopied &&
		!w.ended:
		return fmt.Errorf("the guest was not paused, and it stands")
	case here || there || dead:
		return nil
	case s.alive && s.postCopied: // rests until its outcome is resolved
		return nil
	}
	return fmt.Errorf("the VM is nowhere: %+v", *w)
}
