package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/store"
)

// processes starts some in a world, one after the other: the names may repeat.
func processes(t *testing.T, w *world, names ...string) []*process {
	t.Helper()
	var all []*process
	for _, name := range names {
		p := &process{world: w, identity: name}
		p.start()
		t.Cleanup(p.stop)
		all = append(all, p)
	}
	t.Cleanup(func() {
		if w.broken != nil {
			t.Error(w.broken)
		}
	})
	return all
}

// run lets all run for a while.
func (w *world) run(d time.Duration, all ...*process) { w.settle(all, d, func(*process) {}) }

func wantLeader(t *testing.T, w *world, p *process, term uint64) {
	t.Helper()
	l := w.leader()
	if l == nil || l.Session != p.session || l.Term != term || !p.leads() {
		t.Errorf("stored is %+v, want %s in term %d, which believes to lead: %v", l, p.session,
			term, p.leads())
	}
}

func TestOneOfSeveralLeads(t *testing.T) {
	w := newWorld()
	all := processes(t, w, "a", "b", "c")
	w.run(10*time.Minute, all...)
	wantLeader(t, w, all[0], 1)
	if w.writes < 40 || all[1].leads() || all[2].leads() {
		t.Errorf("%d writes", w.writes)
	}
}

func TestAnotherTakesOverWhenTheLeaderIsSilent(t *testing.T) {
	w := newWorld()
	all := processes(t, w, "a", "b", "c")
	w.run(time.Minute, all...)
	all[0].stop()
	w.run(29*time.Second, all[1:]...)
	wantTerm(t, w, 1)
	w.run(7*time.Second, all[1:]...)
	wantTerm(t, w, 2)
	if l := w.leader(); l.Session == all[0].session || l.Session == "" {
		t.Errorf("the leader is %+v", l)
	}
}

func wantTerm(t *testing.T, w *world, term uint64) {
	t.Helper()
	if l := w.leader(); l.Term != term {
		t.Errorf("after %v the leader is %+v, want term %d", w.now.Sub(epoch), l, term)
	}
}

// The old leader stops in the middle of a look, before its second write, and goes on
// when another one leads.
func TestALeaderThatWasStoppedForAWhileWritesNothing(t *testing.T) {
	w := newWorld()
	all := processes(t, w, "a", "b")
	w.run(time.Minute, all...)
	old, other := all[0], all[1]
	for before := w.writes; w.writes == before; w.now = w.now.Add(time.Second) {
		old.step(answered)
	}
	if old.idle || !old.leads() {
		t.Fatal("the leader is not in the middle of its work")
	}
	w.run(time.Minute, other)
	wantLeader(t, w, other, 2)
	before := w.writes
	old.look()
	if w.writes != before || w.barred != 1 {
		t.Errorf("%d writes, %d barred", w.writes-before, w.barred)
	}
	if _, ok := old.elector.Leading(); ok {
		t.Error("the store has said that the term is over, and it believes to lead")
	}
	if _, ok := old.led.Leading(); ok {
		t.Error("its inner participant still acts")
	}
	w.run(time.Minute, all...)
	wantLeader(t, w, other, 2)
}

func TestWhoResignsIsFollowedAtOnce(t *testing.T) {
	w := newWorld()
	all := processes(t, w, "a", "b")
	w.run(time.Minute, all...)
	all[0].leave = true
	all[0].look()
	if l := w.leader(); !all[0].dead || all[0].err != nil || l.Holder != "" || l.Term != 1 {
		t.Fatalf("after %v the leader is %+v", all[0].err, l)
	}
	w.run(time.Second, all[1])
	wantLeader(t, w, all[1], 2)

	// Its name was given back: it may come again, and stands in line.
	w.run(3*time.Second, all...)
	if all[0].leads() || all[0].err != nil || !all[0].elector.Signed().After(at(60)) {
		t.Errorf("it came back with %v and leads: %v", all[0].err, all[0].leads())
	}
	if got := all[0].elector.Leader(); *got != *w.leader() {
		t.Errorf("it takes %+v for the leader", got)
	}
}

func TestAFollowerThatResignsChangesNothing(t *testing.T) {
	w := newWorld()
	all := processes(t, w, "a", "b")
	w.run(time.Minute, all...)
	all[1].leave = true
	all[1].look()
	w.run(time.Minute, all[0])
	wantLeader(t, w, all[0], 1)
}

