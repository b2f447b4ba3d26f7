package controller_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// A planWorld is a store with one plan, in which migrations end as the test wants.
type planWorld struct {
	Plan   store.Plan
	Hosts  map[vmid]name // where VMs are; absent: they do not exist
	Moving map[migration.ID]*store.Migration
	Now    time.Time
	// Group are VMs that are to be on one host.
	Group []vmid
	order []migration.ID // as they were requested
}

// follows reports whether a VM is to be with another that is on a host, or that moves there.
func (w *planWorld) follows(vm vmid, to name) bool {
	return slices.Contains(w.Group, vm) && slices.ContainsFunc(w.Group, func(other vmid) bool {
		if other == vm {
			return false
		}
		for _, m := range w.Moving {
			if m.Spec.VM == other && m.State.Phase == migration.Running && m.State.Target == to {
				return true
			}
		}
		return w.Hosts[other] == to
	})
}

func (w *planWorld) see(move int) controller.MoveObservation {
	m := &w.Plan.Moves[move]
	host, known := w.Hosts[m.VM]
	s := controller.MoveObservation{Known: known, Host: host, Follows: w.follows(m.VM, m.Target)}
	own := w.Plan.Migration(move)
	for id, other := range w.Moving {
		switch {
		case other.Spec.VM != m.VM:
		case id == own && m.State != store.MoveWaits:
			s.Own = other
		case !other.State.Phase.Final():
			s.Other = id
		}
	}
	return s
}

// look decides once, and does what follows as far as a crash lets it: after so many writings.
func (w *planWorld) look(writings int) error {
	before := w.Plan
	d := controller.DecidePlan(&w.Plan, w.see, w.Now)
	if err := sensible(w, &before, &d); err != nil {
		return err
	}
	for _, write := range w.writings(&d) {
		if writings--; writings < 0 {
			return nil
		}
		write()
	}
	return nil
}

func (w *planWorld) writings(d *controller.PlanStep) (all []func()) {
	if d.Changed {
		all = append(all, func() { w.Plan = d.Plan })
	}
	for _, move := range d.Withdraw {
		all = append(all, func() {
			next := *w.Moving[w.Plan.Migration(move)]
			next.Cancel = true
			w.Moving[next.Spec.ID] = &next
		})
	}
	for _, move := range d.Ask {
		all = append(all, func() {
			m := &w.Plan.Moves[move]
			id := w.Plan.Migration(move)
			r := &store.Migration{Spec: migration.Spec{ID: id, VM: m.VM}}
			if !m.Late {
				r.Spec.Target = m.Target
			}
			w.Moving[id] = r
			w.order = append(w.order, id)
		})
	}
	return all
}

// sensible returns what is wrong with a decision, whatever happened before.
func sensible(w *planWorld, before *store.Plan, d *controller.PlanStep) error {
	open := map[vmid]int{}
	for _, m := range w.Moving {
		if !m.State.Phase.Final() {
			open[m.Spec.VM]++
		}
	}
	for _, move := range d.Ask {
		m := &d.Plan.Moves[move]
		if open[m.VM]++; open[m.VM] > 1 {
			return fmt.Errorf("%s gets a second migration", m.VM)
		}
		switch id := d.Plan.Migration(move); {
		case w.Moving[id] != nil:
			return fmt.Errorf("%s is requested twice", id)
		case m.State != store.MoveAsked:
			return fmt.Errorf("%s is requested, and not in the plan", id)
		case before.Wish != store.RunPlan && !w.follows(m.VM, m.Target):
			return fmt.Errorf("%s is requested although the plan is not to run", id)
		case w.Hosts[m.VM] == "" || w.Hosts[m.VM] == m.Target && !m.Late:
			return fmt.Errorf("%s is requested, and %s is on %q", id, m.VM, w.Hosts[m.VM])
		case m.Late && d.Plan.Strict:
			return fmt.Errorf("%s is late in a strict plan", id)
		case m.Late && !slices.Contains(d.Plan.Hosts, w.Hosts[m.VM]):
			return fmt.Errorf("%s is late, and need not leave %s", id, w.Hosts[m.VM])
		}
		for _, other := range d.Plan.Moves {
			early := other.Wave < m.Wave || m.Late && !other.Late
			if early && !other.State.Settled() && !other.Late {
				return fmt.Errorf("%s begins before %+v is settled", m.VM, other)
			}
		}
	}
	for i := range d.Plan.Moves {
		was, is := before.Moves[i].State, d.Plan.Moves[i].State
		if was.Settled() && is != was {
			return fmt.Errorf("move %d goes from %s to %s", i, was, is)
		}
		if a, b := before.Moves[i].Asked, d.Plan.Moves[i].Asked; was == store.MoveAsked && is == was && a != b && w.Moving[before.Migration(i)] == nil {
			return fmt.Errorf("move %d was asked for %d times, and then %d times", i, a, b)
		}
		if is == store.MoveSkipped && d.Plan.Moves[i].Because == "" {
			return fmt.Errorf("move %d is skipped without a reason", i)
		}
	}
	return nil
}

