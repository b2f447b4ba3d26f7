package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// An Amount is what a VM takes of a host.
type Amount struct {
	Memory hypervisor.Bytes `json:"memory,omitempty"`
	CPUs   int              `json:"cpus,omitempty"`
	Disk   hypervisor.Bytes `json:"disk,omitempty"`
}

// AmountOf returns what vm takes.
func AmountOf(vm *VM) Amount { return Amount{vm.Demand(), vm.DemandCPUs(), vm.Disk} }

func (a Amount) plus(b Amount) Amount {
	return Amount{a.Memory + b.Memory, a.CPUs + b.CPUs, a.Disk + b.Disk}
}

func (a Amount) minus(b Amount) Amount {
	return Amount{a.Memory - b.Memory, a.CPUs - b.CPUs, a.Disk - b.Disk}
}

// most bounds an amount, so that sums of many do not overflow.
const most = 1 << 53

func (a Amount) sane() bool {
	return a.Memory >= 0 && a.CPUs >= 0 && a.Disk >= 0 &&
		a.Memory <= most && a.CPUs <= most && a.Disk <= most
}

// A Reservation is what one VM or one move holds of a host.
type Reservation struct {
	VM hypervisor.VMID `json:"vm"`
	// Move is the move that holds the claim; "" when the VM itself does.
	Move   hypervisor.JobID    `json:"move,omitempty"`
	Host   hypervisor.HostName `json:"host"`
	Tenant string              `json:"tenant,omitempty"`
	Amount Amount              `json:"amount"`
	// By is the move that made the claim, while it lasts; "" otherwise. Owner
	// and Deadline are that move's.
	By       hypervisor.JobID `json:"by,omitempty"`
	Owner    string           `json:"owner,omitempty"`
	Deadline time.Time        `json:"deadline,omitzero"`
}

// A ReservationPlan is a move that wants a reservation.
type ReservationPlan struct {
	ID     hypervisor.JobID
	VM     hypervisor.VMID
	Target hypervisor.HostName
	Tenant string // of a VM that holds nothing yet; otherwise its claim's counts
	Amount Amount // on the target
	Owner  string // the requester
	// Now is when; Deadline is until when the move should have ended, zero for
	// never.
	Now, Deadline time.Time
}

// Limits are what Accept checks. Nil is not checked: a forced move passes nil.
type Limits struct {
	Room  *Amount // what VMs may use of the target together
	Quota *Amount // what the tenant may use of all hosts together
}

// A Step is what happened to a claim.
type ReservationStep string

// The steps.
const (
	Settled      ReservationStep = "settled"
	StepAccepted ReservationStep = "accepted"
	Succeeded    ReservationStep = "succeeded"
	RolledBack   ReservationStep = "rolled-back"
	Dropped      ReservationStep = "dropped"
)

// An Entry is one line of the audit.
type LedgerEntry struct {
	At     time.Time           `json:"at"`
	Step   ReservationStep     `json:"step"`
	Move   hypervisor.JobID    `json:"move,omitempty"`
	VM     hypervisor.VMID     `json:"vm"`
	Source hypervisor.HostName `json:"source,omitempty"`
	Target hypervisor.HostName `json:"target,omitempty"`
	Owner  string              `json:"owner,omitempty"`
	Amount Amount              `json:"amount"`
}

// A Ledger holds claims. It belongs to one caller: it has no lock. [NewLedger] makes
// one.
type Ledger struct {
	held    map[hypervisor.VMID]*Reservation  // by the VMs
	moving  map[hypervisor.JobID]*Reservation // by the moves
	open    map[hypervisor.JobID]hypervisor.VMID
	hosts   map[hypervisor.HostName]*Amount // those that are not zero
	tenants map[string]*Amount
}

