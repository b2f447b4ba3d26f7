package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/store"
)

// staleReads checks that a reader that was away for long learns what it missed, or that it has.
func staleReads(t *testing.T, open storeOpener) {
	t.Run("a reader that is far behind", func(t *testing.T) {
		s := open(t)
		writes := 1200 // more than most stores remember
		if s.Compact != nil {
			writes, s.Compact = 50, nil
		}
		behind(t, s, writes)
	})
	t.Run("a reader from before a compaction", func(t *testing.T) {
		s := open(t)
		if s.Compact == nil {
			t.Skip("the subject has no Compact")
		}
		behind(t, s, 3)
	})
	t.Run("a reader of the store as opened before", func(t *testing.T) {
		s := open(t)
		if s.Again == nil {
			t.Skip("the subject has no Again")
		}
		reopened(t, s)
	})
	t.Run("a reader from a future that is lost", func(t *testing.T) {
		s := open(t)
		if s.Volatile {
			t.Skip("the store is volatile: no older copy of it takes its place")
		}
		future(t, s)
	})
}

// behind has readers miss that records change, go, and leave the feed of a host.
func behind(t *testing.T, s Subject, writes int) {
	ctx := patient(t)
	stays := put(ctx, t, s.Store, vmOn("stays", "n1"))
	gone := put(ctx, t, s.Store, vmOn("gone", "n1"))
	left := put(ctx, t, s.Store, vmOn("left", "n1"))
	lease := put(ctx, t, s.Store, &store.Lease{Owner: "a"})
	readers := everyReader()
	for _, r := range readers {
		r.pull(ctx, t, s.Store)
	}
	remove(ctx, t, s.Store, gone)
	remove(ctx, t, s.Store, lease)
	left = put(ctx, t, s.Store, moved(left, "n2"))
	for range writes {
		stays = put(ctx, t, s.Store, stays)
	}
	if s.Compact != nil {
		if err := s.Compact(); err != nil {
			t.Fatalf("Compact: %v", err)
		}
	}
	now := naive{stays.Key(): stays, left.Key(): left}
	for _, r := range readers {
		c := r.pull(ctx, t, s.Store)
		if s.Compact != nil && !c.Reset && r.feed != (store.Feed{Host: "n9"}) {
			t.Errorf("feed %+v: from before the compaction, and no Reset", r.feed)
		}
		same(t, fmt.Sprintf("feed %+v", r.feed), now.feed(r.feed), r.known)
	}
}

func everyReader() []*reader {
	return []*reader{follow(store.Everything), follow(store.Leases),
		follow(store.Feed{Host: "n1"}), follow(store.Feed{Host: "n2"}),
		follow(store.Feed{Host: "n9"})}
}

// reopened has readers come back with what they know from an earlier client.
func reopened(t *testing.T, s Subject) {
	ctx := patient(t)
	gone := put(ctx, t, s.Store, vmOn("gone", "n1"))
	vm := put(ctx, t, s.Store, vmOn("v", "n1"))
	lease := put(ctx, t, s.Store, &store.Lease{Owner: "a"})
	early, late := everyReader(), everyReader()
	for _, r := range early {
		r.pull(ctx, t, s.Store)
	}
	remove(ctx, t, s.Store, gone)
	vm = put(ctx, t, s.Store, moved(vm, "n2"))
	for _, r := range late {
		r.pull(ctx, t, s.Store)
	}
	again := s.Again(t)
	now := naive{vm.Key(): vm, lease.Key(): lease}
	check := func() {
		t.Helper()
		for _, r := range append(early, late...) {
			r.pull(ctx, t, again)
			same(t, fmt.Sprintf("feed %+v", r.feed), now.feed(r.feed), r.known)
		}
	}
	check()
	_, err := again.Put(ctx, gone)
	wantKind(t, err, store.Stale) // a deleted record does not come back
	vm = put(ctx, t, again, moved(vm, "n1"))
	lease = put(ctx, t, again, lease)
	now = naive{vm.Key(): vm, lease.Key(): lease}
	check()
}

// future asks for what comes after a revision that the store has not reached, as after
// an older copy of the store was put in its place.
func future(t *testing.T, s Subject) {
	ctx := patient(t)
	vm := put(ctx, t, s.Store, vmOn("v", "n1"))
	r := follow(store.Everything)
	r.pull(ctx, t, s.Store)
	r.since += 1 << 40
	r.known[vmOn("lost", "").Key()] = vmOn("lost", "n1")
	c, err := s.Store.Changes(ctx, r.feed, r.since)
	if err != nil {
		wantKind(t, err, store.Unavailable, store.Unreadable, store.Unanswered)
		return
	}
	if !c.Reset {
		t.Fatalf("Changes since %d, which never was: %+v, want Reset; a store that dies with its "+
			"process is Volatile", r.since, c)
	}
	r.pull(ctx, t, s.Store)
	same(t, "the feed", map[store.Key]store.Record{vm.Key(): vm}, r.known)
}

