package agent

import (
	"context"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// stopToResize shuts a VM down that is to reboot with another size: it takes the size when
// it is off, and starts again. When this host cannot hold the new size, its guest only
// reboots, and the old size goes on.
// Source: Nova compute/manager.py (resize claims room before the guest is shut down).
func (a *Agent) stopToResize(ctx context.Context, v *store.VM, d hypervisor.Domain,
	now time.Time) error {
	why, err := a.cannotResize(ctx, v)
	if err != nil {
		return err
	}
	if v, err = a.troubled(ctx, v, why, now); err != nil {
		return err
	}
	if why != "" {
		return a.reboot(ctx, v, now)
	}
	if v, err = a.begins(ctx, v, store.Resizing); err != nil {
		return err
	}
	a.recorder.Note(now, a.host, v.VM.ID, "shuts down to be resized to "+store.Resize(d.VM, v.VM))
	a.queue.At(v.Key(), now.Add(a.config.Poll))
	return a.hv.Do(ctx, d.VM.ID, hypervisor.Stop{Grace: grace})
}

// sizeToStart returns the size that a VM that is off starts with. A resize that is wanted
// takes place here; one that is refused leaves the old size, and so does a crash. It returns
// no size when there is no room for the VM at all: one that was off, as it should be, has
// kept none.
func (a *Agent) sizeToStart(ctx context.Context, v *store.VM, d hypervisor.Domain,
	now time.Time) (*store.VM, *store.Size, error) {
	has, why, err := store.SizeOf(v.Now()), "", error(nil)
	if closed := a.closedTo(v); v.Ended && closed != "" {
		_, err = a.troubled(ctx, v, "it does not start: "+closed, now)
		return nil, nil, err
	}
	if v.Resized() && d.State != hypervisor.Crashed {
		if v, why, err = a.resize(ctx, v, d, now); err != nil {
			return nil, nil, err
		}
		if why == "" {
			return v, store.SizeOf(v.VM), nil
		}
	}
	if v.Ended {
		no, err := a.cannotHold(ctx, v, has)
		if err != nil {
			return nil, nil, err
		}
		if len(no) > 0 {
			a.queue.At(v.Key(), now.Add(a.config.RetryCap))
			_, err = a.troubled(ctx, v, "it does not start: "+refusal(no), now)
			return nil, nil, err
		}
	}
	if why != "" {
		v, err = a.troubled(ctx, v, why, now)
	}
	return v, has, err
}

// resize gives a VM that is off the size that is wanted, or returns why not.
func (a *Agent) resize(ctx context.Context, v *store.VM, d hypervisor.Domain, now time.Time) (
	*store.VM, string, error) {
	why, err := a.cannotResize(ctx, v)
	if err != nil || why != "" || d.State == hypervisor.Absent {
		return v, why, err
	}
	if v, err = a.begins(ctx, v, store.Resizing); err != nil {
		return nil, "", err
	}
	err = a.hv.Do(ctx, v.VM.ID, hypervisor.Resize{VM: store.SizeOf(v.VM).Of(d.VM)})
	switch {
	case refuses(err, hypervisor.NoRoom, hypervisor.Invalid, hypervisor.Unsupported,
		hypervisor.Conflict):
		return v, "not resized to " + sizeText(v.VM) + ": " + errorText(err), nil
	case err != nil:
		return nil, "", err
	}
	a.recorder.Note(now, a.host, v.VM.ID, "resized to "+store.Resize(d.VM, v.VM))
	return v, "", nil
}

// cannotResize returns why a VM does not get the size that is wanted; "" is that it does,
// as far as this host can tell.
func (a *Agent) cannotResize(ctx context.Context, v *store.VM) (string, error) {
	host, err := a.hv.Host(ctx)
	if err != nil {
		return "", err
	}
	if !host.Abilities.Has(hypervisor.CanResize) {
		return "not resized: this host cannot resize a VM", nil
	}
	no, err := a.cannotHold(ctx, v, store.SizeOf(v.VM))
	if err != nil || len(no) == 0 {
		return "", err
	}
	return "not resized to " + sizeText(v.VM) + ": " + refusal(no), nil
}

// A refusedSize is a size that the hypervisor did not give a VM that runs, and until when it is not
// asked again.
type refusedSize struct {
	Size  string
	Until time.Time
}

// resizeLive gives a VM that runs the size that is wanted, as far as it was started with room for
// that, or returns why not; "" is also that it waits for its next start. The resize is announced
// before: until that is taken back no migration begins, whose target would not have the hardware that
// the source has. It returns the VM as it is then.
func (a *Agent) resizeLive(ctx context.Context, v *store.VM, d hypervisor.Domain, now time.Time) (
	*store.VM, hypervisor.Domain, string, error) {
	if next, no := v.Grows(d.VM); no != nil || next.Equal(d.VM) || v.MovesDisk() {
		return v, d, "", nil
	}
	host, err := a.hv.Host(ctx)
	if err != nil || !host.Abilities.Has(hypervisor.CanResizeLive) {
		return v, d, "", err
	}
	d, err = a.hv.Domain(ctx, v.VM.ID) // its disks may have changed since it was looked at
	next, no := v.Grows(d.VM)
	if err != nil || no != nil || next.Equal(d.VM) || d.State != hypervisor.Running {
		return v, d, "", err
	}
	size := store.Resize(d.VM, next)
	lacks, err := a.cannotHold(ctx, v, store.SizeOf(next))
	if err != nil {
		return v, d, "", err
	}
	if len(lacks) > 0 {
		return v, d, "not resized to " + size + ": " + refusal(lacks), nil
	}
	if try, is := a.unresized[v.VM.ID]; is && now.Before(try.Until) && size == try.Size {
		return v, d, v.Trouble, nil // it is not asked for at every look
	}
	if v, err = a.begins(ctx, v, store.Resizing); err != nil {
		return nil, d, "", err
	}
	why := ""
	delete(a.unresized, v.VM.ID)
	err = a.hv.Do(ctx, v.VM.ID, hypervisor.Resize{VM: next})
	switch {
	case refuses(err, hypervisor.NoRoom, hypervisor.Invalid, hypervisor.Unsupported,
		hypervisor.Conflict):
		why = "not resized to " + size + ": " + errorText(err)
		a.unresized[v.VM.ID] = refusedSize{size, now.Add(a.config.RetryCap)}
		a.queue.At(v.Key(), now.Add(a.config.RetryCap))
	case err != nil:
		return nil, d, "", err
	default:
		a.recorder.Note(now, a.host, v.VM.ID, "resized to "+size+" while it runs")
	}
	d, err = a.hv.Domain(ctx, v.VM.ID)
	return v, d, why, err
}
