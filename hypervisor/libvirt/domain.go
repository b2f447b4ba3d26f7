//go:build linux && libvirt_dlopen

package libvirt

import (
	"context"
	"sync"
	"time"

	"libvirt.org/go/libvirt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/internal/conn"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/domxml"
)

// A domain is a VM on this host, or the place for one.
type domain struct {
	backend.DomainLock
	Node *node
	ID   hypervisor.VMID
	Name string // in libvirt

	mu       sync.Mutex
	rec      *domainRecord    // replaced, never changed; nil: nothing is kept of it
	call     *call            // that asked libvirt to migrate, if we did
	sent     hypervisor.Bytes // in the present migration, at most
	flow     flow             // since libvirt was asked
	stats    *conn.JobStats   // of the last migration, as libvirt told at its end
	rebooted bool
	stood    bool // for a switch-over, since libvirt was asked
	stoodAt  time.Time
	asking   chan struct{} // libvirt for figures; closed when it has answered
	told     bool          // it has answered
	last     observation   // that it gave, as far as figures go
	blind    bool          // events may have been lost since then
	xml      string        // that facts were read from
	facts    domxml.Facts
}

// A flow tells by libvirt's figures whether memory goes.
type flow struct {
	heard bool
	first hypervisor.Bytes // that had gone when libvirt was first heard
	flows bool
}

// Hear takes in how much memory has gone. What both sides say to each other before any goes is less than a page.
func (w *flow) Hear(gone hypervisor.Bytes) {
	if !w.heard {
		w.heard, w.first = true, gone
	}
	w.flows = w.flows || gone-w.first >= hypervisor.PageSize
}

// Kept reports whether something is kept of the domain.
func (d *domain) Kept() bool { return d.Record() != nil }

// Record returns what is kept of the domain; nil is nothing. It must not be changed.
func (d *domain) Record() *domainRecord {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rec
}

// Put changes what is kept of the domain. The caller holds the domain's lock.
func (d *domain) Put(durable bool, change func(*domainRecord)) error {
	next := domainRecord{Domain: backend.Domain{VM: hypervisor.VM{ID: d.ID}}, Name: d.Name}
	if old := d.Record(); old != nil {
		next = *old
	}
	change(&next)
	if err := d.Node.Journal.Put(&next, durable); err != nil {
		return backend.Errorf(hypervisor.Transient, "write the journal: %w", err)
	}
	d.mu.Lock()
	d.rec = &next
	d.mu.Unlock()
	return nil
}

// PutJob changes what is kept of the job that the domain names. The caller holds the
// domain's lock.
func (d *domain) PutJob(durable bool, change func(*jobRecord)) error {
	next := *d.Job()
	change(&next)
	return d.Node.PutJob(&next, durable)
}

// Remove forgets the domain. The caller holds the domain's lock.
func (d *domain) Remove() error {
	if err := d.dropMove(); err != nil {
		return err
	}
	if err := d.Node.Journal.Remove(d.ID); err != nil {
		return backend.Errorf(hypervisor.Transient, "write the journal: %w", err)
	}
	d.mu.Lock()
	d.rec, d.call, d.stats = nil, nil, nil
	d.mu.Unlock()
	d.Node.Unreserve(d.ID)
	return nil
}

// found is a domain as it was found: what is kept of it and of its job, and what
// libvirt shows.
type found struct {
	Rec      *domainRecord // nil: nothing is kept
	Job      *jobRecord    // that the record names, or nil
	Observed observation
	State    hypervisor.DomainState
	VM       hypervisor.VM
}

// Find looks at the domain.
func (d *domain) Find(ctx context.Context) (found, error) {
	f := found{Rec: d.Record()}
	if f.Rec != nil {
		f.Job = d.Node.Job(f.Rec.Job)
	}
	var err error
	if f.Observed, err = d.See(ctx); err != nil {
		return found{}, err
	}
	f.Observed.Run = receivedAs(f.Job, f.Observed.Run)
	m := f.Moving()
	if m != nil && f.Observed.Run.Alive() {
		f.Observed.Copy = d.copySeen(m, f.Observed.XML)
	}
	f.State, f.VM = stateOf(f.Rec, f.Job, f.Observed.domainLook), d.vm(f.Observed)
	if m.Active() { // libvirt shows the new image only when the guest is on it
		f.VM = f.VM.AtPath(m.Disk, m.Image())
	}
	return f, nil
}

// kept is what every backend keeps of it; nil is nothing.
func (f found) kept() *backend.Domain {
	if f.Rec == nil {
		return nil
	}
	return &f.Rec.Domain
}

// Conflict says that the present state is in the way.
func (f found) Conflict() error {
	if f.Job != nil && f.Job.Stage.Live() {
		return backend.Errorf(hypervisor.Conflict, "it is %v for job %s", f.State, f.Job.ID)
	}
	return backend.Errorf(hypervisor.Conflict, "it is %v", f.State)
}

// Unresolved reports whether the VM may run elsewhere. A post-copy that is being recovered is unresolved until
// it goes on.
func (f found) Unresolved() bool {
	switch {
	case f.Rec != nil && f.Rec.Unresolved:
		return !f.Job.Sends() || statusOf(f.Job, f.Observed.domainLook) == hypervisor.JobBroken
	case f.Observed.Run != runShutoffMigrated:
		return false
	case f.Job == nil || f.Job.Role != backend.Source:
		return true // another client has migrated it away
	}
	return f.Job.Stage == stageKept || f.Job.Stage == stageResumed
}

