package store

import (
	"slices"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/migration/placement"
)

// A Version says which writing of a record this is. The store gives it, to later writings of
// whatever record a greater one; zero is a record that was never stored.
type Version uint64

// A Kind is a kind of record.
type Kind uint8

// The kinds.
const (
	MigrationKind Kind = iota + 1
	VMKind
	HostKind
	RebuildKind
	LeaseKind
	LeaderKind
	PlanKind
	MaintenanceKind
)

// A Key names a record.
type Key struct {
	Kind Kind
	Name string
}

// A Record is one thing that is stored: a *[Migration], a *[VM], a *[Host], a *[Rebuild], a
// *[Lease], a *[Leader], a *[Plan] or a *[Maintenance].
// A record must not be changed that was read, or that a store answered: copy it first.
type Record interface {
	Key() Key
	// RecordVersion is the version at which it was stored; 0 is that it was not.
	RecordVersion() Version
	// WithVersion returns a copy with another version.
	WithVersion(Version) Record
	// RelatedHosts lists the hosts whose agents are to see it.
	RelatedHosts() []hypervisor.HostName
}

// Migration is all that is kept about one migration. There are many, and every writing is
// another: what takes a byte is kept together.
type Migration struct {
	Version Version

	Spec   migration.Spec // written once, by its creator
	Cancel bool           // written by an operator
	Attach bool           `json:",omitempty"` // hot-plugged volumes are wanted; controller only

	State   migration.State    // written by the controller only
	Options *migration.Options `json:",omitempty"` // resolved at hand-over; controller only
	Policy  string             `json:",omitempty"` // the policy that won; controller only
	// Decision is what was decided about a target that was asked for, and every reason
	// against a target that was refused; controller only. Nil: none was asked for.
	Decision *placement.Decision `json:",omitempty"`
	// Evidence is what is known about dead copies; controller only.
	Evidence []hypervisor.Evidence `json:",omitempty"`

	Source SourceReport // written by the source host's agent only
	Target TargetReport // written by the target host's agent only
}

// SourceReport is what the source's agent says.
type SourceReport struct {
	Began   bool // about to send: from here on only a report ends the migration
	Started bool // the hypervisor accepted, or may have
	// HandedOver: the hypervisor said that the target holds the complete state:
	// from here on the VM is the target's, whatever becomes of it there.
	HandedOver bool `json:",omitempty"`
	// Failed: the transfer has ended and the source kept the VM.
	Failed bool
	// Unresolved: the VM has stopped here, or is gone, and only the target can
	// say whether it runs.
	Unresolved bool
	// Ceded: the hypervisor here keeps nothing of a VM that it has handed over, and the
	// target denies that it has it: the VM is the target's, where it starts anew.
	Ceded    bool `json:",omitempty"`
	Aborting bool // the abort was passed on
	Released bool // nothing of the VM is left here
	Mode     hypervisor.Mode
	Error    string `json:",omitempty"` // the hypervisor's words
	// GaveUp is why convergence cancelled the transfer, if it did.
	GaveUp   convergence.Reason `json:",omitempty"`
	Sent     hypervisor.Bytes   // at the last look that was worth a write
	Downtime time.Duration      `json:"Blackout,omitempty"` // measured by the hypervisor
	// Measured: the transfer has ended, and Sent and Downtime are what the hypervisor measured
	// in the end. Without it they are unknown, however small they are: the source died before
	// it told, or an agent of an earlier version wrote the record.
	Measured bool               `json:",omitempty"`
	Monitor  *convergence.State `json:",omitempty"` // what convergence remembers
	Looked   time.Time          `json:",omitzero"`  // when Monitor was last stored
	// Brownout is how the guest was slowed down on the way.
	Brownout Brownout `json:",omitzero"`
	// Cap is the limit on the bandwidth that the hypervisor was last told; 0 is none.
	Cap hypervisor.Bandwidth `json:",omitempty"`
}

