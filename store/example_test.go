package store_test

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/store"
)

// placer is what the leader does: it writes once.
type placer struct {
	name  string
	store store.Store
}

func (p *placer) Reconcile(ctx context.Context, now time.Time) (time.Time, error) {
	_, err := p.store.Put(ctx, vm("placed by "+p.name))
	fmt.Println(p.name, "writes:", err)
	return now.Add(time.Minute), err
}

func Example() {
	ctx, records := context.Background(), store.NewMemory()
	process := func(name string) *store.LeaderRunner {
		e, err := store.NewElector(records, store.Election{Identity: name, Session: name + "-1"})
		if err != nil {
			fmt.Println(err)
		}
		return store.NewLeaderRunner(e, records, func(guarded store.Store) store.Participant {
			return &placer{name, guarded}
		})
	}
	a, b := process("a"), process("b")

	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	a.Reconcile(ctx, now) // takes the lead, and writes
	for range 40 {        // a is stopped; b looks once a second, by its own clock
		now = now.Add(time.Second)
		b.Reconcile(ctx, now)
		if term, ok := b.Leading(); ok {
			fmt.Println("b leads in term", term)
			break
		}
	}
	a.Reconcile(ctx, now) // goes on: it finds out before it writes
	_, ok := a.Leading()
	fmt.Println("a leads:", ok)
	// Output:
	// a writes: <nil>
	// b writes: <nil>
	// b leads in term 2
	// a leads: false
}