// crash checks that no crash loses a write that was acknowledged, and that none of the
// others is there in part. It needs a subject with Crash and Again.
func crash(t *testing.T, open storeOpener) {
	needed := func(t *testing.T) Subject {
		s := open(t)
		if s.Crash == nil || s.Again == nil {
			t.Skip("the subject has no Crash, or no Again")
		}
		return s
	}
	t.Run("after each write", func(t *testing.T) { crashAfterEach(t, needed(t)) })
	t.Run("while many write", func(t *testing.T) { crashAmid(t, needed(t)) })
}

func crashAfterEach(t *testing.T, s Subject) {
	ctx := patient(t)
	model := naive{}
	records := s.Store
	write := func(r store.Record) store.Record {
		stored := put(ctx, t, records, r)
		model[r.Key()] = stored
		return stored
	}
	var vm, lease store.Record
	for i, step := range []func(){
		func() { vm = write(vmOn("v", "n1")) },
		func() { vm = write(moved(vm, "n2")) },
		func() { lease = write(&store.Lease{Owner: "a"}) },
		func() { remove(ctx, t, records, vm); delete(model, vm.Key()) },
		func() { lease = write(lease) },
		func() { vm = write(vmOn("v", "n3")) },
		func() {},
	} {
		step()
		s.Crash()
		records = s.Again(t)
		for _, f := range []store.Feed{store.Everything, store.Leases, {Host: "n2"}} {
			r := follow(f)
			r.pull(ctx, t, records)
			same(t, fmt.Sprintf("after write %d: feed %+v", i, f), model.feed(f), r.known)
		}
	}
}

// crashAmid crashes the store under writers, each of which counts in a VM of its own.
func crashAmid(t *testing.T, s Subject) {
	const writers, rounds = 4, 5
	ctx := patient(t)
	records := s.Store
	var counters [writers]counter
	for w := range counters {
		counters[w].name = fmt.Sprint("w", w)
	}
	for round := range rounds {
		var group sync.WaitGroup
		begun := make(chan bool, writers)
		for w := range writers {
			group.Go(func() {
				err := counters[w].count(ctx, records, begun)
				wantKind(t, err, store.Unanswered, store.Unavailable)
			})
		}
		for range writers {
			<-begun
		}
		time.Sleep(time.Duration(round) * 3 * time.Millisecond)
		s.Crash()
		group.Wait()
		records = s.Again(t)
		for _, c := range counters {
			vm, err := records.Get(ctx, vmOn(c.name, "").Key())
			if err != nil {
				t.Fatal(err)
			}
			if n := counted(vm); n < c.acked || n > c.tried {
				t.Errorf("%s: %d stored, %d acknowledged, %d tried", c.name, n, c.acked, c.tried)
			}
		}
	}
}

// A counter writes 1, 2, 3 … into a VM.
type counter struct {
	name         string
	acked, tried int
}

// count writes until it cannot, from what is stored on. It says when it has begun.
func (c *counter) count(ctx context.Context, s store.Store, begun chan<- bool) error {
	say := sync.OnceFunc(func() { begun <- true })
	for {
		old, err := s.Get(ctx, vmOn(c.name, "").Key())
		say()
		if err != nil {
			return err
		}
		next := vmOn(c.name, "n1")
		next.Boots = counted(old) + 1
		next.NotMigratableReason = fmt.Sprint(next.Boots)
		if old != nil {
			next.Version = old.RecordVersion()
		}
		c.tried = next.Boots
		if _, err := s.Put(ctx, next); err != nil {
			return err
		}
		c.acked = next.Boots
	}
}

// counted is how far count has come; what is not whole counts as less than nothing.
func counted(r store.Record) int {
	vm, is := r.(*store.VM)
	if !is || vm == nil {
		return 0
	}
	if vm.NotMigratableReason != fmt.Sprint(vm.Boots) {
		return -1
	}
	return vm.Boots
}

