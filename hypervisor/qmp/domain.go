//go:build linux

package qmp

// This file is a VM on its host: its record, its QEMU, its lock, and its
// worker, one goroutine that performs its next steps.
//
//	look → next step (statemachine.go) → do it → look …
//
// A change of a domain holds its lock. Readers do not: a record is replaced and
// never changed. Dying at any instruction does no harm: Adopt goes on from the
// journal and from what QEMU says.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// A domain is a VM on this host, or the place for one.
type domain struct {
	backend.DomainLock
	Node *node
	ID   hypervisor.VMID

	// The lock guards these: the connection to the target's host, if it is open,
	// and the functions that cancel the announcement to it that the guest has
	// stopped, and the attempt to recover a broken post-copy, while that goes on;
	// and when such an attempt has succeeded.

	Link       *peerConn
	Announcing context.CancelFunc
	Recovering context.CancelFunc
	WentOn     time.Time

	mu       sync.Mutex
	rec      *domainRecord      // replaced, never changed; nil: the host has no such VM
	vm       *qemu.Instance     // its QEMU, if it has one
	looks    int                // how many have begun
	seen     look               // by the latest of them
	latest   int                // which that is
	counting hypervisor.JobID   // whose figures follow
	counted  qemu.RAM           // as QEMU told them last
	silent   time.Time          // since when it has not answered; zero: it has
	expected *qemu.Subscription // to the end of the present transfer
	ended    *ending            // what it has told
	off      bool               // meanwhile the guest has shut down
	crossing switchOver         // whether it came to its switch-over
}

// Kept reports whether something is kept of the domain.
func (d *domain) Kept() bool { return d.Record() != nil }

// Record returns what is kept of the domain; nil is nothing. It must not be changed.
func (d *domain) Record() *domainRecord {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rec
}

// Process returns the domain's QEMU; nil is none.
func (d *domain) Process() *qemu.Instance {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.vm
}

// Present returns one moment of the domain: what is kept of it and of its job,
// and its QEMU.
func (d *domain) Present() (*domainRecord, *jobRecord, *qemu.Instance) {
	d.mu.Lock()
	rec, vm := d.rec, d.vm
	d.mu.Unlock()
	if rec == nil {
		return nil, nil, vm
	}
	return rec, d.Node.Job(rec.Job), vm
}

// Put keeps a changed copy of the record. The caller holds the domain's lock.
func (d *domain) Put(durable bool, change func(*domainRecord)) error {
	rec := *d.Record()
	change(&rec)
	return d.Set(&rec, durable)
}

// Set keeps another record. The caller holds the domain's lock.
func (d *domain) Set(rec *domainRecord, durable bool) error {
	if err := d.Node.Journal.Put(rec, durable); err != nil {
		return qemu.Refuse(hypervisor.Transient, "write the journal: %v", err)
	}
	d.mu.Lock()
	d.rec = rec
	d.mu.Unlock()
	d.Node.Changed(d.ID)
	return nil
}

// Define notes what the VM is.
func (d *domain) Define(vm hypervisor.VM) error {
	return d.Put(true, func(r *domainRecord) { r.VM = vm })
}

// PutJob keeps a changed copy of the domain's job. The caller holds the domain's lock.
func (d *domain) PutJob(durable bool, change func(*jobRecord)) error {
	job := *d.Node.Job(d.Record().Job)
	change(&job)
	err := d.Node.PutJob(&job, durable)
	d.Node.Changed(d.ID)
	return err
}

// Remove forgets the domain. Its files go with it.
func (d *domain) Remove() error {
	if err := d.dropMove(); err != nil {
		return err
	}
	if err := d.Node.Journal.Remove(d.ID); err != nil {
		return qemu.Refuse(hypervisor.Transient, "remove its files: %v", err)
	}
	d.mu.Lock()
	d.rec, d.vm = nil, nil
	d.mu.Unlock()
	d.Node.Unreserve(d.ID)
	d.Node.Changed(d.ID)
	return nil
}

