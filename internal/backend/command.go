package backend

import (
	"context"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Commands are the commands to a VM on its host, which was found as F. They wait for no guest: a
// command that takes time is noted in the VM's record, and its worker performs it step by step.
type Commands[F any] interface {
	Start(context.Context, F, hypervisor.Start) error
	Stop(context.Context, F, time.Duration) error
	Kill(context.Context, F) error
	Reboot(context.Context, F) error
	Pause(context.Context, F) error
	Unpause(context.Context, F) error
	Resize(context.Context, F, hypervisor.VM) error
	Snapshot(context.Context, F, hypervisor.Snapshot) error
	DeleteSnapshot(context.Context, F, hypervisor.DeleteSnapshot) error
	RevertSnapshot(context.Context, F, hypervisor.RevertSnapshot) error
	AttachDisk(context.Context, F, hypervisor.Disk) error
	DetachDisk(context.Context, F, string) error
	MoveDisk(context.Context, F, hypervisor.MoveDisk) error
	SwitchDisk(context.Context, F, string) error
	EndDiskMove(context.Context, F, hypervisor.EndDiskMove) error
	Measure(context.Context, F, time.Duration) error
	Forget(context.Context, F, hypervisor.Forget) error

	Discard(context.Context, F, hypervisor.Discard) error
	Release(context.Context, F, hypervisor.Release) error
	Activate(context.Context, F, hypervisor.Activate) error
	Resume(context.Context, F, hypervisor.Resume) error
	Abandon(context.Context, F, hypervisor.Abandon) error
}

// Do calls the method of to that performs a command. A VM that is not there can be started, and its job be
// discarded or released; it is forgotten already.
func Do[F any](ctx context.Context, to Commands[F], f F, there bool, c hypervisor.Command) error {
	switch c := c.(type) {
	case nil:
		return Errorf(hypervisor.Invalid, "no command")
	case hypervisor.Start:
		return to.Start(ctx, f, c)
	case hypervisor.Discard:
		return to.Discard(ctx, f, c)
	case hypervisor.Release:
		return to.Release(ctx, f, c)
	case hypervisor.Forget:
		if !there {
			return nil
		}
		return to.Forget(ctx, f, c)
	}
	if !there {
		return Errorf(hypervisor.NotFound, "no such VM")
	}
	return doThere(ctx, to, f, c)
}

// doThere is Do for a VM that is there.
func doThere[F any](ctx context.Context, to Commands[F], f F, c hypervisor.Command) error {
	switch c := c.(type) {
	case hypervisor.Stop:
		return to.Stop(ctx, f, c.Grace)
	case hypervisor.Kill:
		return to.Kill(ctx, f)
	case hypervisor.Reboot:
		return to.Reboot(ctx, f)
	case hypervisor.Pause:
		return to.Pause(ctx, f)
	case hypervisor.Unpause:
		return to.Unpause(ctx, f)
	case hypervisor.Resize:
		return to.Resize(ctx, f, c.VM)
	case hypervisor.Snapshot:
		return to.Snapshot(ctx, f, c)
	case hypervisor.DeleteSnapshot:
		return to.DeleteSnapshot(ctx, f, c)
	case hypervisor.RevertSnapshot:
		return to.RevertSnapshot(ctx, f, c)
	case hypervisor.AttachDisk:
		return to.AttachDisk(ctx, f, c.Disk)
	case hypervisor.DetachDisk:
		return to.DetachDisk(ctx, f, c.Name)
	case hypervisor.MoveDisk, hypervisor.SwitchDisk, hypervisor.EndDiskMove:
		return doMove(ctx, to, f, c)
	case hypervisor.MeasureDirtyRate:
		return to.Measure(ctx, f, c.For)
	case hypervisor.Activate:
		return to.Activate(ctx, f, c)
	case hypervisor.Resume:
		return to.Resume(ctx, f, c)
	case hypervisor.Abandon:
		return to.Abandon(ctx, f, c)
	}
	return Errorf(hypervisor.Unsupported, "%T", c)
}

// doMove is Do for the move of a disk.
func doMove[F any](ctx context.Context, to Commands[F], f F, c hypervisor.Command) error {
	switch c := c.(type) {
	case hypervisor.MoveDisk:
		return to.MoveDisk(ctx, f, c)
	case hypervisor.SwitchDisk:
		return to.SwitchDisk(ctx, f, c.Disk)
	case hypervisor.EndDiskMove:
		return to.EndDiskMove(ctx, f, c)
	}
	return Errorf(hypervisor.Unsupported, "%T", c)
}
