package agent_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/store"
)

// todoNaive is what a List promises, with everything kept under its key.
type todoNaive struct {
	now    []store.Key
	later  workqueue.Timers[store.Key]
	failed map[store.Key]int
}

func (n *todoNaive) add(key store.Key) {
	if !slices.Contains(n.now, key) {
		n.now = append(n.now, key)
	}
}

func (n *todoNaive) take() (key store.Key, ok bool) {
	if len(n.now) > 0 {
		key, n.now, ok = n.now[0], n.now[1:], true
		n.later.Drop(key)
	}
	return key, ok
}

func (n *todoNaive) fail(key store.Key, now time.Time) {
	n.later.Drop(key)
	n.later.Set(key, now.Add(min(time.Second<<n.failed[key], 4*time.Second)))
	n.failed[key]++
}

func taken(t *rapid.T, l *agent.WorkQueue, n *todoNaive) bool {
	want, some := n.take()
	if got, ok := l.Take(); got != want || ok != some {
		t.Fatalf("Take() = %v, %v, want %v, %v", got, ok, want, some)
	}
	return some
}

// A list answers as its promise says, whatever is asked of it, and of however many.
func TestAListIsWhatItWasAskedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l agent.WorkQueue
		n := todoNaive{failed: map[store.Key]int{}}
		now := epoch
		many := rapid.SampledFrom([]int{1, 8, 40}).Draw(t, "many")
		draw := func(t *rapid.T) store.Key {
			return store.Key{Kind: rapid.SampledFrom([]store.Kind{store.VMKind,
				store.MigrationKind}).Draw(t, "kind"),
				Name: fmt.Sprint(rapid.IntRange(0, many).Draw(t, "name"))}
		}
		take := func(t *rapid.T) bool { return taken(t, &l, &n) }
		t.Repeat(map[string]func(*rapid.T){
			"some are to be looked at": func(t *rapid.T) {
				for range 4 {
					key := draw(t)
					l.Add(key)
					n.add(key)
				}
			},
			"some have time": func(t *rapid.T) {
				for range 4 {
					key := draw(t)
					at := now.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, "s")) * time.Second)
					l.At(key, at)
					n.later.Set(key, at)
				}
			},
			"time comes": func(t *rapid.T) {
				now = now.Add(time.Second)
				l.RequeueDue(now)
				for key, ok := n.later.Pop(now); ok; key, ok = n.later.Pop(now) {
					n.add(key)
				}
			},
			"one is taken": func(t *rapid.T) { take(t) },
			"all are taken": func(t *rapid.T) {
				for take(t) {
				}
			},
			"one fails": func(t *rapid.T) {
				key := draw(t)
				l.Failed(key, errors.New("broken"), now, time.Second, 4*time.Second)
				n.fail(key, now)
			},
			"one is done": func(t *rapid.T) {
				key := draw(t)
				l.Done(key)
				delete(n.failed, key)
			},
			"one is dropped": func(t *rapid.T) {
				key := draw(t)
				l.Drop(key)
				n.later.Drop(key)
				delete(n.failed, key)
			},
			"": func(t *rapid.T) {
				if got, want := l.Next(), n.later.Next(); !got.Equal(want) {
					t.Fatalf("Next() = %v, want %v", got, want)
				}
				if key := draw(t); l.Failing(key) != (n.failed[key] > 0) {
					t.Fatalf("Failing(%v) = %v", key, l.Failing(key))
				}
			},
		})
	})
}
