package hypervisor

import (
	"context"
	"time"
)

// A Hypervisor runs the virtual machines of one host. No method waits for a
// migration; every method may be repeated with the same arguments, and then
// answers as the first time or with what has become of it; all are safe for
// concurrent use. Every error is an *[Error]; the package documentation says which kind it has.
type Hypervisor interface {
	// Host answers capacity and abilities: Name, Memory, CPUs and Software are always set.
	Host(context.Context) (Host, error)
	// Domains lists what the host knows, ordered by VM. It says the same of each as Domain, and
	// lists none that is Absent.
	Domains(context.Context) ([]Domain, error)
	// Domain answers one VM; a domain that the host does not know has the
	// state Absent and is no error. Its VM.ID is the name that was asked for, and its Job is "".
	Domain(context.Context, VMID) (Domain, error)

	// Receive opens a target, which is Receiving for its job at once and takes room on the host
	// until it ends. Repeated, it answers the same address, at
	// which [Recover] finds the target after post-copy broke. Every target has an address of its own.
	//
	// It answers Invalid for a job or a VM without a name and for a VM that is none; NoRoom when
	// the VM does not fit; and Conflict for a VM that runs here or is received here for another
	// job, for a job that is known here with another VM, another description or another Hold, and
	// for a job that was discarded here, even before it came, was cancelled, or has ended: a job
	// never comes back. For a target that holds everything it answers the address or Conflict, and
	// does not start it. A VM that rests here may be refused (Conflict) or received: when that
	// target is discarded the VM rests as before.
	Receive(context.Context, Incoming) (Address, error)
	// Migrate begins to send. Repeated, it changes nothing, also after the job has ended, and
	// answers no error. While memory moves the VM runs on here, and moves with the memory, the
	// CPU state and, with [CanCopyStorage], the local disks that it has. A paused VM arrives
	// paused. A VM that is Shutoff
	// moves cold: its definition and its local disks do, and it rests at the
	// target.
	//
	// It answers NotFound for an unknown VM; Unsupported for options and for a cold move that the
	// host has no ability for; Invalid for a job without a name and for a negative bandwidth,
	// downtime or number of channels; and Conflict for a VM that another job moves. When nothing
	// listens at the address it answers Transient; a host without [CanTakeBack], whose hypervisor
	// does the talking, may answer Invalid or Conflict. When the target expects another job it
	// answers Invalid, Conflict or Transient; when it expects another machine, Invalid or
	// Conflict. A host that cannot know this at once begins, and the job fails. The VM runs on
	// either way.
	Migrate(context.Context, Outgoing) error
	// Progress answers how the job goes on this host, as source or as target.
	// A job that was never begun here has the status JobNone and is no error.
	Progress(context.Context, JobID) (Progress, error)
	// Adjust changes a job that is running on this host as its source. It answers NotFound for a
	// job that this host does not send, and for one that it receives; Conflict when the job has
	// ended; Transient while the transfer is set up, if its hypervisor takes no other limits then;
	// Invalid for a limit that is none; and Invalid, or Unsupported, for nil. A refused
	// adjustment changes nothing, and the job goes on.
	Adjust(context.Context, JobID, Adjustment) error

	// Do changes the life of one VM on this host. Nil is Invalid, or Unsupported.
	//
	// A domain that is Receiving, Received, HandingOver or HandedOver takes no command of life
	// (Start, Stop, Kill, Reboot, Pause, Unpause, Forget): the answer is Conflict. It takes
	// Activate, Discard, Resume, Abandon and Release, each where it fits.
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
	Downtime     time.Duration // downtime allowed; 0 is the hypervisor's default, 300 ms
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
	// Encryption says whether memory and disks are encrypted on their way. Default: when the source's
	// host is configured to.
	Encryption Encryption `json:",omitempty"`
}

// Encryption says whether what moves is encrypted on its way. Both hosts do as the source is told.
type Encryption string

// What a source can be told.
const (
	AsConfigured    Encryption = ""
	EncryptRequired Encryption = "required" // a host without [CanEncrypt] answers Unsupported
	EncryptOff      Encryption = "off"      // although the host could
)