// Answer is what the host says of the domain.
func (d *domain) Answer(ctx context.Context) (hypervisor.Domain, error) {
	f, err := d.Find(ctx)
	if err != nil {
		return hypervisor.Domain{VM: hypervisor.VM{ID: d.ID}}, err
	}
	answer := hypervisor.Domain{VM: f.VM, State: f.State}
	if f.State == hypervisor.Absent {
		answer.VM = hypervisor.VM{ID: d.ID}
		return answer, nil
	}
	answer.Unresolved, answer.Job = f.Unresolved(), f.Observed.Mark.Job
	if f.Rec != nil {
		answer.DirtyRate, answer.Measured = f.Rec.DirtyRate, f.Rec.Measured
		answer.Moving = f.Rec.Move.Progress(d.copied(ctx, f))
		if f.Rec.Job != "" {
			answer.Job = f.Rec.Job
		}
	}
	return answer, nil
}

// Do does something to the domain in libvirt. What is not there answers NotFound.
func (d *domain) Do(ctx context.Context, act func(*libvirt.Domain) error) error {
	err := d.Node.Conn.Act(ctx, func(c *conn.Connect) error {
		dom, err := c.LookupDomainByName(d.Name)
		if err != nil {
			return err
		}
		defer func() { _ = dom.Free() }()
		return act(dom)
	})
	if k := backend.KindOf(err); err != nil && (k == hypervisor.Unknown || k == hypervisor.Transient) {
		return d.stuck(ctx, err)
	}
	return err
}

// stuck adds to an error what may be the cause, where libvirt lets nothing be done with the domain for ever:
//   - It shows it as one that it is starting. A libvirtd that was killed before it had noted the domain's process leaves it so,
//     and the next libvirtd starts nothing.
//     Source: libvirt v9.0.0 src/qemu/qemu_process.c (qemuProcessReconnectHelper leaves a domain without a process alone).
//   - It rests, and a post-copy of it was being recovered when it ended: libvirt 9.0 keeps that job.
//     Source: docs/known-hypervisor-faults.md.
func (d *domain) stuck(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statsTimeout)
	defer cancel()
	s, failed := conn.Ask(ctx, d.Node.Conn, func(c *conn.Connect) (observation, error) { return look(c, d.Name, false) })
	switch {
	case failed != nil:
		return err
	case s.Run.Rests() && backend.KindOf(err) == hypervisor.Unknown:
		return backend.Errorf(hypervisor.Unknown, "%w: the VM has ended; if it ended while its post-copy was recovered, libvirt keeps "+
			"a job of it: restart libvirtd, which no VM notices", backend.Bare(err))
	case s.Run != runPausedStarting:
		return err
	}
	return backend.Errorf(backend.KindOf(err), "%w: libvirt says that it is starting the VM; if that lasts, its libvirtd was killed in a "+
		"start: stop libvirtd, remove /run/libvirt/qemu/%s.xml if it says pid='0', start libvirtd", backend.Bare(err), d.Name)
}

// hear keeps what an event tells that cannot be asked for later, and reports whether that is
// all: then no look is needed.
func (d *domain) hear(e conn.Event) (all bool) {
	switch e.What {
	case conn.Rebooted:
		d.SetRebooted(true)
	case conn.Suspended:
		if e.Detail == conn.Migrated && !d.letGo() {
			d.SetStood()
			return d.switching() > 0
		}
	case conn.Iterated:
		return true // how far it has come is asked for
	case conn.Defined:
		j := d.Job()
		return j.Receives() && j.Seen // it persists as of now; that it runs is told apart
	case conn.JobCompleted:
		if e.Job != nil && e.Job.Operation == conn.MigrationOut {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.stats = e.Job
		}
	}
	return false
}

// Job returns what is kept of the job that the domain names, or nil.
func (d *domain) Job() *jobRecord {
	rec := d.Record()
	if rec == nil {
		return nil
	}
	return d.Node.Job(rec.Job)
}

// switching returns how much longer libvirt may take for the switch-over that it has begun:
// its call answers at the end. 0 is that it has not begun, or has taken too long.
func (d *domain) switching() time.Duration {
	calls := d.answer() == calling
	d.mu.Lock()
	defer d.mu.Unlock()
	if !calls || d.stoodAt.IsZero() {
		return 0
	}
	return max(0, stuck-time.Since(d.stoodAt))
}

// letGo reports whether the guest was paused to let it go: libvirt tells of that as of
// the stop for the switch-over.
func (d *domain) letGo() bool {
	j := d.Job()
	return j.Sends() && j.GuestPaused
}

// SetStood notes that the guest stood for the switch-over since libvirt was asked.
func (d *domain) SetStood() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stood = true
	if d.stoodAt.IsZero() {
		d.stoodAt = time.Now()
	}
}

// SetRebooted notes whether the guest has booted anew since it was asked to.
func (d *domain) SetRebooted(has bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rebooted = has
}

// Stats returns what libvirt told at the end of the last migration, or nil.
func (d *domain) Stats() *conn.JobStats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stats
}
