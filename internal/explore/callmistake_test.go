package explore_test

import (
	"context"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// A mistake puts something that does wrong between the processes and what they call.
type mistake struct {
	hands   func(hypervisor.Hypervisor) hypervisor.Hypervisor // nil: none
	storage func(store.Store) store.Store                     // nil: none
}

func (m mistake) hypervisor(real hypervisor.Hypervisor) hypervisor.Hypervisor {
	if m.hands == nil {
		return real
	}
	return m.hands(real)
}

func (m mistake) store(real store.Store) store.Store {
	if m.storage == nil {
		return real
	}
	return m.storage(real)
}

// isFound plays worlds with a mistake in them until one of so many shows it.
func isFound(t *testing.T, m mistake, worlds uint64) {
	t.Helper()
	for seed := range worlds {
		if w := play(t, seed, m); w.broken != nil {
			t.Logf("found in world %d: %v", seed, w.broken)
			return
		}
	}
	t.Errorf("none of %d worlds shows the mistake", worlds)
}

// A flicker is a hypervisor that says of a target that did not come, once and for a moment,
// that it rests: a single wrong answer.
type flicker struct {
	hypervisor.Hypervisor
	waits hypervisor.JobID // what was still coming at the last look
}

// Domain implements [hypervisor.Hypervisor].
func (f *flicker) Domain(ctx context.Context, vm hypervisor.VMID) (hypervisor.Domain, error) {
	d, err := f.Hypervisor.Domain(ctx, vm)
	if d.State == hypervisor.Absent && f.waits != "" {
		d.State, d.Job = hypervisor.Shutoff, f.waits
	}
	f.waits = ""
	if d.State == hypervisor.Receiving {
		f.waits = d.Job
	}
	return d, err
}

// A backend that answers wrongly for a moment makes a target say that the VM has come.
func TestAFlickerIsFound(t *testing.T) {
	isFound(t, mistake{hands: func(h hypervisor.Hypervisor) hypervisor.Hypervisor {
		return &flicker{Hypervisor: h}
	}}, 200)
}

// A lazy hypervisor says that it has discarded a target, and leaves it.
type lazy struct{ hypervisor.Hypervisor }

// Do implements [hypervisor.Hypervisor].
func (l lazy) Do(ctx context.Context, vm hypervisor.VMID, c hypervisor.Command) error {
	if _, is := c.(hypervisor.Discard); is {
		return nil
	}
	return l.Hypervisor.Do(ctx, vm, c)
}

// The target's word that it will never run lets the source run again: it has to be true.
func TestADiscardWithoutEffectIsFound(t *testing.T) {
	isFound(t, mistake{hands: func(h hypervisor.Hypervisor) hypervisor.Hypervisor {
		return lazy{h}
	}}, 200)
}

// A careless store writes without looking at what the writing depends on.
type careless struct{ store.Store }

// Put implements [store.Store].
func (c careless) Put(ctx context.Context, r store.Record, while ...store.Record) (
	store.Record, error) {
	if old, err := c.Get(ctx, r.Key()); err == nil && old != nil {
		r = r.WithVersion(old.RecordVersion())
	}
	return c.Store.Put(ctx, r)
}

// A participant that stands before a write while another writes must not overwrite that: only between
// two calls of a look does another come in between.
func TestAStoreThatOverwritesIsFound(t *testing.T) {
	isFound(t, mistake{storage: func(s store.Store) store.Store { return careless{s} }}, 200)
}