// happen are what may happen to a world besides looks, as far as it may: each returns a changed copy.
func (w *planWorld) happen() map[string]func(*planWorld) {
	all := map[string]func(*planWorld){
		"paused":   func(w *planWorld) { w.Plan.Wish = store.PausePlan },
		"resumed":  func(w *planWorld) { w.Plan.Wish = store.RunPlan },
		"aborted":  func(w *planWorld) { w.Plan.Wish = store.AbortPlan },
		"a minute": func(w *planWorld) { w.Now = w.Now.Add(time.Minute) },
	}
	if w.Plan.Wish == store.AbortPlan {
		delete(all, "resumed")
		delete(all, "paused")
	}
	for id, m := range w.Moving {
		end := func(phase migration.Phase, because string) func(*planWorld) {
			return func(w *planWorld) {
				next := *w.Moving[id]
				next.State = migration.State{Phase: phase, Because: because, Target: next.Spec.Target,
					Entered: w.Now}
				if phase == migration.Succeeded {
					if next.State.Target == "" {
						next.State.Target = "elsewhere"
					}
					w.Hosts[next.Spec.VM] = next.State.Target
				}
				w.Moving[id] = &next
			}
		}
		switch {
		case m.State.Phase.Final():
		case m.State.Phase == migration.Unset:
			if !m.Cancel {
				all[string(id)+" begins"] = end(migration.Running, "")
				all[string(id)+" is refused"] = end(migration.Failed, "conflict")
			} else {
				all[string(id)+" is cancelled"] = end(migration.Failed, "aborted")
			}
		default:
			all[string(id)+" succeeds"] = end(migration.Succeeded, "")
			all[string(id)+" fails"] = end(migration.Failed, "timeout")
		}
	}
	return all
}

func (w *planWorld) clone() *planWorld {
	c := *w
	c.Plan.Moves = slices.Clone(w.Plan.Moves)
	c.Hosts, c.Moving = map[vmid]name{}, map[migration.ID]*store.Migration{}
	for k, v := range w.Hosts {
		c.Hosts[k] = v
	}
	for k, v := range w.Moving {
		c.Moving[k] = v
	}
	c.order = slices.Clone(w.order)
	return &c
}

func newPlanWorld(p store.Plan) *planWorld {
	p.Created = epoch
	w := &planWorld{Plan: p, Hosts: map[vmid]name{}, Moving: map[migration.ID]*store.Migration{},
		Now: epoch}
	for _, m := range slices.Backward(p.Moves) { // the first move of a VM says where it is
		w.Hosts[m.VM] = m.Source
	}
	return w
}

func aPlan(t *rapid.T) store.Plan {
	p := store.Plan{Name: "p", Hosts: []name{"n1"}, Strict: rapid.Bool().Draw(t, "strict")}
	at, wave := map[vmid]name{}, 0
	for range rapid.IntRange(0, 5).Draw(t, "moves") {
		vm := rapid.SampledFrom([]vmid{"a", "b", "c"}).Draw(t, "VM")
		if at[vm] == "" {
			at[vm] = rapid.SampledFrom([]name{"n1", "n1", "n2"}).Draw(t, "source")
		} else {
			wave++ // no VM moves twice in a wave
		}
		target := rapid.SampledFrom([]name{"n2", "n3", "n4"}).Draw(t, "target")
		if target == at[vm] {
			target = "n5"
		}
		p.Moves = append(p.Moves, store.PlannedMove{VM: vm, Source: at[vm], Target: target, Wave: wave})
		at[vm] = target
		wave += rapid.IntRange(0, 1).Draw(t, "next wave")
	}
	for i := 1; i < len(p.Moves); i++ { // waves are counted without gaps
		p.Moves[i].Wave = min(p.Moves[i].Wave, p.Moves[i-1].Wave+1)
	}
	if len(p.Moves) > 0 {
		p.Moves[0].Wave = 0
	}
	return p
}

func keysOf(all map[string]func(*planWorld)) (keys []string) {
	for k := range all {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Whatever happens, and wherever the controller is killed, no decision breaks a rule; and when nothing
// happens any more, the plan ends.
func TestAPlanIsCarriedOutWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newPlanWorld(aPlan(t))
		if rapid.Bool().Draw(t, "a group") {
			w.Group = []vmid{"a", "b"}
		}
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			what := append(keysOf(w.happen()), "a look", "a look", "a look", "a crash", "a VM goes")
			switch do := rapid.SampledFrom(what).Draw(t, "what"); do {
			case "a look", "a crash":
				writings := 1 << 20
				if do == "a crash" {
					writings = rapid.IntRange(0, 3).Draw(t, "writings")
				}
				if err := w.look(writings); err != nil {
					t.Fatal(err)
				}
			case "a VM goes":
				vm := rapid.SampledFrom([]vmid{"a", "b", "c"}).Draw(t, "which")
				if _, is := w.Hosts[vm]; is {
					w.Hosts[vm] = "n9"
				}
			default:
				w.happen()[do](w)
			}
		}
		if w.Plan.Wish == store.PausePlan {
			w.Plan.Wish = store.RunPlan
		}
		calm(t, w)
		if w.Plan.Ended.IsZero() {
			t.Fatalf("the plan does not end: %+v", w.Plan)
		}
	})
}

