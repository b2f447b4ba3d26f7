package conformance

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// hints checks that the readers of every feed miss nothing, with changes drawn by rapid.
func hints(t *testing.T, open storeOpener) {
	t.Run("changes come in order", func(t *testing.T) { ordered(t, open(t)) })
	t.Run("a host learns of what leaves it", func(t *testing.T) { leaving(t, open(t)) })
	t.Run("readers of a feed miss nothing", func(t *testing.T) {
		storeWalks(t, open(t).Store)
	})
}

// enough is how many changes are drawn at most, in the default tier: some stores
// take milliseconds for each.
const enough = 400

// storeWalks runs drawn walks on one store, each in a part of its own: to open one takes long. Each
// deletes in the end what it has put: a reader that starts anew reads all that there is.
func storeWalks(t *testing.T, s store.Store) {
	long := testutil.InLongTier()
	testutil.Rounds(t, enough, math.MaxInt) // it says that there is more
	worlds, changes, failing := 0, 0, false
	rapid.Check(t, func(r *rapid.T) {
		if changes > enough && !failing && !long {
			return
		}
		worlds++
		failing = true // until it is through: then rapid looks for a shorter one
		w := &storeWorld{Store: s, prefix: fmt.Sprintf("w%d-", worlds), known: naive{}}
		defer func() { changes += w.changes }()
		w.walk(t.Context(), r)
		w.clear(t.Context(), r)
		failing = false
	})
}

func ordered(t *testing.T, s Subject) {
	ctx := patient(t)
	r := map[string]store.Record{}
	for _, name := range []string{"a", "b", "c"} {
		r[name] = put(ctx, t, s.Store, vmOn(name, "n1"))
	}
	c, err := s.Store.Changes(ctx, store.Everything, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"c", "a", "c"} {
		r[name] = put(ctx, t, s.Store, r[name])
	}
	for _, f := range []store.Feed{store.Everything, {Host: "n1"}} {
		got, err := s.Store.Changes(ctx, f, c.Next)
		if err != nil {
			t.Fatal(err)
		}
		if got.Reset {
			continue
		}
		same(t, "what changed", []store.Record{r["a"], r["c"]}, last(got.Records))
		again, err := s.Store.Changes(ctx, f, got.Next)
		if err != nil || len(again.Records)+len(again.Gone) > 0 && !again.Reset {
			t.Errorf("nothing has changed since: %+v, %v", again, err)
		}
	}
}

// last keeps the last mention of each record.
func last(records []store.Record) []store.Record {
	var kept []store.Record
	for i, r := range records {
		if !slices.ContainsFunc(records[i+1:], func(l store.Record) bool {
			return l.Key() == r.Key()
		}) {
			kept = append(kept, r)
		}
	}
	return kept
}

func leaving(t *testing.T, s Subject) {
	ctx := patient(t)
	feed := store.Feed{Host: "n1"}
	vm := put(ctx, t, s.Store, vmOn("v", "n1"))
	c, err := s.Store.Changes(ctx, feed, 0)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the feed", []store.Record{vm}, c.Records)
	vm = put(ctx, t, s.Store, moved(vm, "n2"))
	if c, err = s.Store.Changes(ctx, feed, c.Next); err != nil {
		t.Fatal(err)
	}
	if !c.Reset {
		same(t, "what left", []store.Record{vm}, last(c.Records))
	}
	put(ctx, t, s.Store, vm) // no longer the host's business
	if c, err = s.Store.Changes(ctx, feed, c.Next); err != nil || len(c.Records) > 0 {
		t.Errorf("%+v, %v of what has left", c, err)
	}
}

// reader keeps what it learns from one feed, as participants do.
type reader struct {
	feed  store.Feed
	since store.Revision
	known map[store.Key]store.Record
}

func follow(f store.Feed) *reader {
	return &reader{feed: f, known: map[store.Key]store.Record{}}
}

// pull catches up.
func (r *reader) pull(ctx context.Context, t tb, s store.Store) store.Changes {
	t.Helper()
	c, err := s.Changes(ctx, r.feed, r.since)
	if err != nil {
		t.Fatalf("Changes of %+v since %d: %v", r.feed, r.since, err)
	}
	if c.Next < r.since && !c.Reset {
		t.Fatalf("Changes of %+v since %d went back to %d", r.feed, r.since, c.Next)
	}
	if c.Reset {
		r.known = map[store.Key]store.Record{}
	}
	for _, rec := range c.Records {
		if slices.Contains(store.Feeds(rec), r.feed) {
			r.known[rec.Key()] = rec
		} else {
			delete(r.known, rec.Key())
		}
	}
	for _, key := range c.Gone {
		delete(r.known, key)
	}
	r.since = c.Next
	return c
}