// NewLedger returns a ledger of claims, as [Ledger.Claims] listed them. Claims that
// cannot be together are an error that says which.
func NewLedger(claims ...Reservation) (*Ledger, error) {
	l := &Ledger{
		held: map[hypervisor.VMID]*Reservation{}, moving: map[hypervisor.JobID]*Reservation{},
		open:  map[hypervisor.JobID]hypervisor.VMID{},
		hosts: map[hypervisor.HostName]*Amount{}, tenants: map[string]*Amount{},
	}
	for _, c := range slices.Clone(claims) {
		_, twice := l.held[c.VM]
		if c.Move != "" {
			_, twice = l.moving[c.Move]
		} else if vm, ok := l.open[c.By]; ok && c.By != "" && vm != c.VM {
			twice = true
		}
		if twice || !c.Amount.sane() {
			return nil, fmt.Errorf("the claim of %s on %s is negative, too large or not the only "+
				"one of its holder: correct the stored claims", c.VM, c.Host)
		}
		l.put(&c)
	}
	for id, c := range l.moving {
		if held := l.held[c.VM]; held == nil || held.By != id {
			return nil, fmt.Errorf("the move %s holds %s for %s, which holds no target by it: "+
				"correct the stored claims", id, c.Host, c.VM)
		}
	}
	return l, nil
}

// Settle makes the reservation of a VM at home on a host, in its present size. It is refused while
// the VM moves, and for a negative amount; a VM that was at home elsewhere is no
// longer.
func (l *Ledger) Settle(c Reservation, now time.Time) (LedgerEntry, bool) {
	old := l.held[c.VM]
	if old != nil && old.By != "" || !c.Amount.sane() || c.Move != "" || c.By != "" {
		return LedgerEntry{}, false
	}
	e := LedgerEntry{At: now, Step: Settled, VM: c.VM, Target: c.Host, Amount: c.Amount}
	if old != nil {
		e.Source = old.Host
		l.take(old)
	}
	l.put(&c)
	return e, true
}

// Accept makes the reservations of a move: its VM holds the target from now on, and the move holds
// what the VM held. It is refused with every reason: room and quota of Limits, a
// VM that moves already, a target that it is on. Accepting the same move again
// changes nothing.
func (l *Ledger) Accept(p ReservationPlan, limits Limits) (LedgerEntry, []Reason) {
	source, tenant := l.held[p.VM], p.Tenant
	e := LedgerEntry{At: p.Now, Step: StepAccepted, Move: p.ID, VM: p.VM, Target: p.Target,
		Owner: p.Owner, Amount: p.Amount}
	if source != nil {
		e.Source, tenant = source.Host, source.Tenant
		if source.By == p.ID && source.Host == p.Target && p.ID != "" {
			e.Source = ""
			if moving := l.moving[p.ID]; moving != nil {
				e.Source = moving.Host
			}
			return e, nil
		}
	}
	why := l.refuse(&p, source)
	why = append(why, over("room", l.Used(p.Target).plus(p.Amount), limits.Room)...)
	why = append(why, over("quota", l.UsedBy(tenant).plus(p.Amount), limits.Quota)...)
	if len(why) > 0 {
		return LedgerEntry{}, why
	}
	if source != nil { // the move holds from now on what the VM held
		source.Move, source.By, source.Owner, source.Deadline = p.ID, p.ID, p.Owner, p.Deadline
		l.moving[p.ID] = source
	}
	l.put(&Reservation{VM: p.VM, Host: p.Target, Tenant: tenant, Amount: p.Amount, By: p.ID,
		Owner: p.Owner, Deadline: p.Deadline})
	return e, nil
}

// refuse returns what is wrong with a plan, whatever there is room for.
func (l *Ledger) refuse(p *ReservationPlan, source *Reservation) []Reason {
	var why []Reason
	say := func(check, need, have string) {
		why = append(why, Reason{Check: check, Need: need, Have: have})
	}
	if _, taken := l.open[p.ID]; taken || p.ID == "" {
		say("move", "a name that no other move has", fmt.Sprintf("%q", p.ID))
	}
	if source != nil && source.By != "" {
		say("vm", "no other move of it", string(source.By))
	}
	if source != nil && source.Host == p.Target {
		say("source", "another host", "the source "+string(p.Target))
	}
	if !p.Amount.sane() {
		say("amount", "no negative or absurd number", fmt.Sprint(p.Amount))
	}
	if !p.Deadline.IsZero() && !p.Deadline.After(p.Now) {
		say("deadline", "time left", "none")
	}
	return why
}

