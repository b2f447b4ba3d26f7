package store_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// A recordLog is records and a log of them, as a store keeps them.
type recordLog struct {
	log     *store.ChangeLog
	records map[store.Key]store.Record
}

func begin(at store.Revision, stored ...store.Record) *recordLog {
	b := &recordLog{records: map[store.Key]store.Record{}}
	for _, r := range stored {
		b.records[r.Key()] = r
	}
	b.log = store.NewChangeLog(at, maps.Values(b.records))
	return b
}

// set stores a record as the next revision; unset removes one.
func (b *recordLog) set(r store.Record) []store.Feed {
	next := b.log.At() + 1
	old := b.records[r.Key()]
	b.records[r.Key()] = r.WithVersion(store.Version(next))
	return b.log.Enter(next, old, b.records[r.Key()])
}

func (b *recordLog) unset(k store.Key) []store.Feed {
	old := b.records[k]
	delete(b.records, k)
	return b.log.Enter(b.log.At()+1, old, nil)
}

func (b *recordLog) since(f store.Feed, at store.Revision) store.Changes {
	return b.log.Since(f, at, func(k store.Key) store.Record { return b.records[k] })
}

func changesVmOn(name string, h hypervisor.HostName) *store.VM {
	return &store.VM{VM: hypervisor.VM{ID: hypervisor.VMID(name)}, Host: h}
}

// text is an answer in short.
func text(c store.Changes) string {
	var names []string
	for _, r := range c.Records {
		names = append(names, r.Key().Name)
	}
	for _, k := range c.Gone {
		names = append(names, "-"+k.Name)
	}
	s := fmt.Sprint(names, " ", c.Next)
	if c.Reset {
		s += " reset"
	}
	return s
}

func TestWhatHasChangedSince(t *testing.T) {
	n1, n2 := store.Feed{Host: "n1"}, store.Feed{Host: "n2"}
	b := begin(10, changesVmOn("a", "n1"), changesVmOn("b", "n1"), &store.Lease{Owner: "l"})
	told := [][]store.Feed{b.set(changesVmOn("a", "n2")), b.set(changesVmOn("b", "n1")),
		b.set(changesVmOn("a", "n2")), b.unset(changesVmOn("b", "").Key()), b.set(&store.Lease{Owner: "l"})}
	want := [][]store.Feed{{store.Everything, n2, n1}, {store.Everything, n1},
		{store.Everything, n2}, {store.Everything, n1}, {store.Leases}}
	if !slices.EqualFunc(told, want, slices.Equal[[]store.Feed]) {
		t.Errorf("told %v, want %v", told, want)
	}
	for _, c := range []struct {
		feed    store.Feed
		since   store.Revision
		want    string
		changed bool
	}{
		{store.Everything, 0, "[a] 15 reset", true},
		{store.Everything, 9, "[a] 15 reset", true}, // from before it began
		{store.Everything, 10, "[a -b] 15", true},
		{store.Everything, 13, "[-b] 15", true},
		{store.Everything, 14, "[] 15", false},
		{store.Everything, 15, "[] 15", false},
		{store.Everything, 16, "[a] 15 reset", true}, // from a time that never was
		{store.Leases, 14, "[l] 15", true},
		{store.Leases, 15, "[] 15", false},
		{n1, 0, "[] 15 reset", true},
		{n1, 10, "[a -b] 15", true}, // a has left
		{n1, 11, "[-b] 15", true},
		{n2, 10, "[a] 15", true},
		{n2, 13, "[] 15", false},
		{store.Feed{Host: "n9"}, 12, "[] 15", false},
		{store.Feed{Host: "n9"}, 1, "[] 15 reset", true},
	} {
		if got := text(b.since(c.feed, c.since)); got != c.want {
			t.Errorf("%+v since %d: %s, want %s", c.feed, c.since, got, c.want)
		}
		if got := b.log.Changed(c.feed, c.since); got != c.changed {
			t.Errorf("%+v has changed since %d: %t", c.feed, c.since, got)
		}
	}
	b.log.Forget()
	if got := text(b.since(store.Everything, 14)); got != "[a] 15 reset" {
		t.Errorf("after it forgot: %s", got)
	}
	if got := text(b.since(store.Everything, 15)); got != "[] 15" {
		t.Errorf("after it forgot: %s", got)
	}
}

// TestWhatIsForgotten has a reader of every revision: who is told of changes is told of
// all.
func TestWhatIsForgotten(t *testing.T) {
	b := begin(1000)
	b.set(changesVmOn("first", "n1"))
	const more = 3000
	for i := range more {
		b.set(changesVmOn(fmt.Sprint(i%7), "n1"))
	}
	resets := 0
	for since := store.Revision(1000); since <= b.log.At(); since++ {
		c := b.since(store.Feed{Host: "n1"}, since)
		want := int(min(7, b.log.At()-since))
		if c.Reset {
			resets++
			want = 8
		}
		if len(c.Records) != want {
			t.Fatalf("since %d: %d records, want %d", since, len(c.Records), want)
		}
		if behind := b.log.At() - since; c.Reset && behind < 512 {
			t.Errorf("only %d changes behind, and a reset", behind)
		}
	}
	if resets < more-1024 {
		t.Errorf("%d readers were told everything: the log has no bound", resets)
	}
}

// TestReadersMissNothing draws changes, and compares what readers know with what there is.
func TestReadersMissNothing(t *testing.T) {
	hosts := []hypervisor.HostName{"", "n1", "n2"}
	rapid.Check(t, func(t *rapid.T) {
		b := begin(store.Revision(rapid.IntRange(0, 9).Draw(t, "began")), changesVmOn("0", "n1"))
		known, since := map[string]bool{}, store.Revision(0)
		feed := store.Feed{Host: rapid.SampledFrom(hosts).Draw(t, "feed")}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			vm := changesVmOn(rapid.SampledFrom([]string{"0", "1", "2"}).Draw(t, "name"),
				rapid.SampledFrom(hosts).Draw(t, "host"))
			switch rapid.SampledFrom([]string{"set", "unset", "read", "forget"}).Draw(t, "do") {
			case "set":
				b.set(vm)
			case "unset":
				if b.records[vm.Key()] != nil {
					b.unset(vm.Key())
				}
			case "forget":
				b.log.Forget()
			case "read":
				since = learn(known, b.since(feed, since), feed)
				want := map[string]bool{}
				for k, r := range b.records {
					if slices.Contains(store.Feeds(r), feed) {
						want[k.Name] = true
					}
				}
				if !maps.Equal(want, known) {
					t.Fatalf("known %v, want %v", known, want)
				}
			}
		}
	})
}

// learn takes in an answer, and returns what to ask for next.
func learn(known map[string]bool, c store.Changes, f store.Feed) store.Revision {
	if c.Reset {
		clear(known)
	}
	for _, r := range c.Records {
		if delete(known, r.Key().Name); slices.Contains(store.Feeds(r), f) {
			known[r.Key().Name] = true
		}
	}
	for _, k := range c.Gone {
		delete(known, k.Name)
	}
	return cmp.Or(c.Next, 0)
}
