package conformance

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/store"
)

// wait checks that a waiter is woken by every change. It needs a store that is a
// [store.Waiter].
func wait(t *testing.T, open storeOpener) {
	cases(t, open, map[string]func(*testing.T, Subject){
		"it returns after a change":               wokenLater,
		"it returns when something has changed":   wokenBefore,
		"it ends with its context":                waitEnds,
		"nothing is lost between look and wait":   nothingLost,
		"every feed that a change is in is woken": everyFeed,
	})
}

// waiter is the subject as one that can wait; without it the test is skipped.
func waiter(t *testing.T, s store.Store) store.Waiter {
	w, is := s.(store.Waiter)
	if !is {
		t.Skip("the store is no record.Waiter")
	}
	return w
}

// waiting waits elsewhere, until something has really changed.
func waiting(ctx context.Context, s store.Store, f store.Feed, since store.Revision) chan error {
	done := make(chan error, 1)
	go func() {
		for {
			if err := s.(store.Waiter).Wait(ctx, f, since); err != nil {
				done <- err
				return
			}
			c, err := s.Changes(ctx, f, since)
			if err != nil || len(c.Records)+len(c.Gone) > 0 {
				done <- err
				return
			}
		}
	}()
	return done
}

func wokenLater(t *testing.T, s Subject) {
	ctx := patient(t)
	waiter(t, s.Store)
	r := follow(store.Everything)
	for i := range 5 {
		r.pull(ctx, t, s.Store)
		done := waiting(ctx, s.Store, r.feed, r.since)
		put(ctx, t, s.Store, vmOn(fmt.Sprint(i), "n1"))
		if err := <-done; err != nil {
			t.Fatalf("Wait: %v", err)
		}
	}
}

func wokenBefore(t *testing.T, s Subject) {
	ctx := patient(t)
	w := waiter(t, s.Store)
	vm := put(ctx, t, s.Store, vmOn("v", "n1"))
	c, err := s.Store.Changes(ctx, store.Everything, 0)
	if err != nil {
		t.Fatal(err)
	}
	remove(ctx, t, s.Store, vm)
	for _, since := range []store.Revision{0, c.Next} {
		if err := w.Wait(ctx, store.Everything, since); err != nil {
			t.Errorf("Wait since %d: %v", since, err)
		}
	}
}

func waitEnds(t *testing.T, s Subject) {
	ctx := patient(t)
	w := waiter(t, s.Store)
	put(ctx, t, s.Store, vmOn("v", "n1"))
	c, err := s.Store.Changes(ctx, store.Everything, 0)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := w.Wait(ended, store.Everything, c.Next); err == nil {
		t.Error("it waited for nothing, and did not notice that its context had ended")
	}
	idle := 0
	for range 100 { // it may wake for nothing, but not always
		short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		err := w.Wait(short, store.Everything, c.Next)
		cancel()
		if err != nil {
			return
		}
		idle++
	}
	t.Errorf("nothing changed, and it woke %d times", idle)
}

// nothingLost has a reader that looks only when it is woken, while a writer writes.
func nothingLost(t *testing.T, s Subject) {
	const writes = 40
	ctx := patient(t)
	w := waiter(t, s.Store)
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		vm := vmOn("v", "n1")
		for i := range writes {
			vm.Boots = i + 1
			next, err := s.Store.Put(ctx, vm)
			if err != nil {
				t.Errorf("Put: %v", err)
				return
			}
			c := *next.(*store.VM)
			vm = &c
		}
	})
	r := follow(store.Feed{Host: "n1"})
	for seen := 0; seen < writes; {
		if err := w.Wait(ctx, r.feed, r.since); err != nil {
			t.Fatalf("Wait since %d, after %d writes: %v", r.since, seen, err)
		}
		r.pull(ctx, t, s.Store)
		if vm, is := r.known[vmOn("v", "").Key()].(*store.VM); is {
			seen = vm.Boots
		}
	}
}

func everyFeed(t *testing.T, s Subject) {
	ctx := patient(t)
	waiter(t, s.Store)
	vm := put(ctx, t, s.Store, vmOn("v", "n1"))
	lease := put(ctx, t, s.Store, &store.Lease{Owner: "a"})
	var woken []chan error
	for _, f := range []store.Feed{store.Leases, store.Everything, {Host: "n1"}, {Host: "n2"}} {
		r := follow(f)
		r.pull(ctx, t, s.Store)
		woken = append(woken, waiting(ctx, s.Store, f, r.since))
	}
	put(ctx, t, s.Store, moved(vm, "n2"))
	put(ctx, t, s.Store, lease)
	for i, done := range woken {
		if err := <-done; err != nil {
			t.Errorf("feed %d: %v", i, err)
		}
	}
}
