package changes_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/record"
	"github.com/godwit-vm/godwit/record/changes"
)

// books are records and a log of them, as a store keeps them.
type books struct {
	log     *changes.Log
	records map[record.Key]record.Record
}

func begin(at record.Revision, stored ...record.Record) *books {
	b := &books{records: map[record.Key]record.Record{}}
	for _, r := range stored {
		b.records[r.Key()] = r
	}
	b.log = changes.New(at, maps.Values(b.records))
	return b
}

// set stores a record as the next revision; unset removes one.
func (b *books) set(r record.Record) []record.Feed {
	next := b.log.At() + 1
	old := b.records[r.Key()]
	b.records[r.Key()] = r.With(record.Version(next))
	return b.log.Enter(next, old, b.records[r.Key()])
}

func (b *books) unset(k record.Key) []record.Feed {
	old := b.records[k]
	delete(b.records, k)
	return b.log.Enter(b.log.At()+1, old, nil)
}

func (b *books) since(f record.Feed, at record.Revision) record.Changes {
	return b.log.Since(f, at, func(k record.Key) record.Record { return b.records[k] })
}

func vmOn(name string, h hypervisor.HostName) *record.VM {
	return &record.VM{VM: hypervisor.VM{ID: hypervisor.VMID(name)}, Host: h}
}

// text is an answer in short.
func text(c record.Changes) string {
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
	n1, n2 := record.Feed{Host: "n1"}, record.Feed{Host: "n2"}
	b := begin(10, vmOn("a", "n1"), vmOn("b", "n1"), &record.Lease{Owner: "l"})
	told := [][]record.Feed{b.set(vmOn("a", "n2")), b.set(vmOn("b", "n1")),
		b.set(vmOn("a", "n2")), b.unset(vmOn("b", "").Key()), b.set(&record.Lease{Owner: "l"})}
	want := [][]record.Feed{{record.Everything, n2, n1}, {record.Everything, n1},
		{record.Everything, n2}, {record.Everything, n1}, {record.Signs}}
	if !slices.EqualFunc(told, want, slices.Equal[[]record.Feed]) {
		t.Errorf("told %v, want %v", told, want)
	}
	for _, c := range []struct {
		feed    record.Feed
		since   record.Revision
		want    string
		changed bool
	}{
		{record.Everything, 0, "[a] 15 reset", true},
		{record.Everything, 9, "[a] 15 reset", true}, // from before it began
		{record.Everything, 10, "[a -b] 15", true},
		{record.Everything, 13, "[-b] 15", true},
		{record.Everything, 14, "[] 15", false},
		{record.Everything, 15, "[] 15", false},
		{record.Everything, 16, "[a] 15 reset", true}, // from a time that never was
		{record.Signs, 14, "[l] 15", true},
		{record.Signs, 15, "[] 15", false},
		{n1, 0, "[] 15 reset", true},
		{n1, 10, "[a -b] 15", true}, // a has left
		{n1, 11, "[-b] 15", true},
		{n2, 10, "[a] 15", true},
		{n2, 13, "[] 15", false},
		{record.Feed{Host: "n9"}, 12, "[] 15", false},
		{record.Feed{Host: "n9"}, 1, "[] 15 reset", true},
	} {
		if got := text(b.since(c.feed, c.since)); got != c.want {
			t.Errorf("%+v since %d: %s, want %s", c.feed, c.since, got, c.want)
		}
		if got := b.log.Changed(c.feed, c.since); got != c.changed {
			t.Errorf("%+v has changed since %d: %t", c.feed, c.since, got)
		}
	}
	b.log.Forget()
	if got := text(b.since(record.Everything, 14)); got != "[a] 15 reset" {
		t.Errorf("after it forgot: %s", got)
	}
	if got := text(b.since(record.Everything, 15)); got != "[] 15" {
		t.Errorf("after it forgot: %s", got)
	}
}

// TestWhatIsForgotten has a reader of every revision: who is told of changes is told of
// all.
func TestWhatIsForgotten(t *testing.T) {
	b := begin(1000)
	b.set(vmOn("first", "n1"))
	const more = 3000
	for i := range more {
		b.set(vmOn(fmt.Sprint(i%7), "n1"))
	}
	resets := 0
	for since := record.Revision(1000); since <= b.log.At(); since++ {
		c := b.since(record.Feed{Host: "n1"}, since)
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
		b := begin(record.Revision(rapid.IntRange(0, 9).Draw(t, "began")), vmOn("0", "n1"))
		known, since := map[string]bool{}, record.Revision(0)
		feed := record.Feed{Host: rapid.SampledFrom(hosts).Draw(t, "feed")}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			vm := vmOn(rapid.SampledFrom([]string{"0", "1", "2"}).Draw(t, "name"),
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
					if slices.Contains(record.Feeds(r), feed) {
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
func learn(known map[string]bool, c record.Changes, f record.Feed) record.Revision {
	if c.Reset {
		clear(known)
	}
	for _, r := range c.Records {
		if delete(known, r.Key().Name); slices.Contains(record.Feeds(r), f) {
			known[r.Key().Name] = true
		}
	}
	for _, k := range c.Gone {
		delete(known, k.Name)
	}
	return cmp.Or(c.Next, 0)
}
