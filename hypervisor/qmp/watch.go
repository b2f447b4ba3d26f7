//go:build linux

package qmp

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-vm/godwit/internal/qemu"
)

// Attach makes a QEMU the domain's, and starts the domain's worker. The caller
// holds the domain's lock.
func (d *domain) Attach(in *qemu.Instance) {
	d.Unexpect() // it was told by the process before
	d.mu.Lock()
	d.vm, d.seen, d.silent = in, look{}, time.Time{}
	d.mu.Unlock()
	d.Node.Running.Go(func() { d.listen(in) })
	d.Node.Running.Go(func() { d.watch(in) })
}

// listen makes the worker look at a QEMU after an event that may bring a next step. A look at a QEMU that is about to hand over would only keep it waiting.
func (d *domain) listen(in *qemu.Instance) {
	ctx, cancel := context.WithCancel(d.Node.Life)
	defer cancel()
	stop := context.AfterFunc(ctx, in.Events.Close)
	defer stop()
	for {
		e, err := in.Events.Next(ctx)
		if _, gap := errors.AsType[*qemu.Gap](err); err != nil && !gap {
			return
		}
		if err != nil || d.matters(e) {
			d.Trigger()
		}
	}
}

// matters reports whether an event may bring a next step.
func (d *domain) matters(e qemu.Event) bool {
	switch e.Name {
	case "RESUME":
		return false
	case "STOP": // in post-copy it is the last thing that the target waits for
		rec, job, _ := d.Present()
		return rec != nil && job != nil && job.PostCopied
	case "MIGRATION":
		switch migrationStatus(e) {
		case qemu.Setup, qemu.Active, qemu.Device:
			return false
		}
	}
	return true
}

// watch is the domain's worker, until the process has ended and is reaped.
func (d *domain) watch(in *qemu.Instance) {
	for {
		over := in.Ended()
		wait := d.settle(d.Node.Life)
		if d.Process() != in {
			return
		}
		ended, lost := in.Proc.Done(), in.Client.Done()
		if over { // it could not be reaped, and tells no more
			ended, lost = nil, nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-d.Triggered():
		case <-ended:
		case <-lost:
			d.reconnect(in)
		case <-timer.C:
		case <-d.Node.Life.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// reconnect reaches a QEMU again whose monitor was lost, if it lives.
func (d *domain) reconnect(in *qemu.Instance) {
	if in.Dies(d.Node.Life) {
		return
	}
	again, ok := in.Client.(qemu.Reconnecter)
	if !ok || again.ConnectContext(d.Node.Life) != nil {
		select {
		case <-time.After(time.Second):
		case <-in.Proc.Done():
		case <-d.Node.Life.Done():
		}
	}
}