// partition checks that no reader is told something wrong while client and store do not hear
// each other. It needs a subject with Cut and Heal.
func partition(t *testing.T, open storeOpener) {
	s := open(t)
	if s.Cut == nil || s.Heal == nil {
		t.Skip("the subject has no Cut, or no Heal")
	}
	ctx := patient(t)
	before := put(ctx, t, s.Store, vmOn("v", "n1"))
	r := follow(store.Everything)
	r.pull(ctx, t, s.Store)
	s.Cut()
	short, cancel := context.WithTimeout(ctx, time.Second)
	_, err := s.Store.Put(short, moved(before, "n2"))
	wantKind(t, err, store.Unanswered, store.Unavailable)
	_, other := s.Store.Put(short, vmOn("w", "n1"))
	wantKind(t, other, store.Unanswered, store.Unavailable)
	if got, err := s.Store.Get(short, before.Key()); err != nil {
		wantKind(t, err, store.Unanswered, store.Unavailable)
	} else {
		same(t, "what was read during the cut", before, got)
	}
	if _, err := s.Store.Changes(short, r.feed, r.since); err != nil {
		wantKind(t, err, store.Unanswered, store.Unavailable)
	}
	if w, is := s.Store.(store.Waiter); is {
		if err := w.Wait(short, r.feed, r.since); err == nil {
			t.Log("Wait woke for nothing, as it may")
		}
	}
	cancel()
	s.Heal()
	after := recovered(ctx, t, s.Store, before, err)
	made := recovered(ctx, t, s.Store, vmOn("w", "n1"), other)
	pullLater(ctx, t, s.Store, r)
	now := naive{after.Key(): after, made.Key(): made}
	same(t, "the feed", now.feed(r.feed), r.known)
}

// recovered writes over a record whose last write failed during a cut, when the store is
// heard again. old is the record as it was before that.
func recovered(ctx context.Context, t *testing.T, s store.Store, old store.Record,
	failed error) store.Record {
	t.Helper()
	for {
		next, err := s.Put(ctx, moved(old, "n3"))
		if err == nil {
			return next
		}
		if errors.Is(err, store.Stale) {
			if errors.Is(failed, store.Unavailable) {
				t.Fatalf("%v, and yet it took effect", failed)
			}
			got, err := s.Get(ctx, old.Key())
			if err == nil && got != nil {
				old, failed = got, nil
			}
			continue
		}
		wantKind(t, err, store.Unanswered, store.Unavailable)
		if ctx.Err() != nil {
			t.Fatalf("the cut was healed, and the store is not heard: %v", err)
		}
		if errors.Is(err, store.Unanswered) {
			failed = err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// pullLater catches up as soon as the store answers.
func pullLater(ctx context.Context, t *testing.T, s store.Store, r *reader) {
	t.Helper()
	for {
		_, err := s.Changes(ctx, r.feed, r.since)
		if err == nil {
			r.pull(ctx, t, s)
			return
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// lostLeadership checks that nothing is written by a controller that no longer leads.
func lostLeadership(t *testing.T, open storeOpener) {
	s := open(t)
	ctx := patient(t)
	first := put(ctx, t, s.Store, &store.Leader{Name: "cluster", Holder: "a", Term: 1})
	vm := put(ctx, t, s.Store, vmOn("v", "n1"), first)
	next := *first.(*store.Leader)
	next.Holder, next.Term = "b", 2
	second := put(ctx, t, s.Store, &next)
	_, err := s.Store.Put(ctx, moved(vm, "n2"), first)
	wantKind(t, err, store.Stale)
	_, err = s.Store.Put(ctx, vmOn("new", "n1"), first)
	wantKind(t, err, store.Stale)
	wantKind(t, s.Store.Delete(ctx, vm, first), store.Stale)
	storeHolds(ctx, t, s.Store, vm.Key(), vm)
	vm = put(ctx, t, s.Store, moved(vm, "n2"), second)
	if s.Again != nil {
		again := s.Again(t)
		_, err := again.Put(ctx, vm, first)
		wantKind(t, err, store.Stale)
		s.Store = again
	}
	remove(ctx, t, s.Store, second) // there is no leader
	_, err = s.Store.Put(ctx, vm, second)
	wantKind(t, err, store.Stale)
	takeover(ctx, t, s.Store)
}

// takeover has two leaders write at once, one of them deposed at any moment: what it
// wrote is from before.
func takeover(ctx context.Context, t *testing.T, s store.Store) {
	const writes = 20
	leader := put(ctx, t, s, &store.Leader{Name: "cluster", Holder: "c", Term: 3})
	var group sync.WaitGroup
	group.Go(func() {
		var vm store.Record = vmOn("raced", "n1")
		for range writes {
			next, err := s.Put(ctx, vm, leader)
			if err != nil {
				wantKind(t, err, store.Stale)
				return
			}
			vm = next
		}
	})
	next := *leader.(*store.Leader)
	next.Holder, next.Term = "d", 4
	put(ctx, t, s, &next)
	seen, err := s.Get(ctx, vmOn("raced", "").Key())
	if err != nil {
		t.Error(err)
	}
	group.Wait()
	storeHolds(ctx, t, s, vmOn("raced", "").Key(), seen)
}
