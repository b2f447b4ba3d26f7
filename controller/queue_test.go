package controller_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
)

// migrationEntry is a migration that waits.
type migrationEntry struct {
	spec  migration.Spec
	entry controller.QueueEntry
}

// Asked implements [controller.Item].
func (f *migrationEntry) Asked() *migration.Spec { return &f.spec }

// Entry implements [controller.Item].
func (f *migrationEntry) Entry() *controller.QueueEntry { return &f.entry }

// refusalGroup is the naive model of the queue: every migration that waits, and what the sources do that
// do not rest.
type refusalGroup struct {
	waiting map[*migrationEntry]hypervisor.HostName
	busy    map[hypervisor.HostName]controller.SourceState
}

// link is what the queue asks.
func (c refusalGroup) link(_ *migrationEntry, h hypervisor.HostName) controller.SourceState {
	if does, busy := c.busy[h]; busy {
		return does
	}
	return controller.Idle
}

// best returns the first of those whose source may send: by priority, then those whose source
// rests, then by precedence.
func (c refusalGroup) best() *migrationEntry {
	var all []*migrationEntry
	for f, h := range c.waiting {
		if c.link(f, h) != controller.Blocked {
			all = append(all, f)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return slices.MinFunc(all, func(a, b *migrationEntry) int {
		return cmp.Or(cmp.Compare(b.spec.Priority, a.spec.Priority),
			cmp.Compare(c.link(b, c.waiting[b]), c.link(a, c.waiting[a])),
			migration.ByPrecedence(a.spec, b.spec))
	})
}

func drawFlights(t *rapid.T) []*migrationEntry {
	flights := make([]*migrationEntry, rapid.IntRange(1, 12).Draw(t, "flights"))
	for i := range flights {
		flights[i] = &migrationEntry{spec: migration.Spec{
			ID:       migration.ID(fmt.Sprintf("m%d", i)),
			Priority: migration.Priority(50 * rapid.IntRange(0, 2).Draw(t, "priority")),
			Created:  time.Unix(rapid.Int64Range(0, 3).Draw(t, "created"), 0),
		}}
	}
	return flights
}

func TestTheQueueGivesTheBestWhoseSourceMaySend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q controller.Queue[*migrationEntry]
		model := refusalGroup{map[*migrationEntry]hypervisor.HostName{}, map[hypervisor.HostName]controller.SourceState{}}
		flights := rapid.SampledFrom(drawFlights(t))
		hosts := rapid.SampledFrom([]hypervisor.HostName{"n1", "n2", "n3"})
		t.Repeat(map[string]func(*rapid.T){
			"one begins to wait, or waits elsewhere": func(t *rapid.T) {
				f, h := flights.Draw(t, "flight"), hosts.Draw(t, "host")
				q.Add(f, h)
				model.waiting[f] = h
			},
			"one gives up": func(t *rapid.T) {
				f := flights.Draw(t, "flight")
				q.Remove(f)
				delete(model.waiting, f)
			},
			"a source sends, or has no slot left": func(t *rapid.T) {
				h := hosts.Draw(t, "host")
				model.busy[h] = min(rapid.SampledFrom([]controller.SourceState{controller.Blocked,
					controller.Busy}).Draw(t, "link"), model.link(nil, h))
			},
			"a slot is freed": func(t *rapid.T) {
				h := hosts.Draw(t, "host")
				if delete(model.busy, h); rapid.Bool().Draw(t, "another sends") {
					model.busy[h] = controller.Busy
				}
				q.Freed(h)
			},
			"one is taken": func(t *rapid.T) {
				want := model.best()
				if got := q.Take(model.link); got != want {
					t.Fatalf("took %s, want %s", nameOf(got), nameOf(want))
				}
				delete(model.waiting, want)
			},
		})
		// No migration starves: when all may send, all are taken, in order.
		for h := range model.busy {
			q.Freed(h)
		}
		clear(model.busy)
		for want := model.best(); want != nil; want = model.best() {
			if got := q.Take(model.link); got != want {
				t.Fatalf("took %s, want %s", nameOf(got), nameOf(want))
			}
			delete(model.waiting, want)
		}
		if f := q.Take(model.link); f != nil {
			t.Fatalf("took %s, none waits", nameOf(f))
		}
	})
}

// TestASourceIsReordered: worked by hand. The longest go first there, behind those of a higher priority; a migration that waits for
// another source keeps its place.
func TestASourceIsReordered(t *testing.T) {
	var q controller.Queue[*migrationEntry]
	late, lengths := false, map[migration.ID]hypervisor.Bytes{"a": 1, "b": 3, "c": 2, "x": 9, "y": 1}
	q.GoBy(func(f *migrationEntry) hypervisor.Bytes {
		if late && f.spec.ID < "x" {
			return lengths[f.spec.ID]
		}
		return 0
	})
	for i, id := range []migration.ID{"a", "x", "b", "c", "y", "urgent"} {
		f := &migrationEntry{spec: migration.Spec{ID: id, Created: time.Unix(int64(i), 0)}}
		host := hypervisor.HostName("n1")
		if id >= "x" {
			host = "n2"
		}
		if id == "urgent" {
			f.spec.Priority = 50
		}
		q.Add(f, host)
	}
	late = true
	q.Reorder("n1")
	q.Reorder("n3") // for which none waits
	var got []migration.ID
	for f := q.Take(refusalGroup{}.link); f != nil; f = q.Take(refusalGroup{}.link) {
		got = append(got, f.spec.ID)
	}
	if want := []migration.ID{"urgent", "x", "b", "c", "a", "y"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func nameOf(f *migrationEntry) migration.ID {
	if f == nil {
		return "none"
	}
	return f.spec.ID
}
