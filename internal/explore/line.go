package explore

import (
	"context"
	"errors"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/store"
)

// line is a process's connection to the store.
type line struct {
	w *World
	p int
}

// Get implements [store.Store].
func (l *line) Get(ctx context.Context, key store.Key) (store.Record, error) {
	if l.w.Look.died {
		return nil, &store.StoreError{Op: "Get", Key: key, Kind: store.Unavailable}
	}
	if err := l.w.refuse(l.p); err != nil {
		return nil, err
	}
	r, err := l.w.Store.Get(ctx, key)
	if r != nil && err == nil {
		l.w.saw(l.p, r.RecordVersion())
	}
	return r, err
}

// Put implements [store.Store].
func (l *line) Put(ctx context.Context, r store.Record, while ...store.Record) (
	store.Record, error) {
	if err := l.w.refuse(l.p); err != nil {
		return nil, err
	}
	fate := l.w.effect()
	if fate == Dies || fate == Refused {
		return nil, &store.StoreError{Op: "Put", Key: r.Key(), Kind: store.Unavailable}
	}
	before, _ := l.w.Store.Get(ctx, r.Key())
	stored, err := l.w.Store.Put(ctx, r, while...)
	if err != nil {
		return nil, err
	}
	l.w.wrote(before, stored)
	if fate == Unanswered {
		return nil, &store.StoreError{Op: "Put", Key: r.Key(), Kind: store.Unanswered}
	}
	l.w.saw(l.p, stored.RecordVersion())
	return stored, nil
}

// Delete implements [store.Store].
func (l *line) Delete(ctx context.Context, r store.Record, while ...store.Record) error {
	if err := l.w.refuse(l.p); err != nil {
		return err
	}
	fate := l.w.effect()
	if fate == Dies || fate == Refused {
		return &store.StoreError{Op: "Delete", Key: r.Key(), Kind: store.Unavailable}
	}
	err := l.w.Store.Delete(ctx, r, while...)
	l.w.touch(theStore)
	l.w.forget()
	if err == nil && fate == Unanswered {
		return &store.StoreError{Op: "Delete", Key: r.Key(), Kind: store.Unanswered}
	}
	return err
}

// Changes implements [store.Store]. A reader of an old view still learns everything
// when it starts: a process without any view cannot be stale.
func (l *line) Changes(ctx context.Context, f store.Feed, since store.Revision) (
	store.Changes, error) {
	switch {
	case l.w.Look.died:
		return store.Changes{}, &store.StoreError{Op: "Changes", Kind: store.Unavailable}
	case l.w.Look.stale && since != 0:
		return store.Changes{Next: since}, nil
	}
	if err := l.w.refuse(l.p); err != nil {
		return store.Changes{}, err
	}
	c, err := l.w.Store.Changes(ctx, f, since)
	for _, r := range c.Records {
		l.w.saw(l.p, r.RecordVersion())
	}
	l.w.Procs[l.p].Seen = c.Next
	return c, err
}

// phone is an agent's connection to its hypervisor.
type phone struct {
	w    *World
	real *fake.Host
}

var (
	errHungUp = errors.New("connection refused")
	errLost   = errors.New("the answer was lost")
)

// command does what changes something.
func (h *phone) command(op string, act func() error) error {
	fate := h.w.effect()
	if fate == Dies || fate == Refused {
		return &hypervisor.Error{Op: op, Kind: hypervisor.Transient, Err: errHungUp}
	}
	h.w.touch(theFabric)
	err := act()
	if err == nil && fate == Unanswered {
		return &hypervisor.Error{Op: op, Kind: hypervisor.Unknown, Err: errLost}
	}
	return err
}

func (h *phone) reach(op string) error {
	if h.w.Look.died {
		return &hypervisor.Error{Op: op, Kind: hypervisor.Transient, Err: errHungUp}
	}
	return nil
}

// Host implements [hypervisor.Hypervisor].
func (h *phone) Host(ctx context.Context) (hypervisor.Host, error) {
	if err := h.reach("Host"); err != nil {
		return hypervisor.Host{}, err
	}
	return h.real.Host(ctx)
}

// Domains implements [hypervisor.Hypervisor].
func (h *phone) Domains(ctx context.Context) ([]hypervisor.Domain, error) {
	if err := h.reach("Domains"); err != nil {
		return nil, err
	}
	return h.real.Domains(ctx)
}

// Domain implements [hypervisor.Hypervisor].
func (h *phone) Domain(ctx context.Context, vm hypervisor.VMID) (hypervisor.Domain, error) {
	if err := h.reach("Domain"); err != nil {
		return hypervisor.Domain{}, err
	}
	return h.real.Domain(ctx, vm)
}

// Progress implements [hypervisor.Hypervisor].
func (h *phone) Progress(ctx context.Context, job hypervisor.JobID) (hypervisor.Progress,
	error) {
	if err := h.reach("Progress"); err != nil {
		return hypervisor.Progress{}, err
	}
	return h.real.Progress(ctx, job)
}

// Receive implements [hypervisor.Hypervisor].
func (h *phone) Receive(ctx context.Context, in hypervisor.Incoming) (hypervisor.Address,
	error) {
	var address hypervisor.Address
	err := h.command("Receive", func() (err error) {
		address, err = h.real.Receive(ctx, in)
		return err
	})
	if err != nil {
		return "", err
	}
	return address, nil
}

// Migrate implements [hypervisor.Hypervisor].
func (h *phone) Migrate(ctx context.Context, out hypervisor.Outgoing) error {
	return h.command("Migrate", func() error { return h.real.Migrate(ctx, out) })
}

// Adjust implements [hypervisor.Hypervisor].
func (h *phone) Adjust(ctx context.Context, job hypervisor.JobID,
	a hypervisor.Adjustment) error {
	return h.command("Adjust", func() error { return h.real.Adjust(ctx, job, a) })
}

// Do implements [hypervisor.Hypervisor].
func (h *phone) Do(ctx context.Context, vm hypervisor.VMID, c hypervisor.Command) error {
	return h.command("Do", func() error { return h.real.Do(ctx, vm, c) })
}