// naive is the store as a map, and what a feed must come to.
type naive map[store.Key]store.Record

func (n naive) feed(f store.Feed) map[store.Key]store.Record {
	in := map[store.Key]store.Record{}
	for k, r := range n {
		if slices.Contains(store.Feeds(r), f) {
			in[k] = r
		}
	}
	return in
}

// storeWorld is a part of a store: the records whose names begin with a prefix.
type storeWorld struct {
	store.Store
	prefix  string
	known   naive
	changes int
}

// change puts, moves or deletes a drawn record.
func (w *storeWorld) change(ctx context.Context, t *rapid.T) {
	w.changes++
	prefix, n := w.prefix, w.known
	host := func(what string) hypervisor.HostName {
		h := rapid.SampledFrom([]string{"", "n1", "n2", "n3"}).Draw(t, what)
		if h == "" {
			return ""
		}
		return hypervisor.HostName(prefix + h)
	}
	name := prefix + rapid.SampledFrom([]string{"n1", "n2", "a"}).Draw(t, "name")
	var r store.Record
	switch rapid.SampledFrom(store.Kinds()).Draw(t, "kind") {
	case store.MigrationKind:
		r = &store.Migration{Spec: migration.Spec{ID: migration.ID(name)},
			State: migration.State{Source: host("source"), Target: host("target")}}
	case store.VMKind:
		r = vmOn(name, host("host"))
	case store.HostKind:
		r = &store.Host{Host: hypervisor.Host{Name: hypervisor.HostName(name)}}
	case store.RebuildKind:
		r = &store.Rebuild{VM: hypervisor.VMID(name), Source: host("source")}
	case store.LeaseKind:
		r = &store.Lease{Owner: name}
	case store.LeaderKind:
		r = &store.Leader{Name: name}
	case store.PlanKind:
		r = &store.Plan{Name: name}
	case store.MaintenanceKind:
		r = &store.Maintenance{Name: name}
	}
	key := r.Key()
	if old := n[key]; old != nil {
		if rapid.IntRange(0, 2).Draw(t, "delete") == 0 {
			remove(ctx, t, w, old)
			delete(n, key)
			return
		}
		r = r.WithVersion(old.RecordVersion())
	}
	n[key] = put(ctx, t, w, r)
}

// walk changes drawn records, and lets drawn readers catch up.
func (w *storeWorld) walk(ctx context.Context, t *rapid.T) {
	readers := []*reader{follow(store.Leases), follow(store.Everything)}
	for _, h := range []string{"n1", "n2", "n9"} {
		readers = append(readers, follow(store.Feed{Host: hypervisor.HostName(w.prefix + h)}))
	}
	check := func(r *reader) {
		r.pull(ctx, t, w)
		same(t, fmt.Sprintf("feed %+v", r.feed), w.known.feed(r.feed), r.of(w.prefix))
	}
	t.Repeat(map[string]func(*rapid.T){
		"something changes": func(t *rapid.T) {
			for range rapid.IntRange(1, 5).Draw(t, "changes") {
				w.change(ctx, t)
			}
		},
		"a reader catches up": func(t *rapid.T) {
			check(rapid.SampledFrom(readers).Draw(t, "reader"))
		},
		"a reader starts anew": func(t *rapid.T) {
			r := rapid.SampledFrom(readers).Draw(t, "reader")
			*r = *follow(r.feed)
		},
	})
	for _, r := range readers {
		check(r)
	}
}

// clear deletes what the walk has put.
func (w *storeWorld) clear(ctx context.Context, t *rapid.T) {
	for _, r := range w.known {
		remove(ctx, t, w, r)
	}
}

// of is what a reader knows of one world.
func (r *reader) of(prefix string) map[store.Key]store.Record {
	in := map[store.Key]store.Record{}
	for k, rec := range r.known {
		if len(k.Name) >= len(prefix) && k.Name[:len(prefix)] == prefix {
			in[k] = rec
		}
	}
	return in
}
