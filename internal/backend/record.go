package backend

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A Domain is what every backend keeps of a VM on its host. Its deadlines have the reading of the monotonic
// clock, which time.Time.UTC would drop: to set the machine's clock ends no guest's time to shut down. What
// an earlier process has noted is only known by the clock that is set.
type Domain struct {
	// VM is the VM as it was asked for, or as it is to come.
	VM hypervisor.VM
	// Job is the migration that the domain takes part in, or took part in last.
	Job hypervisor.JobID
	// Unresolved: the job left this domain stopped, and only the other side can
	// know whether the VM runs there.
	Unresolved bool
	// Ran: the guest was let run, or may have been. It is written before it is.
	Ran bool
	// Doing is what was asked and is under way: Starting, Stopping, Rebooting, or
	// Absent for nothing; By is its deadline.
	Doing hypervisor.DomainState
	By    time.Time
	// Asked is when the guest's power button was pressed last for that.
	Asked time.Time
	// Measuring is when the present measurement ends. DirtyRate and Measured are
	// the last one's.
	Measuring time.Time
	DirtyRate hypervisor.Bandwidth
	Measured  time.Time
}

func (d *Domain) kept() *Domain { return d }

// Settled notes that nothing is under way any more.
func (d *Domain) Settled() {
	d.Doing, d.By, d.Asked = hypervisor.Absent, time.Time{}, time.Time{}
}

// PressAgain is how long a guest is given before its power button is pressed once more. One that
// boots, or whose driver is not loaded yet, does not see the button, and the hypervisor does not
// tell.
// Source: OpenStack Nova nova/virt/libvirt/driver.py (_clean_shutdown, retry_interval).
const PressAgain = 10 * time.Second

// PressUnheard reports whether a guest was asked to shut down so long ago that it may not have heard.
func (d *Domain) PressUnheard(now time.Time) bool {
	asked := d.Doing == hypervisor.Stopping || d.Doing == hypervisor.Rebooting
	return asked && !d.Asked.IsZero() && now.Sub(d.Asked) >= PressAgain
}

// Late reports whether what a guest was asked for should have happened by now.
func (d *Domain) Late(now time.Time) bool { return !d.By.IsZero() && !now.Before(d.By) }

// A Role is what a host is in a job.
type Role string

// The roles.
const (
	NoRole Role = "" // it has only promised not to take part
	Source Role = "source"
	Target Role = "target"
)

// A Job is what every backend keeps of one migration on its host. It is kept after the domain is
// gone: the id of a job is never used again. S are the backend's own stages: how far the job has
// come on this host, as far as only the journal can tell.
type Job[S ~string] struct {
	ID    hypervisor.JobID
	VM    hypervisor.VM
	Role  Role
	Stage S
	// Refused: this host was told to discard the job, and will never receive it.
	Refused bool
	Started time.Time
	// Last is the last progress that was seen; it is final when its status is.
	Last hypervisor.Progress
	// Cold: the VM was Shutoff and rests at the target.
	Cold bool

	// Of a target.

	Hold bool
	// Token is what a source must know to be heard; it tells the addresses of two targets apart.
	Token string

	// Of a source.

	Target  hypervisor.HostName
	Address hypervisor.Address
	Options hypervisor.TransferOptions
	// GuestPaused: PauseGuest stopped the guest; a cancel lets it run again.
	GuestPaused bool
	// Cancelled: Cancel was asked. The hypervisor may not have heard it yet, and may call what
	// then ends a failure.
	Cancelled bool
	// PostCopied: StartPostCopy was asked. There is no way back.
	PostCopied bool
}

func (j *Job[S]) keys() (hypervisor.JobID, hypervisor.VMID) { return j.ID, j.VM.ID }

func (j *Job[S]) role() Role { return j.Role }
