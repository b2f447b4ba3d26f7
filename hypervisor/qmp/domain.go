package qmp

import (
	"context"
	"sync"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp/handover"
	"github.com/godwit-vm/godwit/hypervisor/qmp/journal"
	"github.com/godwit-vm/godwit/hypervisor/qmp/life"
	"github.com/godwit-vm/godwit/hypervisor/qmp/qapi"
)

// A domain is a VM on this host, or the place for one.
type domain struct {
	host *Host
	id   hypervisor.VMID
	turn chan struct{} // held by who changes the domain
	kick chan struct{} // wakes settle
	refs int           // who holds or awaits the turn; host.mu guards it

	// What it has of its host; host.mu guards it.

	memory hypervisor.Bytes
	cpus   int

	mu   sync.Mutex
	rec  *journal.Domain // replaced, never changed; nil: the host has no such VM
	vm   *instance       // its QEMU, if it has one
	seen life.Look       // last

	// Of who holds the turn.

	link       *handover.Conn // to the target's host, if it is open
	announcing context.CancelFunc
}

// hold takes the turn to change a VM, and returns what gives it back.
func (h *Host) hold(ctx context.Context, vm hypervisor.VMID) (*domain, func(), error) {
	h.mu.Lock()
	d := h.domains[vm]
	if d == nil {
		d = &domain{host: h, id: vm, turn: make(chan struct{}, 1), kick: make(chan struct{}, 1)}
		h.domains[vm] = d
	}
	d.refs++
	h.mu.Unlock()
	leave := func() {
		h.mu.Lock()
		if d.refs--; d.refs == 0 && d.record() == nil {
			delete(h.domains, vm)
		}
		h.mu.Unlock()
	}
	select {
	case d.turn <- struct{}{}:
		return d, func() { <-d.turn; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, nil, refuse(hypervisor.Transient, "wait for another operation on it: %w",
			ctx.Err())
	}
}

func (d *domain) record() *journal.Domain {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rec
}

func (d *domain) qemu() *instance {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.vm
}

// present returns one moment of the domain: what is kept of it and of its job,
// and its QEMU.
func (d *domain) present() (*journal.Domain, *journal.Job, *instance) {
	d.mu.Lock()
	rec, vm := d.rec, d.vm
	d.mu.Unlock()
	if rec == nil {
		return nil, nil, vm
	}
	return rec, d.host.job(rec.Job), vm
}

// put keeps a changed copy of the record. The caller holds the turn.
func (d *domain) put(durable bool, change func(*journal.Domain)) error {
	rec := *d.record()
	change(&rec)
	return d.set(&rec, durable)
}

func (d *domain) set(rec *journal.Domain, durable bool) error {
	if err := d.host.journal.Put(rec, durable); err != nil {
		return refuse(hypervisor.Transient, "write the journal: %v", err)
	}
	d.mu.Lock()
	d.rec = rec
	d.mu.Unlock()
	d.host.config.Changed(d.id)
	return nil
}

// putJob keeps a changed copy of the domain's job. The caller holds the turn.
func (d *domain) putJob(durable bool, change func(*journal.Job)) error {
	job := *d.host.job(d.record().Job)
	change(&job)
	err := d.host.putJob(&job, durable)
	d.host.config.Changed(d.id)
	return err
}

// remove forgets the domain. Its files go with it.
func (d *domain) remove() error {
	if err := d.host.journal.Remove(d.id); err != nil {
		return refuse(hypervisor.Transient, "remove its files: %v", err)
	}
	d.mu.Lock()
	d.rec = nil
	d.mu.Unlock()
	d.host.config.Changed(d.id)
	return nil
}

// look asks QEMU how the domain is. The migration is asked for first: a guest that
// stops in between is seen to have stopped for it.
func (d *domain) look(ctx context.Context) (life.Look, qapi.Migration, error) {
	rec, job, vm := d.present()
	var m qapi.Migration
	if rec == nil || vm == nil || vm.ended(ctx) {
		return life.Look{}, m, nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.host.config.Timeout)
	defer cancel()
	l := life.Look{Alive: true}
	var err error
	if job != nil && job.Stage.Live() {
		if m, err = vm.QueryMigrate(ctx); err == nil && job.Role == journal.Source {
			l.Mirrors, err = vm.mirrors(ctx, rec.VM)
		}
	}
	if err == nil {
		l.Run, err = vm.Status(ctx)
	}
	l.Migration = m.Status
	if err != nil && vm.dies(ctx) {
		return life.Look{}, qapi.Migration{}, nil
	}
	if err == nil {
		d.mu.Lock()
		d.seen = l
		d.mu.Unlock()
	}
	return l, m, err
}

// answer describes the domain as it is; with an error, as it was seen last.
func (d *domain) answer(ctx context.Context) (hypervisor.Domain, error) {
	l, _, err := d.look(ctx)
	rec, job, vm := d.present()
	if rec == nil {
		return hypervisor.Domain{VM: hypervisor.VM{ID: d.id}}, nil
	}
	if err != nil {
		d.mu.Lock()
		l = d.seen
		d.mu.Unlock()
		l.Alive = vm != nil
	}
	answer := hypervisor.Domain{VM: rec.VM, State: life.State(rec, job, l), Job: rec.Job,
		Unresolved: rec.Unresolved, DirtyRate: rec.DirtyRate, Measured: rec.Measured}
	return answer, err
}

// changed wakes whoever does what is due.
func (d *domain) changed() {
	select {
	case d.kick <- struct{}{}:
	default: // it is awake
	}
}
