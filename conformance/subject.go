package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/store"
)

// A Subject is a fresh store, and what can be done to it. Its Store is safe for
// concurrent use.
type Subject struct {
	// Store holds nothing.
	Store store.Store
	// Again answers another client of the store, or the store opened again, with the same
	// contents. The earlier one is not used any more, and may be closed.
	Again func(*testing.T) store.Store
	// Compact makes the store forget what has changed until now: a reader that asks from before
	// is answered Reset.
	Compact func() error
	// Cut keeps this client and the store from hearing each other until Heal. That is not
	// reported.
	Cut func()
	// Heal undoes Cut. It is there when Cut is.
	Heal func()
	// Crash ends the store that was opened last, without warning, as kill -9 does. What
	// Again answers afterwards holds every acknowledged write.
	Crash func()
	// Volatile says that the contents die with the process: an older copy never takes
	// their place.
	Volatile bool
}

// An Open makes a fresh subject and has t.Cleanup end it.
type storeOpener func(t *testing.T) Subject

// storeWithin is how long the suite waits at most for what must come.
const storeWithin = 2 * time.Minute

// Store runs every group on subjects of its own.
func Store(t *testing.T, open func(t *testing.T) Subject) {
	for _, g := range []struct {
		name string
		run  func(*testing.T, storeOpener)
	}{
		{"compare and swap", compareAndSwap},
		{"ordered change hints", hints},
		{"wait", wait},
		{"stale reads", staleReads},
		{"crash between any two writes", crash},
		{"partition", partition},
		{"lost leadership", lostLeadership},
		{"values", values},
		{"errors", storeErrors},
	} {
		t.Run(g.name, func(t *testing.T) { g.run(t, open) })
	}
}

// patient is a context that ends with the test, or when nothing came for long enough.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), storeWithin)
	t.Cleanup(cancel)
	return ctx
}

// cases runs each case on a subject of its own.
func cases(t *testing.T, open storeOpener, all map[string]func(*testing.T, Subject)) {
	for name, run := range all {
		t.Run(name, func(t *testing.T) { run(t, open(t)) })
	}
}