// Untold reports whether a transfer began and it was not measured what it sent and how long the
// guest stood. When the migration has ended these stay unknown.
func (r *SourceReport) Untold() bool { return r.Began && !r.Measured && r.Downtime == 0 }

// Brownout is how a guest was slowed down so that its memory could be sent: auto-converge takes
// CPU time from it. What the agent sees now and then is taken to hold from one look to the next.
// Source: QEMU 7.2 migration/ram.c (mig_throttle_guest_down), cpu-throttle-percentage.
type Brownout struct {
	Percent int           // the largest share of CPU time that was taken away
	Lasted  time.Duration // for how long some was
	Taken   time.Duration // the CPU time that was taken: shares times their durations
}

// During adds a span in which a share of CPU time is taken away, in percent.
func (b Brownout) During(span time.Duration, percent int) Brownout {
	if percent <= 0 {
		return b
	}
	b.Percent = max(b.Percent, percent)
	if span > 0 {
		b.Lasted += span
		b.Taken += span / 100 * time.Duration(percent)
	}
	return b
}

// TargetReport is what the target's agent says.
type TargetReport struct {
	Refused []placement.Reason `json:",omitempty"` // why there is no room
	Address hypervisor.Address `json:",omitempty"`
	// Error is why the host could not prepare the VM when it last tried, in the hypervisor's
	// words. It tries again.
	Error    string `json:",omitempty"`
	Ready    bool   // there is room
	Attached bool   // hot-plugged volumes are there
	Detached bool   // what attached them has ended
	// Completed: the VM runs here.
	Completed bool
	// Lost: the VM ran here and was lost with its memory: it starts anew.
	Lost bool `json:",omitempty"`
	// Down: the target ended before the VM ran.
	Down bool
	// Discarded: the copy here did not and will not run: evidence.
	Discarded bool
}

// Key implements Record.
func (m *Migration) Key() Key { return Key{MigrationKind, string(m.Spec.ID)} }

// RecordVersion implements Record.
func (m *Migration) RecordVersion() Version { return m.Version }

// WithVersion implements Record.
func (m *Migration) WithVersion(v Version) Record { c := *m; c.Version = v; return &c }

// RelatedHosts implements Record. The source has nothing to do before the target listens, and its
// agent is not bothered until then.
func (m *Migration) RelatedHosts() []hypervisor.HostName {
	hosts := m.hosts()
	return hosts[:]
}

func (m *Migration) hosts() [2]hypervisor.HostName {
	if m.State.Phase < migration.TargetReady && !m.Source.Began {
		return [...]hypervisor.HostName{"", m.State.Target}
	}
	return [...]hypervisor.HostName{m.State.Source, m.State.Target}
}

// Dead reports whether the record holds evidence that the VM's copy on host is
// dead.
func (m *Migration) Dead(host hypervisor.HostName) bool {
	return slices.ContainsFunc(m.Evidence, func(e hypervisor.Evidence) bool {
		return e.Dead(m.Spec.VM, host)
	})
}

