// Package backend is a backend of one's own for godwit, as small as one can be: the VMs of a
// hypervisor whose interface has names of its own for them. It shows what
// [hypervisor.Hypervisor] asks of a backend, and how package conformance tells
// whether it does so.
//
// The hypervisor itself is a model here, [fake.Host], in the place of a vendor's client. What
// a backend adds to such a client, and what the suite looks at most closely:
//
//  1. What is not there is [hypervisor.Absent], and no error: a caller has to know that, not
//     that something went wrong.
//  2. What a command needs as evidence reaches the hypervisor unchanged. A backend proves
//     nothing on its own.
//  3. A job whose outcome is not known is not guessed to have failed.
//  4. Every error is a *[hypervisor.Error], in the caller's names, and keeps its kind.
//
// wrong.go has a backend that lacks each of the first three, and the test shows that the suite
// finds out. For production, see hypervisor/qmp and hypervisor/libvirt.
package backend

import (
	"context"
	"errors"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// prefix begins the hypervisor's names of the VMs that are ours. Others are not touched.
const prefix = "godwit/"

// A Backend is one host of that hypervisor.
type Backend struct{ client *fake.Host }

// New returns the backend of a host.
func New(client *fake.Host) *Backend { return &Backend{client} }

// theirs is the hypervisor's name of a VM, and ours the way back.
func theirs(id hypervisor.VMID) hypervisor.VMID {
	if id == "" {
		return "" // no name at all: the hypervisor says so
	}
	return prefix + id
}

func ours(id hypervisor.VMID) hypervisor.VMID {
	return hypervisor.VMID(strings.TrimPrefix(string(id), prefix))
}

// in gives an error the caller's names, and keeps its kind.
func in(err error) error {
	e, is := errors.AsType[*hypervisor.Error](err)
	if !is {
		return err
	}
	named := *e
	named.VM = ours(e.VM)
	return &named
}

// Host implements [hypervisor.Hypervisor].
func (b *Backend) Host(ctx context.Context) (hypervisor.Host, error) { return b.client.Host(ctx) }

// Domains implements [hypervisor.Hypervisor].
func (b *Backend) Domains(ctx context.Context) ([]hypervisor.Domain, error) {
	all, err := b.client.Domains(ctx)
	var kept []hypervisor.Domain
	for _, d := range all {
		if strings.HasPrefix(string(d.VM.ID), prefix) {
			d.VM.ID = ours(d.VM.ID)
			kept = append(kept, d)
		}
	}
	return kept, in(err)
}

// Domain implements [hypervisor.Hypervisor].
func (b *Backend) Domain(ctx context.Context, id hypervisor.VMID) (hypervisor.Domain, error) {
	d, err := b.client.Domain(ctx, theirs(id))
	d.VM.ID = ours(d.VM.ID)
	return d, in(err)
}

// Receive implements [hypervisor.Hypervisor].
func (b *Backend) Receive(ctx context.Context, i hypervisor.Incoming) (hypervisor.Address, error) {
	i.VM.ID = theirs(i.VM.ID)
	address, err := b.client.Receive(ctx, i)
	return address, in(err)
}

// Migrate implements [hypervisor.Hypervisor].
func (b *Backend) Migrate(ctx context.Context, o hypervisor.Outgoing) error {
	o.VM = theirs(o.VM)
	return in(b.client.Migrate(ctx, o))
}

// Progress implements [hypervisor.Hypervisor].
func (b *Backend) Progress(ctx context.Context, job hypervisor.JobID) (hypervisor.Progress,
	error) {
	p, err := b.client.Progress(ctx, job)
	return p, in(err)
}

// Adjust implements [hypervisor.Hypervisor].
func (b *Backend) Adjust(ctx context.Context, job hypervisor.JobID,
	a hypervisor.Adjustment) error {
	return in(b.client.Adjust(ctx, job, a))
}

// Do implements [hypervisor.Hypervisor]. What is named in a command is given the hypervisor's
// name, and nothing else is changed.
func (b *Backend) Do(ctx context.Context, id hypervisor.VMID, c hypervisor.Command) error {
	switch command := c.(type) {
	case hypervisor.Start:
		command.VM.ID = theirs(command.VM.ID)
		c = command
	case hypervisor.Resize:
		command.VM.ID = theirs(command.VM.ID)
		c = command
	case hypervisor.Activate:
		command.Stopped.VM = theirs(command.Stopped.VM)
		c = command
	case hypervisor.Resume:
		command.NeverRan.VM = theirs(command.NeverRan.VM)
		c = command
	case hypervisor.Abandon:
		command.Dead.VM = theirs(command.Dead.VM)
		c = command
	case hypervisor.Release:
		command.Moved.VM = theirs(command.Moved.VM)
		c = command
	}
	return in(b.client.Do(ctx, theirs(id), c))
}
