package simtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/explore"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// Bounds says how far [Explore] goes, and which faults may happen; given several times it
// explores one after the other. Default: one fault, any and anywhere, in the usual order of steps, up
// to 100,000 states; then every order of steps without faults, up to 10,000.
func Bounds(c ExploreConfig) Option {
	return func(s *settings) { s.bounds = append(s.bounds, c) }
}

// usualBounds are the default bounds.
var usualBounds = []ExploreConfig{
	{Faults: EveryFault, Budget: 1, Odd: 1, States: 100_000},
	{States: 10_000},
}

// Explore plays all that may happen in a small world, and fails the test with the first way on
// which something goes wrong: one of godwit's own invariants does not hold, or a decision is
// none. The scene is a text:
//
//	hosts n1 n2 n3
//	vms web@n1 db@n1,busy
//	script drain n1
//
// Two or three hosts and two VMs are enough for most mistakes, and not too many for all orders.
// [Scenes] yields all such scenes, each to be explored as a test of its own, which says
// how many states it has and, when something goes wrong, in which scene:
//
//	for name, scene := range simtest.Scenes(3, 2) {
//		t.Run(name, func(t *testing.T) { simtest.Explore(t, scene, options...) })
//	}
//
// Invariants that were added with [Everywhere] are checked; the others read a [sim.World], and
// are for [Check]. A VM of a host that is fenced is given to any host with room: that takes an
// [Power] fault, and filters are not asked.
//
// What fails is made short and written as a transcript below testdata/simtest, which from then
// on is played first. [Within] bounds the exploration by the clock on the wall.
func Explore(t testing.TB, scene string, options ...Option) {
	t.Helper()
	s := gather(t, options)
	parsed, err := explore.ParseScene(scene)
	if err != nil {
		t.Errorf("simtest: the scene makes no sense: %v", err)
		return
	}
	if len(s.always)+len(s.atRest)+len(s.promises) > len(s.common) {
		t.Logf("simtest: of the invariants that were added Explore checks those of Everywhere only")
	}
	stage := s.stage()
	parsed.Configure = stage.enter
	if !s.replayWays(t, stage) {
		return
	}
	ctx := context.Background()
	if s.span > 0 {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, s.span)
		defer end()
	}
	bounds := s.bounds
	if bounds == nil {
		bounds = usualBounds
	}
	for _, b := range bounds {
		if !stage.explore(ctx, t, b.on(parsed)) {
			return
		}
	}
}

// explore explores once, and reports whether nothing went wrong.
func (at *stage) explore(ctx context.Context, t testing.TB, b explore.Config) bool {
	t.Helper()
	var found *explore.Result
	var err error
	hung := at.attended(at, func() { found, err = explore.Run(ctx, b) })
	switch {
	case hung != nil:
		t.Errorf("simtest: %s\n%s", hung.Name, hung.Detail)
	case err != nil:
		t.Errorf("simtest: %v", err)
	case found.Violation != nil:
		at.report(t, found)
	default:
		t.Logf("simtest: nothing went wrong: %v", found)
		return true
	}
	return false
}

// enter plugs the decisions into one more world, in place of the one before.
func (at *stage) enter(c *controller.Config, a *agent.Config) explore.Judge {
	at.policyCheck.Reset()
	all := sim.Config{Controller: *c, Agent: *a}
	at.configure(&all, at.policyCheck)
	*c, *a = all.Controller, all.Agent
	return func(w explore.View) (name, detail string) {
		if f := at.policyCheck.Finding(); f != nil {
			return f.Name(), strings.TrimPrefix(f.String(), f.Name()+": ")
		}
		for _, j := range at.common {
			if err := j.of(w); err != nil {
				return j.name, err.Error()
			}
		}
		return "", ""
	}
}

// An Observation is what an invariant may look at in all worlds, those of [Check] and of [Explore]:
// what is stored, and what the hypervisors have. A [sim.World] is one. Nothing that is returned
// may be changed.
type Observation interface {
	VMs() []hypervisor.VMID // that have a record, in order
	VM(hypervisor.VMID) *store.VM
	HostRecord(hypervisor.HostName) *store.Host
	Migrations(hypervisor.VMID) []*store.Migration // of a VM, as stored, oldest first
	Copies(hypervisor.VMID) []fake.Copy            // where a VM has domains
}

// judgement is an invariant that holds everywhere.
type judgement struct {
	name string
	f    func(Observation) error
}

// of asks the invariant. That it panics is a failure of it.
func (j *judgement) of(w Observation) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it panics: %v", r)
		}
	}()
	return j.f(w)
}

// Everywhere adds an invariant that both [Check] and [Explore] check, after everything that
// happens.
func Everywhere(name string, f func(Observation) error) Option {
	return func(s *settings) {
		s.require(name, f == nil)
		s.common = append(s.common, judgement{name, f})
		s.always = append(s.always, invariant{name, func(w *sim.World) error { return f(w) }})
	}
}

// report writes the way that was found as a transcript, and fails the test.
func (s *settings) report(t testing.TB, found *explore.Result) {
	t.Helper()
	v := &found.Violation.Violation
	dir := s.folder(t.Name())
	path := filepath.Join(dir, fileName(v.Invariant)+".txt")
	text := found.Violation.Transcript()
	err := os.MkdirAll(dir, 0o777)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o666)
	}
	if err != nil {
		t.Errorf("simtest: the transcript cannot be written: %v", err)
	}
	way := fmt.Sprintf("the shortest way there, of %d commands,", found.Violation.Commands())
	if found.Violation.Steps() == 0 {
		way = "what usually happens leads there, and"
	}
	t.Errorf("simtest: %v\nafter %d states; %s is in %s:\n\n%s", v, found.States, way, path, text)
}

// replayWays plays the transcripts of a test's explorations, and reports whether nothing went
// wrong.
func (s *settings) replayWays(t testing.TB, at *stage) bool {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(s.folder(t.Name()), "*.txt"))
	slices.Sort(files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil {
			var v *explore.Violation
			hung := s.attended(at, func() { v, err = explore.ReplayWith(string(text), at.enter) })
			switch {
			case hung != nil:
				err = fmt.Errorf("%s\n%s", hung.Name, hung.Detail)
			case v != nil:
				err = fmt.Errorf("%v", v)
			}
		}
		if err != nil {
			t.Errorf("simtest: on the way of %s: %v", file, err)
			return false
		}
	}
	return true
}
