package stage

import (
	"context"
	"errors"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/record"
	"github.com/godwit-vm/godwit/sim/explore/internal/steps"
)

// line is a process's connection to the store.
type line struct {
	w *World
	p int
}

// Get implements [record.Store].
func (l *line) Get(ctx context.Context, key record.Key) (record.Record, error) {
	if l.w.Look.died {
		return nil, &record.StoreError{Op: "Get", Key: key, Kind: record.Unavailable}
	}
	if err := l.w.refuse(l.p); err != nil {
		return nil, err
	}
	r, err := l.w.Store.Get(ctx, key)
	if r != nil && err == nil {
		l.w.saw(l.p, r.At())
	}
	return r, err
}

// Put implements [record.Store].
func (l *line) Put(ctx context.Context, r record.Record, while ...record.Record) (
	record.Record, error) {
	if err := l.w.refuse(l.p); err != nil {
		return nil, err
	}
	fate := l.w.effect()
	if fate == steps.Dies || fate == steps.Refused {
		return nil, &record.StoreError{Op: "Put", Key: r.Key(), Kind: record.Unavailable}
	}
	before, _ := l.w.Store.Get(ctx, r.Key())
	stored, err := l.w.Store.Put(ctx, r, while...)
	if err != nil {
		return nil, err
	}
	l.w.wrote(before, stored)
	if fate == steps.Unanswered {
		return nil, &record.StoreError{Op: "Put", Key: r.Key(), Kind: record.Unanswered}
	}
	l.w.saw(l.p, stored.At())
	return stored, nil
}

// Delete implements [record.Store].
func (l *line) Delete(ctx context.Context, r record.Record, while ...record.Record) error {
	if err := l.w.refuse(l.p); err != nil {
		return err
	}
	fate := l.w.effect()
	if fate == steps.Dies || fate == steps.Refused {
		return &record.StoreError{Op: "Delete", Key: r.Key(), Kind: record.Unavailable}
	}
	err := l.w.Store.Delete(ctx, r, while...)
	l.w.touch(TheStore)
	l.w.forget()
	if err == nil && fate == steps.Unanswered {
		return &record.StoreError{Op: "Delete", Key: r.Key(), Kind: record.Unanswered}
	}
	return err
}

// Changes implements [record.Store]. Who looks at an old view still learns everything
// when it starts: a process without any view cannot be stale.
func (l *line) Changes(ctx context.Context, f record.Feed, since record.Revision) (
	record.Changes, error) {
	switch {
	case l.w.Look.died:
		return record.Changes{}, &record.StoreError{Op: "Changes", Kind: record.Unavailable}
	case l.w.Look.stale && since != 0:
		return record.Changes{Next: since}, nil
	}
	if err := l.w.refuse(l.p); err != nil {
		return record.Changes{}, err
	}
	c, err := l.w.Store.Changes(ctx, f, since)
	for _, r := range c.Records {
		l.w.saw(l.p, r.At())
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
	if fate == steps.Dies || fate == steps.Refused {
		return &hypervisor.Error{Op: op, Kind: hypervisor.Transient, Err: errHungUp}
	}
	h.w.touch(TheFabric)
	err := act()
	if err == nil && fate == steps.Unanswered {
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
