package controller

// This file keeps what hosts have given away, as the records say: who is at
// home where, and which moves hold room at their targets.
//
// The caller says what each VM holds, all of it, whenever that may have changed
// (reservations.Set); the reservations work out the difference. So they are the same whatever
// the order in which records are read, and nothing is kept that the records do not
// have. They are kept in a placement.Index, which finds a target fast. A
// placement.Ledger, which knows which move holds what, and for which tenant, is kept as well where
// there are quotas; elsewhere it is made on request.
//
// A VM that has moved is counted on both sides of the index until its record says so:
// what is given away is never too little.

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// reservationsConfig configures reservations.
type reservationsConfig struct {
	// Inbound limits the migrations on their way to one host; 0 is no limit, as is
	// [migration.Unlimited].
	Inbound int
	// Placement decides about targets. Its default filters are all, and its default
	// weighers prefer free memory and what groups ask for softly.
	Placement placement.Config
	// Quotas bound what a tenant's VMs and moves hold together. Default: none.
	Quotas map[string]placement.Amount
	// ResourceQuotas bound what VMs and moves are charged. Default: none.
	ResourceQuotas []placement.QuotaLimit
}

// usage is all that one VM holds.
type usage struct {
	VM    *placement.VM       // nil: its record is gone, and its size is not known
	Home  hypervisor.HostName // where it runs or rests; "" takes no room anywhere
	Moves []reservedMove
}

// reservedMove is one migration that holds room at its target.
type reservedMove struct {
	ID       hypervisor.JobID
	Target   hypervisor.HostName
	Landed   bool // it has succeeded, and the VM's record does not say so yet
	Saved    bool // nothing is on its way yet: room is held for what comes later
	Owner    string
	Deadline time.Time
}

// reservations are what VMs and moves hold of all hosts. They belong to one caller; [newReservations] makes them.
type reservations struct {
	config      reservationsConfig
	chooser     placement.Config // config.Placement with its defaults
	index       *placement.Index
	ledger      *placement.Ledger                      // nil without quotas
	charged     *placement.QuotaUsage                  // nil without resource quotas
	hosts       map[hypervisor.HostName]placement.Host // as their records say
	plain       placement.VM                           // scratch of vm: one that asks for room alone
	sizes       map[placement.Size]*placement.Size     // of VMs, for those that have the same
	free        placement.Host                         // scratch of confirms
	lastReasons lastReasons                            // what Why has said
	spare       []held                                 // memory of an allocation that has no more moves

	allocations []*allocation // of VMs that hold something, in no order
	// detailed: a host says more than its size, or a VM asks for more than a basic
	// condition. Until then nothing but sizes is kept, which is a lot faster.
	detailed bool
}

// newReservations returns no reservations.
func newReservations(c reservationsConfig) *reservations {
	if c.Inbound == migration.Unlimited {
		c.Inbound = 0
	}
	b := &reservations{config: c, chooser: chooser(c.Placement), detailed: !placement.BasicSuffices(),
		hosts: map[hypervisor.HostName]placement.Host{},
		sizes: map[placement.Size]*placement.Size{}}
	if len(c.ResourceQuotas) > 0 {
		b.charged = placement.NewQuotaUsage(c.ResourceQuotas)
	}
	b.rebuild()
	return b
}

// rebuild makes index and ledger anew.
func (b *reservations) rebuild() {
	b.index = placement.NewIndex(b.config.Inbound)
	b.ledger, b.lastReasons = nil, lastReasons{}
	if len(b.config.Quotas) > 0 {
		b.ledger, _ = placement.NewLedger() // no claims, no error
	}
	if !b.detailed {
		b.index.Use()
	}
	for _, name := range slices.Sorted(maps.Keys(b.hosts)) {
		b.open(b.hosts[name])
	}
	for _, a := range b.sorted() {
		b.put(a)
		if b.ledger != nil {
			b.enter(a, b.ledger)
		}
	}
}

// sorted returns all allocations by VM.
func (b *reservations) sorted() []*allocation {
	all := slices.Clone(b.allocations)
	slices.SortFunc(all, func(x, y *allocation) int { return cmp.Compare(x.id, y.id) })
	return all
}

// open gives a host an empty page.
func (b *reservations) open(h placement.Host) {
	if b.detailed {
		h.Load = &placement.Load{}
	}
	b.index.Update(h)
}

// Host takes in what a host's record says. A host that is closed, for whatever
// reason, is one that VMs do not enter.
func (b *reservations) Host(h *store.Host, closed bool) {
	said := placement.Host{Name: h.Host.Name, Memory: h.Host.Memory, CPUs: h.Host.CPUs,
		Labels: h.Labels, Taints: h.Taints, Down: h.NotReady || h.Fenced, Cordoned: closed,
		Facts: h.Facts}
	_, known := b.hosts[said.Name]
	b.hosts[said.Name] = said
	switch {
	case !b.detailed && placement.SaysMore(&said):
		b.detailed = true
		b.rebuild()
	case !known:
		b.open(said)
	default:
		now, _ := b.index.Get(said.Name)
		said.UsedMemory, said.UsedCPUs = now.UsedMemory, now.UsedCPUs
		said.Incoming, said.Groups, said.Load = now.Incoming, now.Groups, now.Load
		b.index.Update(said)
	}
}

// know adds a host that a VM or a move names: one without a record is down.
func (b *reservations) know(name hypervisor.HostName) {
	if _, known := b.hosts[name]; !known && name != "" {
		h := placement.Host{Name: name, Down: true}
		b.hosts[name] = h
		b.open(h)
	}
}

// notice makes the reservations keep all that there is to keep, from the first VM on that looks for a
// host and asks for more than a basic condition.
func (b *reservations) notice(vm *placement.VM) {
	if vm != nil && !b.detailed && placement.AsksMore(&vm.Constraints) {
		b.detailed = true
		b.rebuild()
	}
}

// Claims lists what each VM holds, and for which move.
func (b *reservations) Claims() []placement.Reservation {
	if b.ledger != nil {
		return b.ledger.Claims()
	}
	all := make([]placement.Reservation, 0, len(b.allocations))
	for _, a := range b.sorted() {
		if len(a.moves) == 0 && a.size != nil && a.home != "" {
			all = append(all, settled(b.vm(a), a.home)) // as most are
			continue
		}
		l, _ := placement.NewLedger() // what one VM holds is no matter of the others
		b.enter(a, l)
		all = append(all, l.Claims()...)
	}
	return all
}

// Get returns a host with its reservations.
func (b *reservations) Get(name hypervisor.HostName) (placement.Host, bool) { return b.index.Get(name) }
