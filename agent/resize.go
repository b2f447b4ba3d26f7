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
	a.recorder.Note(now, a.host, v.VM.ID, "shuts down to be resized to "+sizeText(v.VM))
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
	a.recorder.Note(now, a.host, v.VM.ID, "resized to "+sizeText(v.VM))
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