// VM is what is kept about one virtual machine, of which there are many: what takes a byte is
// kept together.
type VM struct {
	Version Version

	// Written by its operator. A change of VM's memory, CPUs or sizes of disks asks for a
	// resize, which takes place when the VM starts the next time, or at the next reboot.
	VM hypervisor.VM
	// Life is which of the VMs that have had this name it is. Written when it is added.
	Life                *Life               `json:",omitempty"`
	Namespace           string              `json:",omitempty"`
	Labels              migration.Labels    `json:",omitempty"`
	Strategy            evacuation.Strategy `json:",omitempty"`
	Migratable          bool                // it can migrate live
	NotMigratableReason string              `json:"WhyNot,omitempty"`
	// Placement is what the VM asks of every host, at every move.
	Placement *placement.Constraints `json:",omitempty"`
	Overhead  hypervisor.Bytes       `json:",omitempty"` // what its hypervisor needs besides
	Balloon   hypervisor.Bytes       `json:",omitempty"` // of its memory, takes no room
	// CPURequest is what it takes of its host's CPUs. Default: its virtual CPUs.
	CPURequest int `json:",omitempty"`
	// Disk is the size of its local disks. Default: what its Hardware says.
	Disk         hypervisor.Bytes    `json:",omitempty"`
	EvacuateFrom hypervisor.HostName `json:"Mark,omitempty"` // the host it was asked to leave
	Reboots      int                 `json:",omitempty"`     // how often a reboot was asked for
	Blockers     Blockers            `json:"Holds"`          // what keeps it from migrating for a while
	Stopped      bool                // it shall not run
	Pause        bool                `json:",omitempty"` // its guest shall stand, and keep its memory
	Kill         bool                `json:",omitempty"` // and its guest is not asked first

	// DiskChanges are the disks that are to be attached and detached, in this order. VM says what it has
	// now: the agent that has made a change enters it there, and takes the request back.
	DiskChanges []DiskChange `json:",omitempty"`
	// SnapshotRequests are what is asked for of snapshots, the oldest first.
	SnapshotRequests []SnapshotRequest `json:",omitempty"`
	// Rename asks for another name. The agent of Host takes it back with the reason when it cannot be.
	Rename *Rename `json:",omitempty"`
	// Asked is the last request to change the VM, and the user. Default: that is not known.
	Asked *Asked `json:",omitempty"`

	// Release asks for a stale ActiveMigration to be taken back. The controller that has done it takes the
	// request back, and Unclaimed with it.
	Release *Release `json:",omitempty"`

	// Written by the agent of Host. A controller that gives a VM that is off to another host,
	// which is to start it, takes Ended back in the same writing.
	Ended bool // it is off, as it shall be; it takes no room
	Boots int  // how often it was started anew
	// Operation is stored before the agent acts.
	Operation Operation `json:"Doing,omitempty"`
	Rebooted  int       `json:",omitempty"` // the Reboots that were seen to
	// Snapshots are those that godwit has made and not deleted.
	Snapshots []Snapshot `json:",omitempty"`
	// Paused: its guest was paused because of Pause, or is about to be, and was not resumed since.
	Paused bool `json:",omitempty"`
	// Size is what the VM was last started with. Default: what VM says.
	Size *Size `json:",omitempty"`
	// Dirtied is how fast its guest writes memory. Default: it was not measured.
	Dirtied *DirtyRates `json:",omitempty"`
	// Trouble is why the VM is not as its operator wants it, in words.
	Trouble string `json:",omitempty"`
	// Unclaimed is an ActiveMigration that is stale: the VM is on Host, and that migration does not move it.
	Unclaimed migration.ID `json:",omitempty"`

	// Written by the controller.
	Host hypervisor.HostName // where it runs, or rests
	// Moves is how often the VM has changed hosts, and one more; each change of Host counts
	// ([VM.MoveTo]). Zero: they are not counted, as before there were ledgers.
	Moves           int          `json:",omitempty"`
	ActiveMigration migration.ID `json:"Claim,omitempty"` // the migration that moves it
	// Numbered is the highest number of a migration of which the hosts have told and the store has no
	// record, since it was set back: none is given twice. Written by the operator that reconciles the store.
	Numbered int `json:",omitempty"`
	// Forced says that the VM was forced onto Host, and what that violates. The next move that
	// is not forced pays it back.
	Forced *Forced `json:",omitempty"`
	// Evicted says that the VM is shut down to leave Host, since it cannot be migrated. An
	// operator who starts the VM asks there for a restart.
	Evicted *Eviction `json:",omitempty"`
}

// Eviction is the shutdown of a VM whose host is to be empty and that cannot be migrated.
type Eviction struct {
	// Restart: it is started on another host, on Target if that takes it then. Until it has left
	// its host it holds room there. Else it stays off until the drain is withdrawn.
	Restart bool                `json:",omitempty"`
	Target  hypervisor.HostName `json:",omitempty"`
	// Grace is how long its guest has to shut down before it is killed. Default: the agent's.
	Grace time.Duration `json:",omitempty"`
}

