package agent

import (
	"context"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// changeDisks attaches and detaches the disks that are to be, one after the other. One that is refused
// keeps none of the others, and is tried again. It returns the VM as it is stored then.
func (a *Agent) changeDisks(ctx context.Context, v *store.VM, d hypervisor.Domain, now time.Time) (
	*store.VM, error) {
	v, err := a.moveDisk(ctx, v, d, now)
	if err != nil || v.MovesDisk() {
		return v, err
	}
	switch d.State {
	case hypervisor.Running, hypervisor.Paused, hypervisor.Shutoff, hypervisor.Absent:
	default:
		return v, nil // it is on its way: later
	}
	if len(v.DiskChanges) > 0 && v.Operation != store.Nothing && v.Operation != store.Plugging {
		a.queue.At(v.Key(), now.Add(a.config.Poll))
		return v, nil
	}
	for i := 0; i < len(v.DiskChanges); {
		if v.Void(i) || v.DiskChanges[i].Move != nil {
			i++
			continue
		}
		left := len(v.DiskChanges)
		next, err := a.changeDisk(ctx, v, i, d, now)
		if err != nil {
			return nil, err
		}
		if v = next; len(v.DiskChanges) == left { // it was refused
			i++
		}
	}
	if v.Operation == store.Plugging {
		return a.begins(ctx, v, store.Nothing)
	}
	return v, nil
}

// changeDisk makes change i of a VM's disks, or tells why not. It is announced before: until that is
// taken back no migration begins, whose target would not have the disks that the source has.
func (a *Agent) changeDisk(ctx context.Context, v *store.VM, i int, d hypervisor.Domain, now time.Time) (
	*store.VM, error) {
	c, why := v.DiskChanges[i], ""
	if d.State != hypervisor.Absent {
		var err error
		if v, err = a.begins(ctx, v, store.Plugging); err != nil {
			return nil, err
		}
		if why, err = a.plug(ctx, v, c); err != nil {
			return nil, err
		}
	}
	if why != "" {
		a.queue.At(v.Key(), now.Add(a.config.Retry))
		return a.notChanged(ctx, v, i, why, now)
	}
	done := "detached disk "
	if c.Attach != nil {
		done = "attached disk "
	}
	v, err := a.tell(ctx, v, func(next *store.VM) {
		if next.Changed(i); len(next.DiskChanges) == 0 {
			next.Operation = store.Nothing
		}
	})
	if err == nil {
		a.recorder.Note(now, a.host, v.VM.ID, asked(done+c.Disk(), c.By))
	}
	return v, err
}

// plug makes a change of the disks of a VM that has a domain. It returns why it is refused, in words.
func (a *Agent) plug(ctx context.Context, v *store.VM, c store.DiskChange) (string, error) {
	host, err := a.hv.Host(ctx)
	if err != nil {
		return "", err
	}
	if !host.Abilities.Has(hypervisor.CanAttachDisk) {
		return string(a.host) + " cannot attach or detach disks", nil
	}
	var what hypervisor.Command = hypervisor.DetachDisk{Name: c.Detach}
	if c.Attach != nil {
		what = hypervisor.AttachDisk{Disk: *c.Attach}
	}
	err = a.hv.Do(ctx, v.VM.ID, what)
	if refuses(err, hypervisor.NoRoom, hypervisor.Invalid, hypervisor.Unsupported,
		hypervisor.Conflict, hypervisor.NotFound, hypervisor.Transient) {
		return errorText(err), nil
	}
	if err != nil || c.Attach != nil {
		return "", err
	}
	d, err := a.hv.Domain(ctx, v.VM.ID) // a guest that runs is only asked to let it go
	if err == nil && d.VM.Hardware != nil && slices.ContainsFunc(d.VM.Hardware.Disks,
		func(disk hypervisor.Disk) bool { return disk.Name == c.Detach }) {
		return "its guest has not let go of it yet, and is asked again", nil
	}
	return "", err
}

// notChanged tells why a change of the disks was not made, once for each reason.
func (a *Agent) notChanged(ctx context.Context, v *store.VM, i int, why string, now time.Time) (
	*store.VM, error) {
	if v.DiskChanges[i].Why == why {
		return v, nil
	}
	v, err := a.tell(ctx, v, func(next *store.VM) {
		next.DiskChanges = slices.Clone(next.DiskChanges)
		next.DiskChanges[i].Why = why
	})
	if err == nil {
		c := v.DiskChanges[i]
		a.recorder.Note(now, a.host, v.VM.ID, "does not "+asked(c.Words(), c.By)+": "+why)
	}
	return v, err
}

// asked says what is done, and which operator asked for it, if that is known.
func asked(what, by string) string {
	if by != "" {
		return what + ", asked for by " + by
	}
	return what
}