// An Adjustment changes a running migration. The set is closed.
type Adjustment interface{ adjustment() }

type (
	// Cancel ends the migration; the source keeps the VM. After the source has
	// stopped for the switch-over it answers Conflict: too late. A job that holds before its
	// switch-over can be cancelled. For a job that failed or was cancelled it is done already.
	Cancel struct{}
	// StartPostCopy lets the target run at once and fetch the rest. It answers Unsupported on a
	// host without [CanPostCopy], and Invalid for a job that was begun without
	// TransferOptions.PostCopy. While memory moves (JobActive) there is no moment at which it is
	// refused; repeated, it changes nothing until the job has ended.
	StartPostCopy struct{}
	// PauseGuest stops the guest at the source so that the transfer ends: the source is Paused and
	// the mode PausedCopy until it switches over, and the guest runs at its target. A
	// cancel afterwards lets it run again. It stays paused when its operator gave Pause
	// meanwhile, and runs on when its operator gives Unpause.
	PauseGuest struct{}
	// SetDowntime changes the downtime allowed. A limit that is not positive is Invalid.
	SetDowntime struct{ Limit time.Duration }
	// SetBandwidth changes the cap; 0 is none. A negative limit is Invalid.
	SetBandwidth struct{ Limit Bandwidth }
	// SwitchOver lets a job that waits because of HoldSwitchOver go on. A host without
	// [CanHoldSwitchOver] answers Unsupported; a job that does not wait is a Conflict, or Invalid.
	SwitchOver struct{}
	// Recover goes on with a post-copy whose connection broke, at the address
	// that Receive answers at the target when it is repeated. It waits for no other host: the job stays
	// JobBroken until it goes on, and its Error says why it does not yet. Asked again meanwhile, it
	// changes nothing. A host without [CanRecover] answers
	// Unsupported; a job that is not broken is a Conflict, or Invalid.
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
	// Start runs the VM from its disks: it executes at once (Starting or Running), is as VM
	// describes it, and has no Job. It is done already for a VM that starts or runs, and a
	// Conflict for one that is paused. It answers Invalid for a VM that is none (no name, another
	// name than the one that is commanded, no memory, a negative number of CPUs) and NoRoom for
	// one that does not fit beside what runs and what is received here. A host that knows that the
	// VM may run elsewhere, because its domain is Unresolved, may refuse with Conflict.
	//
	// A hypervisor that another client has told to save the VM's memory continues it, if the VM has not been
	// started since on any host: its disks have changed then. Boot tells.
	Start struct {
		VM VM
		// Boot is how often the VM has been started, on all hosts, with this start. Default: it is not
		// counted, and memory that was saved is continued.
		Boot int
	}
	// Stop asks the guest to shut down, and stops it by force after Grace; without Grace at once.
	// The VM becomes Shutoff, and stays visible. A second Stop may shorten the grace. For a VM
	// that rests it is done already; for one that is Paused it is a Conflict, because a guest that
	// does not run cannot shut down.
	Stop struct{ Grace time.Duration }
	// Kill stops the VM now, also while it starts or is paused. It becomes Shutoff. For a VM that
	// rests it is done already. A VM that is killed while it moves never runs at its target: the
	// job is JobFailed.
	Kill struct{}
	// Reboot asks the guest to reboot; it executes all the time. A VM that rests or is Paused is a
	// Conflict.
	Reboot struct{}
	// Pause stops the guest's CPUs and keeps its memory; Unpause lets them run again. A VM that
	// rests is a Conflict; one that is paused, or runs, already is no error. A guest that is
	// paused on its way rests at its target. While the VM moves, a host without [CanTakeBack] may
	// answer Conflict to both, and changes nothing: its hypervisor would not let the guest rest at
	// the target. The adjustment [PauseGuest] is not refused for that.
	Pause struct{}
	// Unpause undoes Pause.
	Unpause struct{}

	// Resize changes memory, CPUs and the sizes of disks of a VM that is Shutoff.
	// Either all of it takes effect or nothing. A disk never shrinks: that is Invalid, as is a size
	// that is none, and another VM's description. A size that does not fit is NoRoom.
	//
	// On a host with [CanResizeLive] a VM that runs, or is paused, grows as [VM.Grow] says, and is
	// that from then on. It is a Conflict for one that moves, and where that is refused there; on
	// another host, for every VM that runs. What VM says of DIMMs is not looked at. When it fails, a
	// part of it may have taken effect: Domain answers what the VM has, and a repetition goes on.
	// A disk grows where its image can: that of a shared disk is made larger for all, and a device
	// of the host has to be larger already.
	Resize struct{ VM VM }
	// Snapshot keeps the present contents of a disk under a name. Repeated, it changes nothing. A
	// disk that the VM does not have is NotFound, or Invalid; a name that is empty is Invalid.
	Snapshot struct{ Disk, Name string }
	// DeleteSnapshot removes a snapshot of a disk. One that is not there is removed already.
	DeleteSnapshot struct{ Disk, Name string }
	// RevertSnapshot gives a disk of a VM that is Shutoff the contents that a snapshot has kept. What
	// was written since is lost. A VM that runs is a Conflict; a snapshot that is not there is NotFound.
	RevertSnapshot struct{ Disk, Name string }
	// AttachDisk plugs a disk into a VM, running or not. Repeated with the same
	// disk, it changes nothing. Another disk of the same name is a Conflict; a name with other
	// characters than lower-case letters, digits and "-", a negative size and an unknown format are
	// Invalid.
	AttachDisk struct{ Disk Disk }
	// DetachDisk unplugs a disk. A running guest is asked to let it go; until it has, the disk
	// stays in the VM's Hardware. A disk that the VM does not have is unplugged already.
	DetachDisk struct{ Name string }
	// MoveDisk begins to copy the image of a disk of a VM that runs, or is paused, to a file To of the same
	// host, which is an absolute path. [Domain.Moving] says how it goes. The VM runs on with the image that
	// it has; once the copy is complete (DiskReady) every write goes to both, and [SwitchDisk] lets the VM
	// go on with the copy. Repeated, it changes nothing; a move that failed is begun anew.
	//
	// A file that is there already is a Conflict, and stays as it is. So are a disk that is there already
	// by its description (To is its Path), another disk that moves, an image that keeps snapshots, which are not
	// copied, a VM that moves to another host, and one that rests. A disk that the VM does not have is
	// NotFound; a path that is not absolute, and a disk that is read only, are Invalid. Where it is known
	// that the file has no room, the answer is NoRoom.
	//
	// While a disk moves, Migrate, Resize and commands about disks and snapshots answer Conflict. A VM that
	// stops before SwitchDisk keeps the image that it has: the move is DiskFailed at once where the copy is not
	// complete, and otherwise (DiskReady) when the VM is started. Its host answers Conflict to a Start from
	// the copy then: it may have broken unseen.
	MoveDisk struct{ Disk, To string }
	// SwitchDisk lets a VM go on with the copy of a disk, and only with it. It is a Conflict for a copy that
	// is not complete, and for a VM that rests; repeated, it changes nothing. From its answer on the VM has the
	// disk at its new path, until the move is DiskFailed. The caller notes the new path before: a VM that is
	// started elsewhere from either image until then loses nothing, one that is started from the old one
	// afterwards does, and its host answers Conflict to such a Start.
	SwitchDisk struct{ Disk string }
	// EndDiskMove ends a move. On is the path of the image that the VM has by the caller's records, and
	// that it goes on with. The other image is removed: the copy of a move that did not come to its
	// switch, which is cancelled so, or the old one, unless it is to be kept or is a device. It is a
	// Conflict when the VM runs on the other image, or is about to. Of a VM that rests with a complete copy the
	// caller knows which one it has: it may have run elsewhere since. Domain.Moving is nil when it has ended,
	// which may take a moment. What is not known here has ended already.
	EndDiskMove struct {
		Disk, On string
		Keep     bool // the old image
	}
	// MeasureDirtyRate measures for a while how fast the guest writes memory;
	// [Domain] answers the result, and Measured then changes. The guest runs on. Asked again
	// meanwhile, it is the same measurement. A period that is not positive is Invalid; a VM that
	// rests is a Conflict.
	MeasureDirtyRate struct{ For time.Duration }
	// Forget removes a VM that is Shutoff or Crashed from its host: it is Absent. The files of
	// its disks stay. What is not here is forgotten already; what runs or is paused is a Conflict, and memory
	// that another client has had saved may be one.
	Forget struct {
		// Outdated: the VM has been started elsewhere since. Memory that was saved here is removed, too.
		Outdated bool
	}

	// Activate starts a received domain that was held; one whose guest was paused (StartPaused)
	// rests. Repeated, it changes nothing. Without evidence it is Invalid. It is a Conflict for a
	// domain that still receives, for another job's, for one that runs, and with evidence that
	// does not prove that this VM's source has stopped ([SourceStopped] of this job, or that the
	// source's copy is [Evidence.Dead], as that the source's host was fenced). A domain that was
	// discarded is NotFound: the host does not know it any more.
	Activate struct {
		Job     JobID
		Stopped Evidence // that the source has stopped
	}
	// Discard forgets an incoming or received domain that has not started. Once it has answered
	// without error, that copy did not and will not run: the domain is Absent, or rests as before,
	// the job of a source that sends to it fails, and Receive refuses the job from then on, also
	// when it is discarded before it came. Repeated, it changes nothing. It is a Conflict for
	// another job's domain, and for one that has started, even when it has crashed since.
	//
	// A host without [CanTakeBack] answers Conflict for a domain that is Received: it
	// is the only copy. It may answer Conflict for one that is Receiving while its
	// source sends, and changes nothing then: only the source can end that safely.
	// The caller cancels at the source, or waits until the hypervisor here has
	// noticed that the source is gone, and repeats. When a source was cancelled
	// before it reached its target, only the caller tells the target.
	Discard struct{ Job JobID }
	// Resume lets a source that stopped for the switch-over run again, or rest, if its guest was
	// paused. Repeated, it changes nothing. It needs [Evidence.NeverRan] about the target of this
	// job: without evidence it is Invalid; with evidence that does not prove that, and for another
	// job, it is a Conflict. After post-copy has begun it is always a Conflict: the target has
	// run. A VM that has resumed moves later as another job. A host without [CanTakeBack] answers
	// Unsupported when the source is HandedOver: its memory is gone.
	Resume struct {
		Job      JobID
		NeverRan Evidence // that the target did not and will not run
	}
	// Abandon gives up the memory of a source that stopped for the switch-over,
	// because the target may have run and is dead: the VM's disks are newer. The
	// domain becomes Crashed and may be started anew. Repeated, it changes nothing. It needs
	// [Evidence.Dead] about the target: without evidence it is Invalid, with other evidence and
	// for another job it is a Conflict. A host without [CanTakeBack]
	// answers Conflict to TargetDiscarded when the source is HandedOver: by the
	// hypervisor's own word the target had the VM.
	Abandon struct {
		Job  JobID
		Dead Evidence // that the target will not run
	}
	// Release removes a stopped source, or whatever is left of it: the domain is Absent. What is
	// not here is released already. It needs [Evidence.Moved] by this job: without evidence it is
	// Invalid, with other evidence and for another job it is a Conflict. A VM that runs here is not
	// released whatever the evidence says, and neither is a target, nor a source of a broken
	// post-copy that its target still lacks memory of: Conflict.
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
func (DeleteSnapshot) command()   {}
func (RevertSnapshot) command()   {}
func (AttachDisk) command()       {}
func (DetachDisk) command()       {}
func (MoveDisk) command()         {}
func (SwitchDisk) command()       {}
func (EndDiskMove) command()      {}
func (MeasureDirtyRate) command() {}
func (Forget) command()           {}
func (Activate) command()         {}
func (Discard) command()          {}
func (Resume) command()           {}
func (Abandon) command()          {}
func (Release) command()          {}