// Forced is a move whose target was forced, to be paid back later.
type Forced struct {
	Move   migration.ID
	Host   hypervisor.HostName
	Action placement.Action
	Debts  []placement.PolicyViolation `json:",omitempty"` // the conditions that were overruled
}

// Blockers are what others do with a VM that a migration must respect.
type Blockers struct {
	Backup         bool `json:",omitempty"`
	UtilityVolumes bool `json:",omitempty"`
	Hotplug        bool `json:",omitempty"`
	CPUChange      bool `json:",omitempty"`
	MemoryChange   bool `json:",omitempty"`
}

// Holds says what keeps a migration of the VM from beginning, until that ends; "" is nothing.
func (b Blockers) Holds() string {
	switch {
	case b.Backup:
		return "a backup is in progress"
	case b.UtilityVolumes:
		return "it has utility volumes"
	}
	return ""
}

// MoveTo takes in that the VM is on another host now.
func (v *VM) MoveTo(host hypervisor.HostName) {
	if v.Host = host; v.Moves > 0 {
		v.Moves++
	}
}

// Key implements Record.
func (v *VM) Key() Key { return Key{VMKind, string(v.VM.ID)} }

// RecordVersion implements Record.
func (v *VM) RecordVersion() Version { return v.Version }

// WithVersion implements Record.
func (v *VM) WithVersion(n Version) Record { c := *v; c.Version = n; return &c }

// RelatedHosts implements Record.
func (v *VM) RelatedHosts() []hypervisor.HostName { return []hypervisor.HostName{v.Host} }

// Host is what is kept about one host.
type Host struct {
	Version Version
	Host    hypervisor.Host // written by its agent

	// Written by its operator.
	Labels   placement.Labels  `json:",omitempty"`
	Taints   []placement.Taint `json:",omitempty"`
	Cordoned bool              `json:"Closed"` // takes no VMs
	// CordonedFor is the run of maintenance that has cordoned the host, and uncordons it. Default: an
	// operator has. Written with Cordoned, by the controller and by operators.
	CordonedFor string `json:",omitempty"`
	// Drain is what is to become of VMs that a drain cannot migrate. Default: the cluster's.
	Drain evacuation.Terms `json:",omitzero"`
	// DrainBy is when a drain should be over, and what may be done for that. Default: it has no deadline.
	DrainBy *evacuation.Deadline `json:",omitempty"`
	// Facts is what else is known; hosts that are alike may share one. Default: nothing.
	Facts *placement.Facts `json:",omitempty"`

	// ConfirmedDownBy is the operator who confirms that the host is off and stays off;
	// written by them. It counts as a fencing.
	ConfirmedDownBy string `json:"Dead,omitempty"`

	// Identity is to which directory on which machine the name belongs. Written by the host's
	// agent when it takes the name. Nil: its agent is of a godwit that knew of none.
	Identity *Identity `json:",omitempty"`
	// Session is the start of the agent that acts for the host: another one announces nothing.
	// Written by that agent when it takes the name.
	Session string `json:",omitempty"`
	// Admitted is the Session that may act. Written by the controller that leads, when it has
	// heard who could have seen a newer store: see controller. An agent whose session is
	// another one acts on nothing, and VMs run on.
	Admitted string `json:",omitempty"`
	// Waits is why the Session is not admitted, in words. Written by the controller that leads.
	// Default: it is, or no controller leads.
	Waits string `json:",omitempty"`
	// Refused is the agent that was last refused the name; written by that agent, and taken
	// back by operators.
	Refused *Refusal `json:",omitempty"`
	// Strays are the VMs that execute here although nothing says that they are to; written by
	// the host's agent, which leaves them alone.
	Strays []Stray `json:",omitempty"`
	// Told is the Session whose agent has looked at all that executes here and stored the Strays.
	// Written by the host's agent; the controller takes it back when it finds that a host lives that
	// counts as off, and the agent looks again.
	Told string `json:",omitempty"`
	// Account is what the host's agent says that it has, while it does not believe the store; it
	// is for operators (godwit store reconcile). Written by that agent, and taken back by
	// the operator who has reconciled the store.
	Account *HostInventory `json:",omitempty"`
	// Adopt is an operator's confirmation that the name belongs to another identity from now on;
	// written by them, and taken back by the agent that takes the name.
	Adopt *Adoption `json:",omitempty"`

	// DrainPace is how a drain with DrainBy goes; written by the controller. Undraining takes back both.
	DrainPace *evacuation.Pace `json:",omitempty"`

	// Written by the failover controller: the agent is not heard.
	NotReady bool `json:"Lost"`
	// Fencing is set before the host is cut off, and stays until it has come back: while
	// it is, its agent starts nothing. Written by the failover controller.
	Fencing *Fencing `json:",omitempty"`
	// Fenced: the host was cut off from power or disks. Written by the failover controller.
	Fenced bool
}