// Look asks QEMU how the domain is. The migration is asked for first: a guest that
// stops in between is seen to have stopped for it.
func (d *domain) Look(ctx context.Context) (look, qemu.Migration, error) {
	rec, job, vm := d.Present()
	var m qemu.Migration
	if rec == nil || vm == nil || vm.Ended() {
		return look{}, m, nil
	}
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, d.answerTimeout())
	defer cancel()
	l, begun := look{Alive: true}, d.look()
	var err error
	if job != nil && job.Stage.Live() {
		if m, err = vm.QueryMigrate(ctx); err == nil && job.Role == backend.Source {
			l.Mirrors, err = vm.Mirrors(ctx, rec.VM)
		}
	}
	if err == nil && rec.Move != nil && !rec.Move.Tidied {
		l.Copy, err = vm.Copy(ctx, rec.Move.Disk)
	}
	if err == nil {
		l.Run, err = vm.Status(ctx)
	}
	l.Migration = m.Status
	if err != nil && vm.Dies(ctx) {
		return look{}, qemu.Migration{}, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.vm != vm: // it is another's by now
	case err != nil && d.silent.IsZero() && caller.Err() == nil:
		d.silent = time.Now()
		d.Trigger() // Settle does not leave it at that
	case err == nil:
		d.silent, l.SwitchOver = time.Time{}, d.crossing
		if begun > d.latest { // none that began later has ended before
			d.seen, d.latest = l, begun
		}
		if job != nil {
			d.recount(job.ID, &m.RAM)
		}
	}
	if caller.Err() == nil {
		err = unanswered(vm, err)
	}
	return l, m, err
}

// unanswered says which QEMU it is that did not answer, and what can be done about it.
func unanswered(vm *qemu.Instance, err error) error {
	if _, refused := errors.AsType[*qemu.Error](err); err == nil || refused {
		return err
	}
	return fmt.Errorf("its QEMU, process %d, does not answer; it goes on by itself if it is only "+
		"stopped or busy; Kill ends it without an answer, unless its guest stands to move: %w",
		vm.Proc.Identity().PID, err)
}

// look numbers a look that begins.
func (d *domain) look() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.looks++
	return d.looks
}

// recount puts in what a job had sent as far as it was seen, where QEMU does not tell: of a
// migration that failed or was cancelled it forgets that at once. The caller holds mu.
// Source: QEMU 7.2 migration/migration.c (fill_source_migration_info).
func (d *domain) recount(job hypervisor.JobID, ram *qemu.RAM) {
	if ram.Total > 0 {
		d.counting, d.counted = job, *ram
	} else if d.counting == job {
		*ram = d.counted
	}
}

// briefly is how long a QEMU may take that has not answered before.
const briefly = 100 * time.Millisecond

// answerTimeout returns how long the domain's QEMU may take to answer.
func (d *domain) answerTimeout() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.silent.IsZero() {
		return min(briefly, d.Node.Timeout)
	}
	return d.Node.Timeout
}

// Answer describes the domain as it is; with an error, as it was seen last.
func (d *domain) Answer(ctx context.Context) (hypervisor.Domain, error) {
	m, err := d.Moment(ctx)
	if lost(m.Job, m.VM) {
		d.awaitReaped(ctx)
		m, err = d.Moment(ctx)
	}
	if err != nil && m.Rec != nil {
		m.Look = d.Seen()
		m.Look.Alive = m.VM != nil
	}
	rec, job := d.standing(m.Rec, m.Job, m.Look)
	if rec == nil {
		return hypervisor.Domain{VM: hypervisor.VM{ID: d.ID}}, err
	}
	answer := hypervisor.Domain{VM: rec.VM, State: stateOf(rec, job, m.Look), Job: rec.Job,
		Unresolved: rec.Unresolved || lost(job, m.VM), DirtyRate: rec.DirtyRate,
		Measured: rec.Measured, Moving: rec.Move.Progress(hypervisor.Bytes(m.Look.Copy.Current), hypervisor.Bytes(m.Look.Copy.Total))}
	return answer, err
}

// standing returns what there is of a VM that did not come, or has left, before that is cleared
// away as well as after.
func (d *domain) standing(rec *domainRecord, job *jobRecord, l look) (*domainRecord,
	*jobRecord) {
	for rec != nil && missed(rec, job, l) {
		if rec.Leaving {
			return nil, nil
		}
		if rec, job = rec.Before, nil; rec != nil {
			job = d.Node.Job(rec.Job)
		}
	}
	return rec, job
}

// lost reports whether the QEMU of a source has ended and it is not noted yet what became of
// its job: the VM may run at the target.
func lost(j *jobRecord, vm *qemu.Instance) bool {
	return j != nil && j.Role == backend.Source && j.Stage.Live() && !j.Cold && vm != nil &&
		vm.Ended()
}

