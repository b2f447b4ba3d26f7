package conformance

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// compareAndSwap checks that a write needs what was read to be as it was.
func compareAndSwap(t *testing.T, open storeOpener) {
	cases(t, open, map[string]func(*testing.T, Subject){
		"a write needs the version that is stored":                  versions,
		"what is gone may be deleted again, and does not come back": deleted,
		"a write holds only while others are as they were read":     guarded,
		"a refused write changes nothing":                           refused,
		"of many writers one wins":                                  race,
		"no version is given twice":                                 unique,
		"of two records the later writing has the greater version":  later,
	})
}

func versions(t *testing.T, s Subject) {
	ctx := patient(t)
	storeHolds(ctx, t, s.Store, vmOn("a", "").Key(), nil)
	first := put(ctx, t, s.Store, vmOn("a", "n1"))
	storeHolds(ctx, t, s.Store, first.Key(), first)
	_, err := s.Store.Put(ctx, vmOn("a", "n2"))
	wantKind(t, err, store.Stale) // it exists
	second := put(ctx, t, s.Store, moved(first, "n2"))
	_, err = s.Store.Put(ctx, first)
	wantKind(t, err, store.Stale)
	wantKind(t, s.Store.Delete(ctx, first), store.Stale)
	wantKind(t, s.Store.Delete(ctx, first.WithVersion(0)), store.Stale)
	storeHolds(ctx, t, s.Store, first.Key(), second)
	_, err = s.Store.Put(ctx, vmOn("never", "n1").WithVersion(second.RecordVersion()))
	wantKind(t, err, store.Stale) // there is none
}

func later(t *testing.T, s Subject) {
	ctx, last := patient(t), store.Version(0)
	turns := []store.Record{vmOn("a", "n1"), &store.Lease{Owner: "host/n1"},
		&store.Host{Host: hypervisor.Host{Name: "n1"}}, &store.Leader{Name: "cluster"}}
	for range 3 {
		for i, r := range turns {
			turns[i] = put(ctx, t, s.Store, r)
			if now := turns[i].RecordVersion(); now <= last {
				t.Errorf("%v was written as version %d after version %d", r.Key(), now, last)
			}
			last = turns[i].RecordVersion()
		}
	}
}

func deleted(t *testing.T, s Subject) {
	ctx := patient(t)
	old := put(ctx, t, s.Store, vmOn("a", "n1"))
	remove(ctx, t, s.Store, old)
	storeHolds(ctx, t, s.Store, old.Key(), nil)
	remove(ctx, t, s.Store, old)
	remove(ctx, t, s.Store, vmOn("never", ""))
	_, err := s.Store.Put(ctx, old)
	wantKind(t, err, store.Stale)
	storeHolds(ctx, t, s.Store, old.Key(), nil)
	anew := put(ctx, t, s.Store, old.WithVersion(0))
	if anew.RecordVersion() == old.RecordVersion() {
		t.Errorf("version %d was given again", old.RecordVersion())
	}
	_, err = s.Store.Put(ctx, old)
	wantKind(t, err, store.Stale) // it is another one
	wantKind(t, s.Store.Delete(ctx, old), store.Stale)
	storeHolds(ctx, t, s.Store, old.Key(), anew)
}

