package backend

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/durable"
)

// A DomainLock is the lock of one domain, and the trigger of its worker: the goroutine that performs
// the domain's next steps. A backend's domain embeds one.
type DomainLock struct {
	lock    chan struct{} // holds a value while the domain is locked
	trigger chan struct{} // holds a value until the worker looks again

	// Node.mu guards these.

	refs   int  // calls that hold the lock or wait for it
	worker bool // Node.StartWorker has started one
}

// NewDomainLock returns the lock of a new domain.
func NewDomainLock() DomainLock {
	return DomainLock{lock: make(chan struct{}, 1), trigger: make(chan struct{}, 1)}
}

// A domain has the methods of its lock.
var _ interface{ domainLock() *DomainLock } = (*DomainLock)(nil)

func (l *DomainLock) domainLock() *DomainLock { return l }

// Trigger makes the domain's worker look again.
func (l *DomainLock) Trigger() {
	select {
	case l.trigger <- struct{}{}:
	default: // it is triggered already
	}
}

// Triggered receives after a call of Trigger.
func (l *DomainLock) Triggered() <-chan struct{} { return l.trigger }

// A Lockable is a backend's domain.
type Lockable interface {
	comparable
	domainLock() *DomainLock
	// Kept reports whether a record of it is kept. It is called with Node.mu held.
	Kept() bool
	// Trigger makes the domain's worker look again.
	Trigger()
}

// A Node is what the domains D of one host share, and its jobs J.
type Node[D Lockable, J JobRecord] struct {
	Room
	Name hypervisor.HostName
	// Kind returns the kind of an error from below.
	Kind func(error) hypervisor.Kind
	// Changed is called after a VM or its job has changed.
	Changed func(hypervisor.VMID)
	// New makes the domain of a VM. It fails if the VM's name is not valid here.
	New func(hypervisor.VMID) (D, error)
	// Jobs keeps jobs for the next process.
	Jobs interface {
		PutJob(j J, durable bool) error
		RemoveJob(id hypervisor.JobID) error
	}
	Life    context.Context // is cancelled when the host is closed
	Running sync.WaitGroup  // the goroutines and the locks that Close waits for

	mu      sync.Mutex
	domains map[hypervisor.VMID]D
	jobs    map[hypervisor.JobID]J // each is replaced, never changed
	closed  bool
}

// Fill puts in the domains and jobs of an earlier process.
func (n *Node[D, J]) Fill(jobs []J, domains map[hypervisor.VMID]D) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.domains, n.jobs = maps.Clone(domains), make(map[hypervisor.JobID]J, len(jobs))
	if n.domains == nil {
		n.domains = map[hypervisor.VMID]D{}
	}
	for _, j := range jobs {
		id, _ := j.keys()
		n.jobs[id] = j
	}
}

// Find returns the domain of a VM, or the zero value.
func (n *Node[D, J]) Find(vm hypervisor.VMID) D {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.domains[vm]
}

// All returns all domains, in no order.
func (n *Node[D, J]) All() []D {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Values(n.domains))
}

// Lock locks the domain of a VM, and returns what unlocks it.
func (n *Node[D, J]) Lock(ctx context.Context, vm hypervisor.VMID) (D, func(), error) {
	var none D
	d, err := n.ref(vm)
	if err != nil {
		return none, nil, err
	}
	unref := func() { n.unref(vm, d); n.Running.Done() }
	select {
	case d.domainLock().lock <- struct{}{}:
		return d, func() { <-d.domainLock().lock; unref() }, nil
	case <-n.Life.Done():
		unref()
		return none, nil, Errorf(hypervisor.Transient, "the host is being closed")
	case <-ctx.Done():
		unref()
		return none, nil, Errorf(hypervisor.Transient,
			"wait for another operation on it: %w", ctx.Err())
	}
}

// ref counts a call that is about to wait for the lock. Close waits for it.
func (n *Node[D, J]) ref(vm hypervisor.VMID) (D, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var none D
	if n.closed {
		return none, Errorf(hypervisor.Transient, "the host was closed")
	}
	d := n.domains[vm]
	if d == none {
		var err error
		if d, err = n.New(vm); err != nil {
			return none, Errorf(hypervisor.Invalid, "%w", err)
		}
		n.domains[vm] = d
	}
	n.Running.Add(1)
	d.domainLock().refs++
	return d, nil
}

// unref removes the domain after its last call, unless it has a worker or a record.
func (n *Node[D, J]) unref(vm hypervisor.VMID, d D) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := d.domainLock()
	if l.refs--; l.refs == 0 && !l.worker && !d.Kept() {
		delete(n.domains, vm)
	}
}

