package hypervisor

import (
	"context"
	"time"
)

// A Hypervisor runs the virtual machines of one host. No method waits for a
// migration; every method may be repeated with the same arguments, and then
// answers as the first time or with what has become of it; all are safe for
// concurrent use. Every error is an *[Error].
type Hypervisor interface {
	// Host answers capacity and abilities.
	Host(context.Context) (Host, error)
	// Domains lists what the host knows, ordered by VM.
	Domains(context.Context) ([]Domain, error)
	// Domain answers one VM; a domain that the host does not know has the
	// state Absent and is no error.
	Domain(context.Context, VMID) (Domain, error)

	// Receive opens a target. Repeated, it answers the same address; after
	// post-copy broke it answers one where [Recover] finds the target.
	Receive(context.Context, Incoming) (Address, error)
	// Migrate begins to send. Repeated, it changes nothing. A VM that is Shutoff
	// moves cold: its definition and its local disks do, and it rests at the
	// target.
	Migrate(context.Context, Outgoing) error
	// Progress answers how the job goes on this host, as source or as target.
	// A job that was never begun here has the status JobNone and is no error.
	Progress(context.Context, JobID) (Progress, error)
	// Adjust changes a job that is running on this host as its source.
	Adjust(context.Context, JobID, Adjustment) error

	// Do changes the life of one VM on this host.
	Do(context.Context, VMID, Command) error
}

// Address is where a target listens, in the backend's own notation.
type Address string

// Incoming asks a host to receive a VM.
type Incoming struct {
	Job JobID
	VM  VM
	// Hold keeps the target from starting by itself when it has received the
	// complete state; it then starts on the command [Activate].
	Hold bool
}

// Outgoing asks a host to send a VM.
type Outgoing struct {
	Job     JobID
	VM      VMID
	Target  HostName // for people and for models; the connection goes to Address
	Address Address
	Options TransferOptions
}

// TransferOptions say how memory is moved. The zero value is plain pre-copy
// without limits.
type TransferOptions struct {
	Bandwidth    Bandwidth     // cap; 0 is none
	Downtime     time.Duration // blackout allowed; 0 is the hypervisor's default, 300 ms
	AutoConverge bool          // slow the guest down when it outruns the wire
	PostCopy     bool          // allow Adjust with StartPostCopy
	Channels     int           // parallel connections; 0 and 1 are one
	Compression  bool
	// Method is how to compress: "zlib" or "zstd". Default: the backend's choice.
	Method string
	// XBZRLE sends of a page that was sent before only what has changed in it.
	XBZRLE      bool
	StartPaused bool // the guest was paused by its operator and stays so
	// HoldSwitchOver stops the guest when the rest fits the downtime and then
	// waits for [SwitchOver] or [Cancel].
	HoldSwitchOver bool
}

// An Adjustment changes a running migration. The set is closed.
type Adjustment interface{ adjustment() }

type (
	// Cancel ends the migration; the source keeps the VM. After the source has
	// stopped for the switch-over it answers Conflict: too late.
	Cancel struct{}
	// StartPostCopy lets the target run at once and fetch the rest.
	StartPostCopy struct{}
	// PauseGuest stops the guest at the source so that the transfer ends. A
	// cancel afterwards lets it run again.
	PauseGuest struct{}
	// SetDowntime changes the blackout allowed.
	SetDowntime struct{ Limit time.Duration }
	// SetBandwidth changes the cap; 0 is none.
	SetBandwidth struct{ Limit Bandwidth }
	// SwitchOver lets a job that waits because of HoldSwitchOver go on.
	SwitchOver struct{}
	// Recover goes on with a post-copy whose connection broke, at the address
	// that Receive answers at the target when it is repeated.
	Recover struct{ Address Address }
)

func (Cancel) adjustment()        {}
func (StartPostCopy) adjustment() {}
func (PauseGuest) adjustment()    {}
func (SetDowntime) adjustment()   {}
func (SetBandwidth) adjustment()  {}
func (SwitchOver) adjustment()    {}
func (Recover) adjustment()       {}

