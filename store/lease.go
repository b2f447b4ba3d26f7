package store

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Lease is the heartbeat of an agent or of a controller. Clocks are not compared: an observer that
// has not seen it change for a while, by its own clock, takes its owner for silent.
type Lease struct {
	Version Version

	// Written by its owner.
	Owner   string // "host/n1", "controller/a"
	Boot    string // which start of the machine it runs on
	Session string // which start of the process
	Beats   uint64 // changes with every heartbeat
	// Lock names the lock of the machine that the process holds as long as it lives; "" is none.
	Lock string `json:",omitempty"`
}

// HostLease names the lease of a host's agent.
func HostLease(host hypervisor.HostName) string { return "host/" + string(host) }

// Key implements Record.
func (l *Lease) Key() Key { return Key{LeaseKind, l.Owner} }

// RecordVersion implements Record.
func (l *Lease) RecordVersion() Version { return l.Version }

// WithVersion implements Record.
func (l *Lease) WithVersion(v Version) Record { c := *l; c.Version = v; return &c }

// RelatedHosts implements Record: no host is told.
func (l *Lease) RelatedHosts() []hypervisor.HostName { return nil }

// Leader is the controller that decides for the cluster. It changes only when another one begins to,
// so it serves as fencing token: all that a leader writes is on condition that it is
// still stored as the leader wrote it.
type Leader struct {
	Version Version

	// Written by the process that takes over.
	Name   string // what is led: "cluster"
	Holder string // the owner of the [Lease] that shows that the leader lives
	// Session tells two processes with one identity apart.
	Session string
	Term    uint64 // how often the lead was taken over
}

// Key implements Record.
func (l *Leader) Key() Key { return Key{LeaderKind, l.Name} }

// RecordVersion implements Record.
func (l *Leader) RecordVersion() Version { return l.Version }

// WithVersion implements Record.
func (l *Leader) WithVersion(v Version) Record { c := *l; c.Version = v; return &c }

// RelatedHosts implements Record: no host is told.
func (l *Leader) RelatedHosts() []hypervisor.HostName { return nil }

// Rebuild says that a VM was started anew on another host after its own was fenced: the
// positive record without which nothing is removed on the host when it returns. It is
// stored before the VM's Host changes, and says nothing as long as that has not.
type Rebuild struct {
	Version Version

	// Written by the controller.
	VM       hypervisor.VMID
	Source   hypervisor.HostName
	Target   hypervisor.HostName
	Evidence hypervisor.Evidence // that the copy at Source is dead
	Decided  time.Time
	Boots    int // how often the VM had been started anew by then

	Cleaned bool // nothing of the VM is left at Source; written by its agent only
}

// Done reports whether the VM has been started anew since: what is left at Source is then no
// longer all that there is of it.
func (r *Rebuild) Done(v *VM) bool { return v.Boots > r.Boots && v.Operation != Starting }

// Key implements Record.
func (r *Rebuild) Key() Key { return Key{RebuildKind, string(r.VM) + "@" + string(r.Source)} }

// RecordVersion implements Record.
func (r *Rebuild) RecordVersion() Version { return r.Version }

// WithVersion implements Record.
func (r *Rebuild) WithVersion(v Version) Record { c := *r; c.Version = v; return &c }

// RelatedHosts implements Record.
func (r *Rebuild) RelatedHosts() []hypervisor.HostName { return []hypervisor.HostName{r.Source} }