// calm lets every migration succeed until nothing changes any more.
func calm(t interface{ Fatal(...any) }, w *planWorld) {
	for range 100 {
		if err := w.look(1 << 20); err != nil {
			t.Fatal(err)
		}
		w.Now = w.Now.Add(10 * time.Minute)
		for id, m := range w.Moving {
			for _, do := range []string{" begins", " succeeds", " is cancelled"} {
				if happens := w.happen()[string(id)+do]; happens != nil && !m.State.Phase.Final() {
					happens(w)
				}
			}
		}
	}
}

// A plan that nothing disturbs is carried out exactly: in its order, wave after wave.
func TestAnUndisturbedPlanIsCarriedOutExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newPlanWorld(aPlan(t))
		want := map[vmid]name{}
		var order []migration.ID
		for i, m := range w.Plan.Moves {
			want[m.VM] = m.Target
			w.Plan.Moves[i].Asked = 1
			order = append(order, w.Plan.Migration(i))
			w.Plan.Moves[i].Asked = 0
		}
		calm(t, w)
		for vm, host := range want {
			if w.Hosts[vm] != host {
				t.Fatalf("%s is on %s, and not on %s", vm, w.Hosts[vm], host)
			}
		}
		if !slices.Equal(order, w.order) {
			t.Fatalf("requested %v, and not %v", w.order, order)
		}
	})
}

// A pause, or an abortion, lets the rest of a group follow what has left, and takes back the group of
// which nothing has left.
func TestAGroupThatHasBegunToLeaveIsFollowed(t *testing.T) {
	for _, wish := range []store.PlanWish{store.PausePlan, store.AbortPlan} {
		for _, begun := range []bool{false, true} {
			w := newPlanWorld(store.Plan{Name: "p", Hosts: []name{"n1"}, Moves: []store.PlannedMove{
				{VM: "a", Source: "n1", Target: "n2"}, {VM: "b", Source: "n1", Target: "n2"}}})
			w.Group = []vmid{"a", "b"}
			if err := w.look(1 << 20); err != nil {
				t.Fatal(err)
			}
			if begun {
				w.happen()[string(w.order[0])+" begins"](w)
			}
			w.Plan.Wish = wish
			calm(t, w)
			want := map[bool]name{true: "n2", false: "n1"}[begun]
			if w.Hosts["a"] != want || w.Hosts["b"] != want {
				t.Errorf("%s, begun %v: the group is on %s and %s", wish, begun, w.Hosts["a"], w.Hosts["b"])
			}
		}
	}
}

// Every state that two moves can reach in some steps is looked at: with every crash, every end of a
// migration, and every wish.
func TestEveryCourseOfASmallPlan(t *testing.T) {
	testutil.Unraced(t)
	seen, depth := map[string]bool{}, 9
	for _, strict := range []bool{false, true} {
		for _, second := range []int{0, 1} {
			first := newPlanWorld(store.Plan{Name: "p", Strict: strict, Hosts: []name{"n1"},
				Moves: []store.PlannedMove{{VM: "a", Source: "n1", Target: "n2"},
					{VM: "b", Source: "n1", Target: "n3", Wave: second}}})
			level := []*planWorld{first}
			for range depth {
				var next []*planWorld
				for _, w := range level {
					next = append(next, after(t, w, seen)...)
				}
				level = next
			}
		}
	}
	if len(seen) < 5000 {
		t.Errorf("only %d states were looked at", len(seen))
	}
}

// after returns what a world becomes in one step, without what was seen already.
func after(t *testing.T, w *planWorld, seen map[string]bool) (all []*planWorld) {
	t.Helper()
	add := func(next *planWorld) {
		text, err := json.Marshal(next)
		if err != nil {
			t.Fatal(err)
		}
		if !seen[string(text)] {
			seen[string(text)] = true
			all = append(all, next)
		}
	}
	for _, do := range keysOf(w.happen()) {
		if do == "a minute" && slices.ContainsFunc(w.Plan.Moves, func(m store.PlannedMove) bool {
			return m.Again.After(w.Now)
		}) || do != "a minute" {
			next := w.clone()
			next.happen()[do](next)
			add(next)
		}
	}
	for writings := range 4 {
		next := w.clone()
		if err := next.look(writings); err != nil {
			t.Fatalf("%v\n%+v", err, w.Plan)
		}
		add(next)
	}
	return all
}