// A Command changes the life of a VM on one host. The set is closed.
type Command interface{ command() }

type (
	// Start runs the VM from its disks. A host that knows that the VM may run
	// elsewhere, because its domain is Unresolved, may refuse with Conflict.
	Start struct{ VM VM }
	// Stop asks the guest to shut down, and stops it by force after Grace.
	Stop struct{ Grace time.Duration }
	// Kill stops the VM now.
	Kill struct{}
	// Reboot asks the guest to reboot.
	Reboot struct{}
	// Pause stops the guest's CPUs; Unpause lets them run again. While the VM moves,
	// a host without [CanTakeBack] may answer Conflict to both, and changes nothing:
	// its hypervisor would not let the guest rest at the target. The adjustment
	// [PauseGuest] is not refused for that.
	Pause struct{}
	// Unpause undoes Pause.
	Unpause struct{}

	// Resize changes memory, CPUs and the sizes of disks of a VM that is Shutoff.
	// Either all of it takes effect or nothing. A disk never shrinks.
	Resize struct{ VM VM }
	// Snapshot keeps the present contents of a disk under a name.
	Snapshot struct{ Disk, Name string }
	// AttachDisk plugs a disk into a VM, running or not. Repeated with the same
	// disk, it changes nothing.
	AttachDisk struct{ Disk Disk }
	// DetachDisk unplugs a disk. A running guest is asked to let it go; until it
	// has, the disk stays in the VM's Hardware.
	DetachDisk struct{ Name string }
	// MeasureDirtyRate measures for a while how fast the guest writes memory;
	// [Domain] answers the result.
	MeasureDirtyRate struct{ For time.Duration }
	// Forget removes a VM that is Shutoff or Crashed from its host. The files of
	// its disks stay.
	Forget struct{}

	// Activate starts a received domain that was held.
	Activate struct {
		Job     JobID
		Stopped Evidence // that the source has stopped
	}
	// Discard forgets an incoming or received domain that has not started. Once
	// it has answered without error, that copy did not and will not run.
	//
	// A host without [CanTakeBack] answers Conflict for a domain that is Received: it
	// is the only copy. It may answer Conflict for one that is Receiving while its
	// source sends, and changes nothing then: only the source can end that safely.
	// The caller cancels at the source, or waits until the hypervisor here has
	// noticed that the source is gone, and repeats. When a source was cancelled
	// before it reached its target, only the caller tells the target.
	Discard struct{ Job JobID }
	// Resume lets a source that stopped for the switch-over run again. A host
	// without [CanTakeBack] answers Unsupported when the source is HandedOver: its
	// memory is gone.
	Resume struct {
		Job      JobID
		NeverRan Evidence // that the target did not and will not run
	}
	// Abandon gives up the memory of a source that stopped for the switch-over,
	// because the target may have run and is dead: the VM's disks are newer. The
	// domain becomes Crashed and may be started anew. A host without [CanTakeBack]
	// answers Conflict to TargetDiscarded when the source is HandedOver: by the
	// hypervisor's own word the target had the VM.
	Abandon struct {
		Job  JobID
		Dead Evidence // that the target will not run
	}
	// Release removes a stopped source, or whatever is left of it.
	Release struct {
		Job   JobID
		Moved Evidence // that the VM runs, or rests, elsewhere
	}
)

func (Start) command()            {}
func (Stop) command()             {}
func (Kill) command()             {}
func (Reboot) command()           {}
func (Pause) command()            {}
func (Unpause) command()          {}
func (Resize) command()           {}
func (Snapshot) command()         {}
func (AttachDisk) command()       {}
func (DetachDisk) command()       {}
func (MeasureDirtyRate) command() {}
func (Forget) command()           {}
func (Activate) command()         {}
func (Discard) command()          {}
func (Resume) command()           {}
func (Abandon) command()          {}
func (Release) command()          {}