// over returns a reason for each number that exceeds a limit.
func over(check string, sum Amount, limit *Amount) []Reason {
	if limit == nil {
		return nil
	}
	var why []Reason
	say := func(what, need, have string) {
		why = append(why, Reason{Check: check + "-" + what, Need: need + " in all",
			Have: have})
	}
	if sum.Memory > limit.Memory {
		need, have := hypervisor.Apart(sum.Memory, limit.Memory)
		say("memory", need, have)
	}
	if sum.CPUs > limit.CPUs {
		say("cpus", fmt.Sprint(sum.CPUs), fmt.Sprint(limit.CPUs))
	}
	if sum.Disk > limit.Disk {
		need, have := hypervisor.Apart(sum.Disk, limit.Disk)
		say("disk", need, have)
	}
	return why
}

// RollBack ends a move: the VM holds the source again, and the target is free.
// It is false, and changes nothing, when no such move is open.
func (l *Ledger) RollBack(id hypervisor.JobID, now time.Time) (LedgerEntry, bool) {
	vm, ok := l.open[id]
	if !ok {
		return LedgerEntry{}, false
	}
	target, source := l.held[vm], l.moving[id]
	e := LedgerEntry{At: now, Step: RolledBack, Move: id, VM: vm, Target: target.Host, Owner: target.Owner,
		Amount: target.Amount}
	l.count(target, Amount{}.minus(target.Amount))
	delete(l.open, id)
	delete(l.moving, id)
	if source == nil {
		delete(l.held, vm)
		return e, true
	}
	e.Source = source.Host
	*source = source.settled()
	l.held[vm] = source
	return e, true
}

// settled returns c as the VM's own, made by no move.
func (c *Reservation) settled() Reservation {
	return Reservation{VM: c.VM, Host: c.Host, Tenant: c.Tenant, Amount: c.Amount}
}

// Drop drops the reservations of a VM that is gone, on both sides of its move.
func (l *Ledger) Drop(vm hypervisor.VMID, now time.Time) (LedgerEntry, bool) {
	c := l.held[vm]
	if c == nil {
		return LedgerEntry{}, false
	}
	e := LedgerEntry{At: now, Step: Dropped, Move: c.By, VM: vm, Target: c.Host, Amount: c.Amount}
	l.take(c)
	if source := l.moving[c.By]; source != nil {
		e.Source = source.Host
		l.take(source)
	}
	return e, true
}

// Used returns what is claimed of a host.
func (l *Ledger) Used(host hypervisor.HostName) Amount { return sum(l.hosts[host]) }

// UsedBy returns what a tenant's VMs and moves have claimed of all hosts.
func (l *Ledger) UsedBy(tenant string) Amount { return sum(l.tenants[tenant]) }

// Claims lists all claims by VM, the VM's own first.
func (l *Ledger) Claims() []Reservation {
	order := make([]*Reservation, 0, len(l.held)+len(l.moving))
	order = slices.AppendSeq(order, maps.Values(l.held))
	order = slices.AppendSeq(order, maps.Values(l.moving))
	slices.SortFunc(order, func(a, b *Reservation) int {
		return cmp.Or(cmp.Compare(a.VM, b.VM), cmp.Compare(a.Move, b.Move))
	})
	all := make([]Reservation, len(order))
	for i, c := range order {
		all[i] = *c
	}
	return all
}

// put enters a claim, which is the ledger's from now on.
func (l *Ledger) put(c *Reservation) {
	if c.Move != "" {
		l.moving[c.Move] = c
	} else {
		l.held[c.VM] = c
		if c.By != "" {
			l.open[c.By] = c.VM
		}
	}
	l.count(c, c.Amount)
}

func (l *Ledger) take(c *Reservation) {
	if c.Move != "" {
		delete(l.moving, c.Move)
	} else {
		delete(l.held, c.VM)
		delete(l.open, c.By)
	}
	l.count(c, Amount{}.minus(c.Amount))
}

// count adds an amount to what is claimed of a claim's host and by its tenant.
func (l *Ledger) count(c *Reservation, a Amount) {
	add(l.hosts, c.Host, a)
	add(l.tenants, c.Tenant, a)
}

func add[K comparable](m map[K]*Amount, key K, a Amount) {
	now := m[key]
	if now == nil {
		now = &Amount{}
		m[key] = now
	}
	if *now = now.plus(a); *now == (Amount{}) {
		delete(m, key)
	}
}

func sum(a *Amount) Amount {
	if a == nil {
		return Amount{}
	}
	return *a
}
