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

// A Seat is whose turn it is to change a domain. A backend's domain embeds one.
type Seat struct {
	turn chan struct{} // held by who changes the domain
	kick chan struct{} // wakes who does what is due

	// Node.mu guards these.

	refs int  // who holds or awaits the turn
	runs bool // a goroutine of Node.Start's
}

// NewSeat returns the seat of a new domain.
func NewSeat() Seat {
	return Seat{turn: make(chan struct{}, 1), kick: make(chan struct{}, 1)}
}

// A domain has the methods of its seat.
var _ interface{ seat() *Seat } = (*Seat)(nil)

func (s *Seat) seat() *Seat { return s }

// Kick wakes who does what is due of the domain.
func (s *Seat) Kick() {
	select {
	case s.kick <- struct{}{}:
	default: // it is awake
	}
}

// Kicked receives when the domain was kicked.
func (s *Seat) Kicked() <-chan struct{} { return s.kick }

// A Member is a backend's domain.
type Member interface {
	comparable
	seat() *Seat
	// Kept reports whether a record of it is kept. Node.mu is held when it is asked.
	Kept() bool
	// Kick has what is due of it done soon.
	Kick()
}

// A Node is what the domains D of one host share, and its jobs J.
type Node[D Member, J JobRecord] struct {
	Room
	Name hypervisor.HostName
	// Kind returns the kind of an error from below.
	Kind func(error) hypervisor.Kind
	// Changed is told that a VM or its job has changed.
	Changed func(hypervisor.VMID)
	// New makes the place for a VM. The error is that there can be none.
	New func(hypervisor.VMID) (D, error)
	// Jobs keeps jobs for the next process.
	Jobs interface {
		PutJob(j J, durable bool) error
		RemoveJob(id hypervisor.JobID) error
	}
	Life    context.Context // ends when everything is to be let go
	Running sync.WaitGroup  // what must have ended then

	mu      sync.Mutex
	domains map[hypervisor.VMID]D
	jobs    map[hypervisor.JobID]J // each is replaced, never changed
	closed  bool
}

// Fill puts in what an earlier process has left.
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

// Hold takes the turn to change a VM, and returns what gives it back.
func (n *Node[D, J]) Hold(ctx context.Context, vm hypervisor.VMID) (D, func(), error) {
	var none D
	d, err := n.enter(vm)
	if err != nil {
		return none, nil, err
	}
	leave := func() { n.leave(vm, d); n.Running.Done() }
	select {
	case d.seat().turn <- struct{}{}:
		return d, func() { <-d.seat().turn; leave() }, nil
	case <-n.Life.Done():
		leave()
		return none, nil, Errorf(hypervisor.Transient, "the host is being closed")
	case <-ctx.Done():
		leave()
		return none, nil, Errorf(hypervisor.Transient,
			"wait for another operation on it: %w", ctx.Err())
	}
}

// enter counts who is about to await a turn, who is waited for when the host is closed.
func (n *Node[D, J]) enter(vm hypervisor.VMID) (D, error) {
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
	d.seat().refs++
	return d, nil
}

func (n *Node[D, J]) leave(vm hypervisor.VMID, d D) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := d.seat()
	if s.refs--; s.refs == 0 && !s.runs && !d.Kept() {
		delete(n.domains, vm)
	}
}

// Start runs what does what is due of a domain, unless it runs, or the host is closed, or has
// another domain of that VM.
func (n *Node[D, J]) Start(vm hypervisor.VMID, d D, run func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := d.seat()
	if s.runs || n.closed || n.Life.Err() != nil || n.domains[vm] != d {
		return
	}
	s.runs = true
	n.Running.Go(run)
}

// Retire reports whether what Start runs may end: it is not wanted again.
func (n *Node[D, J]) Retire(vm hypervisor.VMID, d D) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := d.seat()
	if len(s.kick) > 0 && n.Life.Err() == nil {
		return false
	}
	s.runs = false
	if s.refs == 0 && !d.Kept() {
		delete(n.domains, vm)
	}
	return true
}

// Close returns when nothing of ours runs any more and no turn is held. No turn
// is given afterwards.
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

// ForgetJob removes a job that is not known elsewhere.
func (n *Node[D, J]) ForgetJob(id hypervisor.JobID) error {
	n.mu.Lock()
	delete(n.jobs, id)
	n.mu.Unlock()
	if err := n.Jobs.RemoveJob(id); err != nil {
		return Errorf(hypervisor.Transient, "write the journal: %w", err)
	}
	return nil
}

// known returns a job's VM and what the host is in it. Of a job that is not known it is nothing.
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

// VMOf returns the VM of a job, for errors; "" is not known.
func (n *Node[D, J]) VMOf(id hypervisor.JobID) hypervisor.VMID {
	vm, _ := n.known(id)
	return vm
}

// Change does something that changes a VM, when it is our turn.
func (n *Node[D, J]) Change(ctx context.Context, op string, vm hypervisor.VMID,
	act func(D) error) error {
	if err := n.Awaited(ctx, op, vm); err != nil {
		return err
	}
	d, release, err := n.Hold(ctx, vm)
	if err != nil {
		return n.Explain(op, vm, err)
	}
	if err = gone(ctx); err == nil {
		err = act(d)
	}
	release()
	d.Kick() // something may be due now
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

// Awaited refuses what its caller does not wait for any more.
func (n *Node[D, J]) Awaited(ctx context.Context, op string, vm hypervisor.VMID) error {
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