// Unadmitted reports whether the agent that acts for the host waits until a leader admits it.
func (h *Host) Unadmitted() bool { return h.Session != "" && h.Admitted != h.Session }

// Single reports whether the agent that acts for the host has looked at all that executes there, and
// found no VM whose record says that it is elsewhere.
func (h *Host) Single() bool { return h.Told != "" && h.Told == h.Session && len(h.Strays) == 0 }

// Fencing is the cutting off of a host.
type Fencing struct {
	Asked    time.Time
	Boot     string // the start of the machine that is to end, by its last heartbeat
	Attempts int    `json:",omitempty"`
	By       string `json:",omitempty"` // the fence agent or operator: "fence_ipmilan", "operator alice"
	// Error is why the last attempt failed. Of a host that counts as fenced it is why it does not
	// count as off: see [Host.Refuted].
	Error string `json:",omitempty"`
}

// Key implements Record.
func (h *Host) Key() Key { return Key{HostKind, string(h.Host.Name)} }

// RecordVersion implements Record.
func (h *Host) RecordVersion() Version { return h.Version }

// WithVersion implements Record.
func (h *Host) WithVersion(v Version) Record { c := *h; c.Version = v; return &c }

// RelatedHosts implements Record.
func (h *Host) RelatedHosts() []hypervisor.HostName { return []hypervisor.HostName{h.Host.Name} }

// Place returns the VM as placement sees it: the size that it has, and its constraints.
// Local disks move with it. What else its hardware names is for the hypervisors to check,
// unless the constraints ask for it: most hosts do not say what they know.
func (v *VM) Place() *placement.VM {
	p := &placement.VM{} // a caller that keeps it for a moment has it on the stack
	v.PlaceIn(p)
	return p
}

// PlacedAs reports whether placement sees v as it saw old, an earlier writing of it.
func (v *VM) PlacedAs(old *VM) bool {
	return v.VM == old.VM && v.Size == old.Size && v.Placement == old.Placement &&
		v.Overhead == old.Overhead && v.Balloon == old.Balloon && v.CPURequest == old.CPURequest && v.Disk == old.Disk
}

// PlaceIn is Place in memory of the caller's. Constraints that are there already stay when
// the VM has none.
func (v *VM) PlaceIn(p *placement.VM) {
	vm := v.Now()
	p.ID, p.Memory, p.CPUs = vm.ID, vm.Memory, vm.CPUs
	p.Overhead, p.Balloon, p.Disk = v.Overhead, v.Balloon, v.Disk
	p.CPURequest = v.CPURequest
	if v.Placement != nil {
		p.Constraints = *v.Placement
	}
	if p.Disk <= 0 {
		p.Disk = vm.LocalSize()
	}
}

// LocalSize returns what of a VM besides its memory a migration copies: its local disks.
func (v *VM) LocalSize() hypervisor.Bytes {
	if v.Disk > 0 || v.VM.Hardware == nil {
		return v.Disk
	}
	return v.Now().LocalSize()
}

// Weight returns what of a VM there is to move: its memory and its local disks.
func (v *VM) Weight() hypervisor.Bytes { return v.Now().Memory + v.LocalSize() }
