package client

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// mostListed is how many rows a list has at most.
const mostListed = 200

// An Overview is the state of a cluster at one moment.
type Overview struct {
	At time.Time
	// Trouble is why the store could not be read: everything else is as it was At. Default: it
	// was read.
	Trouble string
	Leader  string // "controller/a"; "" is no leader
	Term    uint64
	Alarms  []Alarm
	VMs     int
	Drains  []shownDrain
	Moves   []shownMove // those under way first, then those that have ended, the latest first
	Hosts   []Host
	// Attention lists the VMs that are not as they shall be.
	Attention []VM
	// Running, Waiting and Ended count the migrations.
	Running, Waiting, Ended int
	// MoreMoves and MoreAttention are how many are not listed.
	MoreMoves, MoreAttention int
}

// A shownDrain is a host that is to be empty.
type shownDrain struct {
	RemainingVMs
	// Gone lists the VMs that have been migrated away.
	Gone []hypervisor.VMID
	// Moved and Total are memory and disks of the VMs that leave: what has left, and all.
	Moved, Total hypervisor.Bytes
	ETA          ETA
}

// Share is how much of a drain is done, from 0 to 1.
func (d *shownDrain) Share() float64 { return share(d.Moved, d.Total) }

// Empty reports whether no VM is left.
func (d *shownDrain) Empty() bool { return d.Done && len(d.Stay) == 0 }

// A shownMove is a migration.
type shownMove struct {
	MoveReport
	Pass      int                  // over the guest's memory; 0 is unknown
	DirtyRate hypervisor.Bandwidth // 0 is unknown
	Moved     hypervisor.Bytes     // of Total, what the target has
	Total     hypervisor.Bytes     // the VM's memory and disks; 0 is unknown
}

// Share is how much of the guest the target has, from 0 to 1.
func (m *shownMove) Share() float64 { return share(m.Moved, m.Total) }

// Because is why a migration ended, or does not go on, in one line.
func (m *shownMove) Because() string {
	var all []string
	if m.Canceled && m.MoveReport.Ended == nil {
		all = append(all, "cancelled")
	}
	if m.Why != "" {
		all = append(all, m.Why)
	}
	for _, c := range m.Conditions {
		if c != migration.OutcomeUnknown.String() { // Why says so
			all = append(all, c)
		}
	}
	for _, r := range m.Reasons {
		all = append(all, humanize.Unmet(r.Check, r.Need, r.Have))
	}
	return strings.Join(all, "; ")
}

func share(part, all hypervisor.Bytes) float64 {
	if all <= 0 {
		return 0
	}
	return min(1, max(0, float64(part)/float64(all)))
}

// MakeOverview returns the overview of a cluster now. Evacuation has the defaults of VMs and drains.
func MakeOverview(c *Cluster, defaults evacuation.Params, now time.Time) *Overview {
	s := MakeStatus(c, defaults, now)
	o := &Overview{At: s.At, Leader: s.Leader, Term: s.Term, Alarms: s.Alarms, VMs: len(s.VMs),
		Hosts: s.Hosts}
	grown := growth(c)
	for _, h := range c.Hosts() {
		if Drains(defaults, h) {
			o.Drains = append(o.Drains, drain(c, h.Host.Name, defaults, grown, now))
		}
	}
	for _, m := range s.Moves {
		o.Moves = append(o.Moves, move(c, m, now))
		switch {
		case m.Ended != nil:
			o.Ended++
		case m.Phase == migration.Running.String():
			o.Running++
		default:
			o.Waiting++
		}
	}
	slices.SortStableFunc(o.Moves, byUrgency)
	o.Moves, o.MoreMoves = firstOf(o.Moves)
	for _, v := range s.VMs {
		if needsAttention(v) || Down(c, c.VM(v.Name)) {
			if v.placeless() {
				v.Why = waitsForPlace(v.Name)
			}
			o.Attention = append(o.Attention, v)
		}
	}
	o.Attention, o.MoreAttention = firstOf(o.Attention)
	return o
}

func firstOf[T any](list []T) (first []T, more int) {
	n := min(len(list), mostListed)
	return list[:n], len(list) - n
}

// byUrgency orders migrations: running, waiting, ended; of those the latest first.
func byUrgency(a, b shownMove) int {
	rank := func(m shownMove) int {
		switch {
		case m.Ended != nil:
			return 2
		case m.Phase == migration.Running.String():
			return 0
		}
		return 1
	}
	order := cmp.Compare(rank(a), rank(b))
	if order == 0 && a.Ended != nil {
		order = b.Ended.Compare(*a.Ended)
	}
	return cmp.Or(order, a.Asked.Compare(b.Asked), cmp.Compare(a.Name, b.Name))
}

// needsAttention reports whether a VM that may run is not as it shall be.
func needsAttention(v VM) bool {
	return v.Why != "" || strings.HasPrefix(v.State, "runs on ")
}

// move adds to the report of a migration what its record says of its progress.
func move(c *Cluster, r MoveReport, now time.Time) shownMove {
	m := shownMove{MoveReport: r}
	rec := c.Migration(r.Name)
	if rec == nil {
		return m
	}
	p := progressOf(rec, now)
	m.Pass, m.DirtyRate = p.Iteration, p.DirtyRate
	v := c.VM(r.VM)
	if v == nil {
		return m
	}
	m.Total = v.Weight()
	switch {
	case rec.State.Phase == migration.Succeeded:
		m.Moved = m.Total
	case rec.State.Phase == migration.Running && m.Pass > 0:
		m.Moved = max(0, m.Total-p.Remaining)
	}
	return m
}

// drain returns the state of a draining host.
func drain(c *Cluster, host hypervisor.HostName, defaults evacuation.Params, grown []float64,
	now time.Time) shownDrain {
	d := shownDrain{RemainingVMs: *ListRemaining(c, host, defaults, now)}
	for _, id := range gone(c, host) {
		d.Gone = append(d.Gone, id)
		if v := c.VM(id); v != nil {
			d.Moved += v.Weight()
			d.Total += v.Weight()
		}
	}
	for _, id := range slices.Concat(d.Moving, d.Waiting) {
		v := c.VM(id)
		d.Total += v.Weight()
		if m := c.Migration(v.ActiveMigration); m != nil {
			d.Moved += move(c, OfMove(m, now), now).Moved
		}
	}
	if !d.Done {
		left, rate := c.Outstanding(host, defaults.Strategy, now)
		d.ETA = EstimateETA(left, rate, grown)
	}
	return d
}

// gone lists the VMs that evacuations have moved away from a draining host: since a VM last
// arrived there, as none does while the host drains.
func gone(c *Cluster, host hypervisor.HostName) []hypervisor.VMID {
	var arrived time.Time
	ended := slices.DeleteFunc(c.Migrations(), func(m *store.Migration) bool {
		return m.State.Phase != migration.Succeeded
	})
	for _, m := range ended {
		if m.State.Target == host && m.State.Entered.After(arrived) {
			arrived = m.State.Entered
		}
	}
	var list []hypervisor.VMID
	for _, m := range ended {
		v := c.VM(m.Spec.VM)
		if m.State.Source == host && m.Spec.By == migration.Evacuation && v != nil &&
			v.Host != host && m.State.Entered.After(arrived) {
			list = append(list, m.Spec.VM)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