func TestAResignationThatComesTooLateIsNoError(t *testing.T) {
	w := newWorld()
	all := processes(t, w, "a", "b")
	w.run(time.Minute, all...)
	w.run(time.Minute, all[1])
	all[0].leave = true
	all[0].look()
	if all[0].err != nil {
		t.Error(all[0].err)
	}
	wantLeader(t, w, all[1], 2)
}

func TestAProcessFollowsItselfWhenItStartsAgain(t *testing.T) {
	w := newWorld()
	all := processes(t, w, "a")
	w.run(time.Minute, all...)
	all[0].stop()
	w.run(14*time.Second, all...) // three heartbeats, which its lease is given
	wantTerm(t, w, 1)
	w.run(4*time.Second, all...)
	wantTerm(t, w, 2)
	wantLeader(t, w, all[0], 2)
}

func TestWhoIsAloneForCertainLeadsAtOnce(t *testing.T) {
	w := newWorld()
	w.election.Alone = true
	all := processes(t, w, "a")
	w.run(time.Minute, all...)
	all[0].stop()
	w.run(0, all...)
	wantLeader(t, w, all[0], 2)
}

func TestOfTwoControllersWithOneIdentityTheSecondNeverLeads(t *testing.T) {
	w := newWorld()
	all := processes(t, w, "a", "a")
	var told int
	w.settle(all, 10*time.Minute, func(p *process) {
		_, two := errors.AsType[*store.IdentityError](p.err)
		switch {
		case p == all[0] && p.err != nil:
			t.Fatalf("the first is harmed: %v", p.err)
		case p == all[1] && p.leads():
			t.Fatal("the second leads")
		case p == all[1] && two:
			told++
		case p == all[1] && w.now.After(at(10)):
			t.Fatalf("at %v the second is not told: %v", w.now.Sub(epoch), p.err)
		}
	})
	wantLeader(t, w, all[0], 1)
	if told == 0 || w.writes < 40 {
		t.Errorf("told %d times; %d writes", told, w.writes)
	}
}

func TestClocksThatDifferAndAreSetCostNothing(t *testing.T) {
	w := newWorld()
	all := processes(t, w, "a", "b", "c")
	all[1].skew, all[2].skew = 10*time.Minute, -10*time.Minute
	w.run(time.Minute, all...)
	for i := range 12 {
		p, skew := all[i%3], 10*time.Minute
		if i%2 == 0 {
			skew = -skew
		}
		p.skew += skew
		w.run(17*time.Second, all...)
	}
	wantLeader(t, w, all[0], 1)
}

// told is a store that can tell when to look.
type told struct {
	*store.Memory
	asked store.Feed
}

func (s *told) Wait(_ context.Context, f store.Feed, _ store.Revision) error {
	s.asked = f
	return nil
}

