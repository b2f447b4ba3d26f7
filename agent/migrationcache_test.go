package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/store"
)

// naive is what a List promises: what is known, in the order in which it became known, and
// what is remembered of it.
type naive struct {
	known  []*store.Migration
	clocks map[migration.ID]time.Duration
}

func (n *naive) find(id migration.ID) int {
	return slices.IndexFunc(n.known, func(m *store.Migration) bool { return m.Spec.ID == id })
}

func (n *naive) put(m *store.Migration) {
	if i := n.find(m.Spec.ID); i >= 0 {
		n.known[i] = m
		return
	}
	n.known = append(n.known, m)
}

func (n *naive) drop(id migration.ID) {
	n.known = slices.DeleteFunc(n.known, func(m *store.Migration) bool { return m.Spec.ID == id })
	delete(n.clocks, id)
}

// A VM is the first letter of the names of its migrations.
func drawn(t *rapid.T) *store.Migration {
	id := migration.ID(rapid.StringMatching("[ab][0-3]").Draw(t, "move"))
	m := &store.Migration{Spec: migration.Spec{ID: id, VM: hypervisor.VMID(id[:1])}}
	if clock := time.Duration(rapid.IntRange(0, 3).Draw(t, "stored")); clock > 0 {
		m.Source.Monitor = &convergence.State{Clock: clock}
	}
	return m
}

// A list answers as its promise says, whatever is done to it.
func TestAListIsWhatItWasToldOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list agent.MigrationCache
		n := naive{clocks: map[migration.ID]time.Duration{}}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				m := drawn(t)
				list.Put(m, func(hypervisor.VMID) *store.VM { return nil })
				n.put(m)
			},
			"drop": func(t *rapid.T) {
				id := drawn(t).Spec.ID
				list.Drop(id)
				n.drop(id)
			},
			"keep": func(t *rapid.T) {
				kept := []store.Record{drawn(t), drawn(t), drawn(t)}
				list.Keep(kept)
				for _, m := range slices.Clone(n.known) {
					if !slices.ContainsFunc(kept, func(r store.Record) bool {
						return r.Key() == m.Key()
					}) {
						n.drop(m.Spec.ID)
					}
				}
			},
			"look": func(t *rapid.T) {
				i := n.find(drawn(t).Spec.ID)
				if i < 0 {
					t.Skip("it is not known")
				}
				m := n.known[i]
				want, looked := n.clocks[m.Spec.ID]
				if !looked && m.Source.Monitor != nil {
					want = m.Source.Monitor.Clock
				}
				if got := *list.Memory(m.Spec.ID); !cmp.Equal(got, convergence.State{Clock: want}) {
					t.Fatalf("%s remembers %+v, want %v", m.Spec.ID, got, want)
				}
				list.Memory(m.Spec.ID).Clock = want + 10
				n.clocks[m.Spec.ID] = want + 10
			},
			"end": func(t *rapid.T) {
				id := drawn(t).Spec.ID
				list.Ended(id)
				delete(n.clocks, id)
			},
			"": func(t *rapid.T) { same(t, &list, &n) },
		})
	})
}

func same(t *rapid.T, list *agent.MigrationCache, n *naive) {
	for _, vm := range []hypervisor.VMID{"a", "b"} {
		got, want := "", ""
		for m := list.Of(vm); m != nil; m = m.Next() {
			got += fmt.Sprintf("%p ", m.Migration)
		}
		for _, m := range n.known {
			if m.Spec.VM == vm {
				want += fmt.Sprintf("%p ", m)
			}
		}
		if got != want {
			t.Fatalf("of %s it knows %s, want %s", vm, got, want)
		}
	}
	var got, want []string
	for _, m := range list.Sorted() {
		got = append(got, string(m.Spec.ID))
	}
	for _, m := range n.known {
		want = append(want, string(m.Spec.ID))
		if list.Get(m.Spec.ID) != m {
			t.Fatalf("Get(%s) is another writing", m.Spec.ID)
		}
	}
	slices.SortFunc(want, strings.Compare)
	if !slices.Equal(got, want) {
		t.Fatalf("sorted %q, want %q", got, want)
	}
	if list.Get("c0") != nil {
		t.Fatal("it knows what it was not told of")
	}
}