// awaitReaped waits until that is noted, which takes a moment.
func (d *domain) awaitReaped(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, briefly)
	defer cancel()
	for {
		if _, job, vm := d.Present(); !lost(job, vm) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// A moment is what was seen of a domain, and what was kept of it then.
type moment struct {
	Look      look
	Migration qemu.Migration
	Rec       *domainRecord  // nil: the host has no such VM
	Job       *jobRecord     // that Rec names, or nil
	VM        *qemu.Instance // or nil
}

// Moment looks at the domain while nothing of it is noted, or, where that happens again and
// again, as well as can be.
func (d *domain) Moment(ctx context.Context) (moment, error) {
	was, before, _ := d.Present()
	for tries := 0; ; tries++ {
		l, of, err := d.Look(ctx)
		m := moment{Look: l, Migration: of}
		m.Rec, m.Job, m.VM = d.Present()
		if err != nil || m.Rec == was && m.Job == before || tries == 3 {
			return m, err
		}
		was, before = m.Rec, m.Job
	}
}

// Seen returns what was seen of the domain's QEMU last.
func (d *domain) Seen() look {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen
}

// HangUp closes the connection to the target's host, and ends what is tried to reach it.
func (d *domain) HangUp() {
	if d.Recovering != nil {
		d.Recovering()
		d.Recovering = nil
	}
	if d.Announcing != nil {
		d.Announcing()
		d.Announcing = nil
	}
	if d.Link != nil {
		d.Link.Close()
		d.Link = nil
	}
}

// found is a domain as a command finds it.
type found struct {
	moment
	State hypervisor.DomainState
}

// kept is what every backend keeps of it; nil is nothing.
func (f found) kept() *backend.Domain {
	if f.Rec == nil {
		return nil
	}
	return &f.Rec.Domain
}

// Conflict refuses something because of the domain's state.
func (f found) Conflict() error {
	if f.Look.Alive && !f.Look.Heard() {
		return qemu.Refuse(hypervisor.Conflict, "it may be %v: its QEMU, process %d, has not "+
			"answered since its host was opened", f.State, f.VM.Proc.Identity().PID)
	}
	return qemu.Refuse(hypervisor.Conflict, "it is %v", f.State)
}

// Find looks at the domain. One whose process has just ended is reaped first, and one that
// could not be is tried again; a process that is only about to be ended is ended first. With an
// error it answers what was seen last. The caller holds the domain's lock.
func (d *domain) Find(ctx context.Context) (found, error) {
	var f found
	var err error
	if f.Look, f.Migration, err = d.Look(ctx); err != nil {
		f.Look = d.Seen()
		f.Look.Alive = true
	}
	if f.Rec, f.Job, f.VM = d.Present(); f.VM != nil && (!f.Look.Alive || err == nil && ends(f.Rec, f.Job, f.Look)) {
		d.Settle(ctx)
		f.Rec, f.Job, f.VM = d.Present()
		f.Look.Alive = f.Look.Alive && f.VM != nil
	}
	if err == nil && lost(f.Job, f.VM) {
		err = qemu.Refuse(hypervisor.Transient, "it could not be noted that its QEMU has ended; "+
			"the VM may run at the target of job %s", f.Rec.Job)
	}
	if !f.Look.Alive { // what is left of it is no process
		f.VM = nil
	}
	if err = qemu.Observing(err); f.Rec != nil && missed(f.Rec, f.Job, f.Look) {
		if reaped := d.Reap(); reaped != nil {
			err = qemu.Refuse(hypervisor.Transient, "clear away what is left of a move: %v",
				reaped)
		}
		f.Rec, f.Job, f.VM = d.Present()
		f.Rec, f.Job = d.standing(f.Rec, f.Job, f.Look)
	}
	if f.Rec != nil {
		f.State = stateOf(f.Rec, f.Job, f.Look)
	}
	return f, err
}

// Undo puts back the record that there was before something that failed as a
// whole; nil is none. What cannot be noted is undone once more when we begin anew.
// The caller holds the domain's lock.
func (d *domain) Undo(before *domainRecord) error {
	d.Node.Unreserve(d.ID)
	err := error(nil)
	if before == nil {
		err = d.Remove()
	} else {
		err = d.Set(before, true)
	}
	d.mu.Lock()
	d.rec = before
	d.mu.Unlock()
	return err
}

// occupies reports whether a domain in the state has memory and CPUs of its host.
func occupies(s hypervisor.DomainState) bool {
	return s != hypervisor.Absent && s != hypervisor.Shutoff && s != hypervisor.Crashed
}
