package conformance

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A Lab is a fresh world of one case: two hosts that run nothing, and what can be
// done to them. Each host has room for at least four of VM at once, and a VM
// described by VM starts with whatever other memory its host has room for.
//
// The functions that break something return an error when they could not; the
// case then fails.
type Lab struct {
	// Source and Target are the two hosts, named differently.
	Source, Target hypervisor.Hypervisor
	// VM describes a small VM that boots on either host. It answers equal VMs for
	// equal names, and has no disk named "data".
	VM func(hypervisor.VMID) hypervisor.VM
	// Images is an empty directory that both hosts have, in which they may make images of disks.
	// Default: /images, for hosts that make none.
	Images string
	// ImagesStay: the hosts migrate no VM with an image there. libvirt refuses to where it does not know the
	// file system for one that hosts share.
	ImagesStay bool
	// Pass lets time pass. Default: time.Sleep.
	Pass func(time.Duration)
	// Within is how long the suite waits at most for what must come. Default: one minute.
	Within time.Duration
	// Steps is how many commands the random walk gives. Default: 100.
	Steps int
	// Seed makes the choices of the random walk. Default: 1.
	Seed uint64

	// Slow caps a transfer so that memory of a VM still moves when the suite acts:
	// the transfer would last at least five seconds.
	Slow hypervisor.Bandwidth
	// BusyVM describes a VM whose guest writes memory faster than Slow.
	BusyVM func(hypervisor.VMID) hypervisor.VM
	// Verify looks into a guest that runs on a host: its memory is intact and its
	// past is one, without a gap and without a fork.
	Verify func(hypervisor.HostName, hypervisor.VMID) error
	// Alive answers on which hosts the guest executes, seen from outside of their
	// hypervisors.
	Alive func(hypervisor.VMID) ([]hypervisor.HostName, error)
	// Twice answers an error when the guest has ever executed on two hosts at once. Only the
	// guest can tell: its heartbeats, numbered, heard by one reader. Without it the suite
	// compares what the two hosts say, which is enough where they say it without delay.
	Twice func(hypervisor.VMID) error
	// Reopen replaces the connection to a host, as when our process died without
	// warning and another one takes over. The old one is not used any more.
	Reopen func(hypervisor.HostName) (hypervisor.Hypervisor, error)
	// KillVM ends the process of a VM on a host, as kill -9 does. The suite asks for
	// it when there is one: at a target not before memory moves, and never for a
	// source that is handed over on a host without [hypervisor.CanTakeBack].
	KillVM func(hypervisor.HostName, hypervisor.VMID) error
	// CutLink drops everything between the two hosts until MendLink. It is not reported:
	// connections stay open, unless a hypervisor misses an answer for too long, which
	// Within must allow for. What it asks afterwards may be Transient for a while.
	CutLink func() error
	// MendLink undoes CutLink. It is there when CutLink is.
	MendLink func() error
	// PeerTimeout is after how long without an answer a hypervisor takes the other one for lost, and
	// fails what is under way. Default, 0: never.
	PeerTimeout time.Duration
	// ResetLink closes every connection between the two hosts.
	ResetLink func() error
	// Hang stops the process of a VM on a host so that it does not answer, as
	// kill -STOP does. What it returns lets it go on.
	Hang func(hypervisor.HostName, hypervisor.VMID) (thaw func() error, err error)
	// Restart takes the power from a host and gives it back.
	Restart func(hypervisor.HostName) (hypervisor.Hypervisor, error)
}

// Walk gives random commands to a Lab, and checks after each that no VM executes
// twice or is lost, that every error is an Error and that a command may be
// repeated. It tells no lies: its evidence is what it saw. Every choice is made by
// choose, which returns a number in [0, n): drawn from rapid, a walk that fails
// shrinks.
func Walk(t TB, lab *Lab, choose func(what string, n int) int) {
	t.Helper()
	failureWalk(t, lab, choose)
}