func elector(t *testing.T, s store.Store, name string) *store.Elector {
	t.Helper()
	e, err := store.NewElector(s, store.Election{Identity: name, Session: name + " 1"})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestAGuardWritesInItsTermOnly(t *testing.T) {
	s := store.NewMemory()
	e := elector(t, s, "a")
	early := store.FencedStore(s, e)
	for range 2 {
		if _, err := e.Reconcile(ctx, epoch); err != nil {
			t.Fatal(err)
		}
	}
	g := store.FencedStore(s, e)
	v, err := g.Put(ctx, vm("v"))
	want(t, err, nil)
	_, err = early.Put(ctx, v)
	want(t, err, store.Stale)
	want(t, early.Delete(ctx, v), store.Stale)

	// Conditions of the caller's own hold besides.
	other, _ := s.Put(ctx, vm("other"))
	changed, _ := s.Put(ctx, other)
	_, err = g.Put(ctx, v, other)
	want(t, err, store.Stale)
	want(t, g.Delete(ctx, v, other), store.Stale)
	if _, ok := e.Leading(); !ok {
		t.Error("a conflict about a VM ended the term")
	}
	v, err = g.Put(ctx, v, changed)
	want(t, err, nil)

	leader, _ := e.Leading()
	if _, err := s.Put(ctx, leader); err != nil { // another takes over
		t.Fatal(err)
	}
	want(t, g.Delete(ctx, v), store.Stale)
	if _, ok := e.Leading(); ok {
		t.Error("the store has said that the term is over, and it believes to lead")
	}
	if got, err := g.Get(ctx, v.Key()); err != nil || got == nil {
		t.Errorf("reading is guarded: %v", err)
	}
}

func TestAGuardCanTellWhenToLookIfItsStoreCan(t *testing.T) {
	s := &told{Memory: store.NewMemory()}
	e := elector(t, s, "a")
	w, ok := store.FencedStore(s, e).(store.Waiter)
	if !ok {
		t.Fatal("it cannot")
	}
	if err := w.Wait(ctx, store.Leases, 3); err != nil || s.asked != store.Leases {
		t.Errorf("asked %v, %v", s.asked, err)
	}
	if _, ok := store.FencedStore(s.Memory, e).(store.Waiter); ok {
		t.Error("it can tell what its store cannot")
	}
}

// reconcile lets an elector look at a time.
func reconcile(t *testing.T, e *store.Elector, s float64) {
	t.Helper()
	if _, err := e.Reconcile(ctx, at(s)); err != nil {
		t.Fatal(err)
	}
}

func TestAGuardOfATermThatIsOverDoesNotHarmTheNext(t *testing.T) {
	s := store.NewMemory()
	e := elector(t, s, "a")
	reconcile(t, e, 0)
	old := store.FencedStore(s, e)
	leader, _ := e.Leading()
	next := *leader
	next.Holder, next.Session, next.Term = "", "", 2 // the leader has resigned
	if _, err := s.Put(ctx, &next); err != nil {
		t.Fatal(err)
	}
	reconcile(t, e, 5)
	if leader, ok := e.Leading(); !ok || leader.Term != 3 {
		t.Fatalf("it leads by %+v", leader)
	}
	_, err := old.Put(ctx, vm("v"))
	want(t, err, store.Stale)
	want(t, old.Delete(ctx, vm("v")), store.Stale)
	if _, ok := e.Leading(); !ok {
		t.Error("the old store has ended the new term")
	}
}

func TestALeaderWhoseNameIsTakenStepsDown(t *testing.T) {
	s := store.NewMemory()
	e := elector(t, s, "a")
	reconcile(t, e, 0)
	key := store.Key{Kind: store.LeaseKind, Name: "controller/a"}
	r, _ := s.Get(ctx, key)
	other := *r.(*store.Lease)
	other.Session, other.Beats = "a 2", other.Beats+1
	if _, err := s.Put(ctx, &other); err != nil {
		t.Fatal(err)
	}
	reconcile(t, e, 5) // finds out that its lease has changed
	_, err := e.Reconcile(ctx, at(6))
	wantRival(t, err, "a 2")
	if _, ok := e.Leading(); ok {
		t.Error("it believes to lead")
	}
}

func TestWhoHasResignedNeverStandsAgain(t *testing.T) {
	s := store.NewMemory()
	e := elector(t, s, "a")
	reconcile(t, e, 0)
	want(t, e.Resign(ctx), nil)
	for i := range 10 {
		wake, err := e.Reconcile(ctx, at(float64(10*i)))
		if _, ok := e.Leading(); ok || err != nil || !wake.IsZero() {
			t.Fatalf("it leads: %v; wake %v, %v", ok, wake, err)
		}
	}
}

func TestEveryTermBeginsWithoutMemory(t *testing.T) {
	s := store.NewMemory()
	e := elector(t, s, "a")
	begun := 0
	led := store.NewLeaderRunner(e, s, func(s store.Store) store.Participant {
		begun++
		leader, _ := e.Leading()
		return &scribe{store: s, leader: leader}
	})
	for term, at := uint64(1), epoch; term < 6; term += 2 {
		for range 3 {
			if _, err := led.Reconcile(ctx, at); err != nil {
				t.Fatal(err)
			}
			at = at.Add(5 * time.Second)
		}
		if got, ok := led.Leading(); !ok || got != term || begun != int(term+1)/2 {
			t.Fatalf("%d were begun up to term %d, %v", begun, got, ok)
		}
		leader, _ := e.Leading()
		next := *leader
		next.Holder, next.Session, next.Term = "", "", term+1 // one that was not noticed
		if _, err := s.Put(ctx, &next); err != nil {
			t.Fatal(err)
		}
	}
}
