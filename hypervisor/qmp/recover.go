//go:build linux

package qmp

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// recover begins to go on with a post-copy whose connection broke. The target may not be reached for as long as
// others may wait: what is said to it is said without the domain's lock, and noted when it is known.
func (d move) recover(p found, address hypervisor.Address) error {
	switch {
	case !p.Job.PostCopied || p.VM == nil || !postcopy(p.Look.Migration):
		return qemu.Refuse(hypervisor.Conflict, "no post-copy of the job is broken")
	case d.Recovering != nil, p.Look.Migration == qemu.PostcopyConnects, p.Look.Migration == qemu.PostcopyRecover:
		return nil
	case p.Look.Migration == qemu.PostcopyActive && time.Since(d.WentOn) < d.Node.Timeout:
		return nil // the caller has seen it before it went on: it is not silent
	}
	if _, _, _, err := parsePeer(address); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(d.Node.Life)
	d.Recovering = cancel
	out := hypervisor.Outgoing{Job: p.Job.ID, VM: d.ID, Address: address, Options: p.Job.Options}
	d.Node.Running.Go(func() {
		defer cancel()
		d.recovered(ctx, d.reach(ctx, p.VM, p.Rec.VM, out))
	})
	return nil
}

// reach brings the two sides of a broken post-copy together again. A link that is only silent is given up first:
// nothing times out by itself.
func (d move) reach(ctx context.Context, vm *qemu.Instance, is hypervisor.VM, out hypervisor.Outgoing) error {
	m, err := vm.QueryMigrate(ctx)
	if err == nil && m.Status == qemu.PostcopyActive {
		err = d.pausePostcopy(ctx, vm)
	}
	if err != nil {
		return err
	}
	conn, answer, err := d.ask(ctx, is, out, message{})
	if err != nil {
		return err
	}
	defer conn.Close()
	dial, cancel := context.WithTimeout(ctx, d.Node.Timeout) // or a port that answers nothing would end all attempts
	line, err := d.connect(dial, answer.URI)
	cancel()
	if err != nil {
		return err
	}
	if line != nil {
		defer line.Close() // QEMU has its own copy
	}
	if err := d.goesOn(ctx, vm, answer.URI, line); err != nil {
		return err
	}
	return d.await(ctx, vm, qemu.PostcopyPaused, false)
}

// goesOn lets QEMU go on with a broken post-copy, unless its job has ended meanwhile.
func (d move) goesOn(ctx context.Context, vm *qemu.Instance, uri string, line *os.File) error {
	_, release, err := d.Node.Lock(ctx, d.ID)
	if err != nil {
		return err
	}
	defer release()
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.over(ctx, vm, uri, line, true)
}

// recovered notes for people what has become of an attempt to recover that was not cancelled.
func (d move) recovered(ctx context.Context, err error) {
	_, release, held := d.Node.Lock(d.Node.Life, d.ID)
	if held != nil {
		return
	}
	defer release()
	if ctx.Err() != nil {
		return // the job has ended
	}
	d.Recovering = nil
	why := ""
	if err != nil {
		why = qemu.Text(err)
	} else {
		d.WentOn = time.Now()
	}
	if _, job, _ := d.Present(); sends(job) && job.Last.Error != why {
		_ = d.PutJob(false, func(j *jobRecord) { j.Last.Error = why })
	}
	d.Node.Changed(d.ID)
	d.Trigger()
}

// pausePostcopy gives up the connection of a post-copy. QEMU may find out by itself
// just then that it broke.
func (d move) pausePostcopy(ctx context.Context, vm *qemu.Instance) error {
	err := vm.Client.ExecuteOOB(ctx, "migrate-pause", nil, nil)
	if _, refused := errors.AsType[*qemu.Error](err); err != nil && !refused {
		return err
	}
	return d.await(ctx, vm, qemu.PostcopyPaused, true)
}

// await waits until a migration is, or is no more, in a status. QEMU takes a
// moment to pause post-copy, and to go on with it.
func (d move) await(ctx context.Context, vm *qemu.Instance, status qemu.MigrationStatus,
	is bool) error {
	ctx, cancel := context.WithTimeout(ctx, d.Node.Timeout)
	defer cancel()
	for {
		m, err := vm.QueryMigrate(ctx)
		if err != nil || (m.Status == status) == is {
			return err
		}
		select {
		case <-ctx.Done():
			return qemu.Refuse(hypervisor.Transient, "the broken post-copy is still %s", m.Status)
		case <-time.After(2 * time.Millisecond):
		}
	}
}
