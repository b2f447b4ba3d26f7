package store_test

import (
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// What an agent knows of a VM is compared with a record by the life first, and by moves in the same
// life.
func TestWhatALedgerOverrules(t *testing.T) {
	of := func(life *store.Life, moves int) *store.VM {
		return &store.VM{VM: hypervisor.VM{ID: "v"}, Host: "n1", Life: life, Moves: moves}
	}
	first, second := &store.Life{ID: "a", After: 7}, &store.Life{ID: "b", After: 9}
	reconciled := &store.Life{ID: "a", Epoch: 1}
	gone := &store.Departure{To: "n2"}
	for _, r := range []struct {
		name string
		h    store.Holding
		v    *store.VM
		want bool
	}{
		{"nothing is known", store.Holding{}, of(first, 1), false},
		{"it is here", store.Holding{Record: of(first, 2)}, of(first, 1), false},
		{"it has left since", store.Holding{Record: of(first, 1), Left: gone}, of(first, 1), true},
		{"it has come back", store.Holding{Record: of(first, 1), Left: gone}, of(first, 2), false},
		{"the same life, read anew", store.Holding{Record: of(first, 1), Left: gone},
			of(&store.Life{ID: "a", After: 7}, 1), true},
		{"it was deleted", store.Holding{Record: of(first, 1), Left: &store.Departure{}}, of(first, 1), true},
		{"it was deleted and added anew", store.Holding{Record: of(first, 5), Left: &store.Departure{}},
			of(second, 1), false},
		{"it was added anew, and that is not known to be deleted",
			store.Holding{Record: of(first, 5)}, of(second, 1), false},
		{"a backup has the one that was deleted", store.Holding{Record: of(second, 1), Left: gone},
			of(first, 5), true},
		{"a backup has the one that was deleted, and another is here",
			store.Holding{Record: of(second, 1)}, of(first, 5), true},
		{"two that were added at once", store.Holding{Record: of(second, 1)},
			of(&store.Life{ID: "c", After: 9}, 1), true},
		{"one that was reconciled", store.Holding{Record: of(second, 1), Left: gone},
			of(reconciled, 1), false},
		{"a backup of before it was reconciled", store.Holding{Record: of(reconciled, 1)},
			of(second, 9), true},
		{"an old ledger and an old record", store.Holding{Record: of(nil, 1), Left: gone}, of(nil, 1), true},
		{"an old ledger and an old record that came back", store.Holding{Record: of(nil, 1), Left: gone},
			of(nil, 2), false},
		{"an old ledger that did not count", store.Holding{Record: of(nil, 0), Left: gone}, of(nil, 0),
			false},
		{"an old ledger, and it was added anew", store.Holding{Record: of(nil, 3), Left: &store.Departure{}},
			of(first, 1), false},
		{"an old backup", store.Holding{Record: of(first, 1), Left: gone}, of(nil, 9), true},
		{"a writer of before has dropped the life of one that is here",
			store.Holding{Record: of(first, 1)}, of(nil, 1), false},
	} {
		if got := r.h.Overrules(r.v); got != r.want {
			t.Errorf("%s: it overrules the record: %v", r.name, got)
		}
	}
}

// What is added later has a later life, whatever was deleted before.
func TestANewLifeFollowsTheOneBefore(t *testing.T) {
	s := store.NewMemory()
	var last *store.Life
	for range 3 {
		l, err := store.NewLife(t.Context(), s, "x")
		if err != nil {
			t.Fatal(err)
		}
		if !l.Follows(last) || last.Follows(l) || l.Follows(l) || !l.Is(l) || l.Is(last) {
			t.Errorf("%+v after %+v", l, last)
		}
		last = l
		r, err := s.Put(t.Context(), &store.VM{VM: hypervisor.VM{ID: "v"}, Life: l})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}