func guarded(t *testing.T, s Subject) {
	ctx := patient(t)
	host := put(ctx, t, s.Store, &store.Host{Host: hypervisor.Host{Name: "n1"}})
	other := put(ctx, t, s.Store, vmOn("other", "n1"))
	missing := &store.Lease{Owner: "missing"}
	vm := put(ctx, t, s.Store, vmOn("v", "n1"), host, other, missing)
	vm = put(ctx, t, s.Store, vm, vm) // on condition of itself
	put(ctx, t, s.Store, host)        // another process writes it
	for _, while := range [][]store.Record{{host}, {other, host}, {missing, host, other}} {
		_, err := s.Store.Put(ctx, vm, while...)
		wantKind(t, err, store.Stale)
		_, err = s.Store.Put(ctx, vmOn("new", "n1"), while...)
		wantKind(t, err, store.Stale)
		wantKind(t, s.Store.Delete(ctx, vm, while...), store.Stale)
	}
	there := put(ctx, t, s.Store, missing)
	_, err := s.Store.Put(ctx, vm, missing) // it must not be there, and is
	wantKind(t, err, store.Stale)
	wantKind(t, s.Store.Delete(ctx, vm, missing), store.Stale)
	remove(ctx, t, s.Store, there)
	_, err = s.Store.Put(ctx, vm, there) // it must be there, and is not
	wantKind(t, err, store.Stale)
	wantKind(t, s.Store.Delete(ctx, vm, there), store.Stale)
	storeHolds(ctx, t, s.Store, vm.Key(), vm)
	storeHolds(ctx, t, s.Store, vmOn("new", "").Key(), nil)
	if err := s.Store.Delete(ctx, vm, other, missing); err != nil {
		t.Errorf("what it depends on stands: %v", err)
	}
	storeHolds(ctx, t, s.Store, vm.Key(), nil)
}

func refused(t *testing.T, s Subject) {
	ctx := patient(t)
	r := follow(store.Everything)
	vm := put(ctx, t, s.Store, vmOn("v", "n1"))
	r.pull(ctx, t, s.Store)
	_, err := s.Store.Put(ctx, vmOn("v", "n2"))
	wantKind(t, err, store.Stale)
	_, err = s.Store.Put(ctx, moved(vm, "n2"), vmOn("w", "").WithVersion(vm.RecordVersion()))
	wantKind(t, err, store.Stale)
	if c := r.pull(ctx, t, s.Store); !c.Reset && len(c.Records)+len(c.Gone) > 0 {
		t.Errorf("a refused write is told: %+v", c)
	}
	same(t, "the feed", map[store.Key]store.Record{vm.Key(): vm}, r.known)
}

// race has writers contend for one record, and each for one that all depend on.
func race(t *testing.T, s Subject) {
	const writers, rounds = 8, 5
	ctx := patient(t)
	turn := put(ctx, t, s.Store, &store.Leader{Name: "turn"})
	for round := range rounds {
		var wins [writers]store.Record
		var group sync.WaitGroup
		for w := range writers {
			group.Go(func() {
				next := *turn.(*store.Leader)
				next.Holder = fmt.Sprint(w)
				var err error
				if wins[w], err = s.Store.Put(ctx, &next); err != nil {
					wins[w] = nil
					wantKind(t, err, store.Stale)
				}
			})
		}
		group.Wait()
		var won []store.Record
		for _, r := range wins {
			if r != nil {
				won = append(won, r)
			}
		}
		if len(won) != 1 {
			t.Fatalf("round %d: %d writers won", round, len(won))
		}
		storeHolds(ctx, t, s.Store, turn.Key(), won[0])
		turn = won[0]
	}
}

func unique(t *testing.T, s Subject) {
	const writers, writes = 4, 8
	ctx := patient(t)
	var mu sync.Mutex
	seen := map[store.Key]map[store.Version]bool{}
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			var last store.Record = vmOn(fmt.Sprint(w%2), "n1")
			for range writes {
				next, err := s.Store.Put(ctx, last)
				if errors.Is(err, store.Stale) {
					next, err = s.Store.Get(ctx, last.Key())
				} else if err == nil {
					mu.Lock()
					of := seen[next.Key()]
					if of == nil {
						of = map[store.Version]bool{}
						seen[next.Key()] = of
					}
					if of[next.RecordVersion()] {
						t.Errorf("%v has version %d twice", next.Key(), next.RecordVersion())
					}
					of[next.RecordVersion()] = true
					mu.Unlock()
				}
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
				last = next
			}
		})
	}
	group.Wait()
}