// StartWorker starts the worker of a domain, unless it has one, or the host is closed, or has
// another domain of that VM.
func (n *Node[D, J]) StartWorker(vm hypervisor.VMID, d D, run func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := d.domainLock()
	if l.worker || n.closed || n.Life.Err() != nil || n.domains[vm] != d {
		return
	}
	l.worker = true
	n.Running.Go(run)
}

// EndWorker reports whether the worker of a domain may end: it was not triggered again.
func (n *Node[D, J]) EndWorker(vm hypervisor.VMID, d D) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := d.domainLock()
	if len(l.trigger) > 0 && n.Life.Err() == nil {
		return false
	}
	l.worker = false
	if l.refs == 0 && !d.Kept() {
		delete(n.domains, vm)
	}
	return true
}

// Close waits until every goroutine of the host has ended and every domain is unlocked. Lock fails
// from then on.
func (n *Node[D, J]) Close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.Running.Wait()
}

// Job returns what is kept of a job, or nil.
func (n *Node[D, J]) Job(id hypervisor.JobID) J {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.jobs[id]
}

// PutJob keeps a job.
func (n *Node[D, J]) PutJob(j J, durable bool) error {
	if err := n.Jobs.PutJob(j, durable); err != nil {
		return Errorf(hypervisor.Transient, "write the journal: %w", err)
	}
	id, _ := j.keys()
	n.mu.Lock()
	n.jobs[id] = j
	n.mu.Unlock()
	return nil
}

// ForgetJob removes a job that no other host knows.
func (n *Node[D, J]) ForgetJob(id hypervisor.JobID) error {
	n.mu.Lock()
	delete(n.jobs, id)
	n.mu.Unlock()
	if err := n.Jobs.RemoveJob(id); err != nil {
		return Errorf(hypervisor.Transient, "write the journal: %w", err)
	}
	return nil
}

// known returns a job's VM and the host's role in it; "" and NoRole for a job that is not known.
func (n *Node[D, J]) known(id hypervisor.JobID) (hypervisor.VMID, Role) {
	n.mu.Lock()
	defer n.mu.Unlock()
	j, known := n.jobs[id]
	if !known {
		return "", NoRole
	}
	_, vm := j.keys()
	return vm, j.role()
}

// VMOf returns the VM of a job, for errors; "" if the job is not known.
func (n *Node[D, J]) VMOf(id hypervisor.JobID) hypervisor.VMID {
	vm, _ := n.known(id)
	return vm
}

// Change changes a VM under its domain's lock, and triggers its worker.
func (n *Node[D, J]) Change(ctx context.Context, op string, vm hypervisor.VMID,
	act func(D) error) error {
	if err := n.CheckContext(ctx, op, vm); err != nil {
		return err
	}
	d, release, err := n.Lock(ctx, vm)
	if err != nil {
		return n.Explain(op, vm, err)
	}
	defer d.Trigger() // there may be a next step now
	defer release()   // also when act panics: Close waits for it
	if err = gone(ctx); err == nil {
		err = act(d)
	}
	return n.Explain(op, vm, err)
}

// Adjust is Change for a job that this host sends.
func (n *Node[D, J]) Adjust(ctx context.Context, id hypervisor.JobID, a hypervisor.Adjustment,
	act func(D) error) error {
	op := OpName(a)
	vm, role := n.known(id)
	if role != Source {
		return n.Explain(op, vm, Errorf(hypervisor.NotFound,
			"no job %q is sent from here", id))
	}
	return n.Change(ctx, op, vm, act)
}

// CheckContext returns an error if the caller's context has ended.
func (n *Node[D, J]) CheckContext(ctx context.Context, op string, vm hypervisor.VMID) error {
	return n.Explain(op, vm, gone(ctx))
}

func gone(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return Errorf(hypervisor.Transient, "%w", err)
	}
	return nil
}

// Explain completes an error with the operation, the VM and the host, and says what may be
// done about it.
func (n *Node[D, J]) Explain(op string, vm hypervisor.VMID, err error) error {
	if err == nil {
		return nil
	}
	return &hypervisor.Error{Op: op, Host: n.Name, VM: vm, Kind: n.Kind(err), Err: Bare(err)}
}

// NotOpened completes the error of a host that cannot be opened. Kind returns the kind of an error
// from below; what has none is Invalid, and another owner of the directory is a Conflict.
func NotOpened(host hypervisor.HostName, err error, kind func(error) hypervisor.Kind) error {
	k := kind(err)
	if _, owned := errors.AsType[*durable.LockedError](err); owned {
		k = hypervisor.Conflict
	}
	if k == hypervisor.Unknown {
		k = hypervisor.Invalid
	}
	return &hypervisor.Error{Op: "New", Host: host, Kind: k, Err: Bare(err)}
}
