package agent

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// grace is how long a guest has to shut down.
// Source: KubeVirt v1.9.0 defaults.go (terminationGracePeriodSeconds of 30), doubled.
const grace = time.Minute

// keepRunning sees to it that a VM that belongs here does what its record says. A VM that
// a migration has claimed is left alone, whatever it does, and so is every VM while this
// host is cut off.
func (a *Agent) keepRunning(ctx context.Context, v *store.VM, now time.Time) error {
	if v.Releasing() && !a.cutOff() {
		return a.unclaim(ctx, v, now)
	}
	if v.ActiveMigration != "" || a.cutOff() {
		return nil
	}
	d, err := a.hv.Domain(ctx, v.VM.ID)
	if err != nil {
		return a.unknown(ctx, v, err, now)
	}
	a.startsAlone(ctx, v, now)
	if why := a.overruled(v); why != "" && (rests(d.State) || a.isHere(v)) {
		_, err := a.troubled(ctx, v, why, now)
		return err
	}
	if v.Rename != nil && rests(d.State) { // from now on only its new name starts it
		return a.rename(ctx, v, d, now)
	}
	if v, err = a.changeDisks(ctx, v, d, now); err != nil {
		return err
	}
	if v, err = a.snapshots(ctx, v, d, now); err != nil {
		return err
	}
	switch d.State {
	case hypervisor.Shutoff, hypervisor.Crashed, hypervisor.Absent:
		switch { // also what has ended is looked at: a start may take effect late
		case !v.Off():
			return a.startAnew(ctx, v, d, now)
		case !v.Ended:
			return a.ended(ctx, v, d)
		}
	case hypervisor.Running:
		return a.whileRunning(ctx, v, d, now)
	case hypervisor.Paused, hypervisor.Starting, hypervisor.Stopping, hypervisor.Rebooting:
		return a.onTheWay(ctx, v, d, now)
	}
	return nil
}

// startsAlone has only this agent start a VM from now on, and not its hypervisor when the host boots.
func (a *Agent) startsAlone(ctx context.Context, v *store.VM, now time.Time) {
	if !a.mayAutostart(v) {
		return
	}
	if err := a.config.DisableAutostart(ctx, v.VM.ID); err != nil {
		a.warn(v.VM.ID, "may be started with its host, although it runs elsewhere then: "+errorText(err)+
			"; virsh autostart --disable "+string(v.VM.ID)+" would prevent that", now)
		return
	}
	a.alone[v.VM.ID] = true
}

// mayAutostart reports whether the hypervisor may start a VM by itself, as far as is known.
func (a *Agent) mayAutostart(v *store.VM) bool {
	return a.config.DisableAutostart != nil && !a.alone[v.VM.ID]
}

// rests reports whether a VM in this state does not run, and is started if it shall.
func rests(s hypervisor.DomainState) bool {
	return s == hypervisor.Shutoff || s == hypervisor.Crashed || s == hypervisor.Absent
}

// unknown tells why it cannot be seen what a VM does, where that does not pass by itself: something
// runs it of which the hypervisor has no record. It is neither started nor said to have stopped.
func (a *Agent) unknown(ctx context.Context, v *store.VM, err error, now time.Time) error {
	if !errors.Is(err, hypervisor.Conflict) {
		return err
	}
	why := "it does not start: "
	if v.Stopped {
		why = "it is not known to have stopped: "
	}
	_, told := a.troubled(ctx, v, why+errorText(err), now)
	return errors.Join(err, told)
}

// whileRunning does what is asked of a VM that runs.
func (a *Agent) whileRunning(ctx context.Context, v *store.VM, d hypervisor.Domain,
	now time.Time) error {
	switch {
	case v.Off():
		return a.stop(ctx, v, now)
	case v.Reboots != v.Rebooted && v.Resized():
		return a.stopToResize(ctx, v, d, now)
	case v.Reboots != v.Rebooted:
		return a.reboot(ctx, v, now)
	case v.Pause:
		return a.pause(ctx, v, now)
	case v.Paused: // a pause that was asked for may yet take effect
		return a.resume(ctx, v, now)
	}
	return a.isAsWanted(ctx, v, d, now)
}

// onTheWay waits for a VM that starts, stops or reboots. A kill is passed on.
func (a *Agent) onTheWay(ctx context.Context, v *store.VM, d hypervisor.Domain,
	now time.Time) error {
	if d.State != hypervisor.Paused {
		a.queue.At(v.Key(), now.Add(a.config.Poll))
	}
	switch {
	case d.State == hypervisor.Paused && !(v.Stopped && v.Kill):
		return a.whilePaused(ctx, v, now)
	case v.Stopped && v.Kill && d.State != hypervisor.Starting:
		return a.stop(ctx, v, now)
	case d.State == hypervisor.Rebooting && v.Operation == store.Rebooting:
		return a.rebooted(ctx, v) // the answer was lost
	}
	return nil
}

// startAnew starts a VM from its disks, in the size that is wanted if that can be. It
// announces that first: the writing fails when the VM has been claimed or has moved since
// this agent read it, and when this host is being cut off.
func (a *Agent) startAnew(ctx context.Context, v *store.VM, d hypervisor.Domain,
	now time.Time) error {
	v, size, err := a.sizeToStart(ctx, v, d, now)
	if err != nil || size == nil {
		return err
	}
	repeated := v.Operation == store.Starting && v.Trouble != ""
	v, err = a.tell(ctx, v, func(next *store.VM) {
		next.Boots++
		a.count(next)
		next.Ended, next.Rebooted, next.Size, next.Paused = false, next.Reboots, size, false
		next.Operation = store.Starting
	})
	if err != nil {
		return err
	}
	if !repeated {
		a.recorder.Note(now, a.host, v.VM.ID, "starts anew")
	}
	err = a.hv.Do(ctx, v.VM.ID, hypervisor.Start{VM: v.Now(), Boot: v.Boots})
	if refuses(err, hypervisor.NoRoom, hypervisor.Invalid, hypervisor.Unsupported,
		hypervisor.Conflict) {
		_, told := a.troubled(ctx, v, "it does not start: "+errorText(err), now)
		return errors.Join(err, told)
	}
	a.queue.At(v.Key(), now.Add(a.config.Poll))
	return err
}

// stop shuts a VM down, or kills it.
func (a *Agent) stop(ctx context.Context, v *store.VM, now time.Time) error {
	if v.Operation != store.Stopping {
		var err error
		if v, err = a.begins(ctx, v, store.Stopping); err != nil {
			return err
		}
		a.recorder.Note(now, a.host, v.VM.ID, "shuts down")
	}
	a.queue.At(v.Key(), now.Add(a.config.Poll))
	if v.Kill {
		return a.hv.Do(ctx, v.VM.ID, hypervisor.Kill{})
	}
	return a.hv.Do(ctx, v.VM.ID, hypervisor.Stop{Grace: graceOf(v)})
}

// graceOf returns how long the guest of a VM has to shut down.
func graceOf(v *store.VM) time.Duration {
	if !v.Stopped && v.Evicted != nil && v.Evicted.Grace > 0 {
		return v.Evicted.Grace
	}
	return grace
}

// reboot asks the guest to reboot. Asked again while it does, it does so once.
func (a *Agent) reboot(ctx context.Context, v *store.VM, now time.Time) error {
	v, err := a.begins(ctx, v, store.Rebooting)
	if err != nil {
		return err
	}
	a.recorder.Note(now, a.host, v.VM.ID, "reboots")
	a.queue.At(v.Key(), now.Add(a.config.Poll))
	if err := a.hv.Do(ctx, v.VM.ID, hypervisor.Reboot{}); err != nil {
		return err
	}
	return a.rebooted(ctx, v)
}

// rebooted tells that the reboots that were asked for are under way.
func (a *Agent) rebooted(ctx context.Context, v *store.VM) error {
	if v.Rebooted == v.Reboots {
		return nil
	}
	_, err := a.tell(ctx, v, func(next *store.VM) { next.Rebooted = next.Reboots })
	return err
}

// isAsWanted takes back what was announced of a VM that runs, and tells how large it is,
// why it is not as large as it shall be, and how fast its guest writes.
func (a *Agent) isAsWanted(ctx context.Context, v *store.VM, d hypervisor.Domain,
	now time.Time) error {
	v, d, why, err := a.resizeLive(ctx, v, d, now)
	if err != nil {
		return err
	}
	// Another size: an operator asked for a resize before the size was stored.
	other := !store.SizeOf(d.VM).Is(v.Now())
	if other || v.Ended || v.Operation != store.Nothing || a.uncounted(v) {
		v, err = a.tell(ctx, v, func(next *store.VM) {
			a.count(next)
			next.Operation, next.Ended = store.Nothing, false
			if other || next.Size != nil { // a disk may have come
				next.Size = store.SizeOf(d.VM)
			}
		})
	}
	if err == nil && why == "" && v.Resized() {
		why, err = a.cannotResize(ctx, v)
	}
	if err != nil {
		return err
	}
	if v, err = a.troubled(ctx, v, why, now); err != nil {
		return err
	}
	return a.measure(ctx, v, d, now)
}

// ended tells that a VM that shall not run has stopped. One whose start was announced and that
// is not here has never been: what there is of it elsewhere is still needed. A start that was
// asked for may take effect late, and the VM may be started elsewhere from now on: it is killed
// before, which no start overtakes.
func (a *Agent) ended(ctx context.Context, v *store.VM, d hypervisor.Domain) error {
	if v.Operation == store.Starting && d.State == hypervisor.Shutoff {
		if err := a.hv.Do(ctx, v.VM.ID, hypervisor.Kill{}); err != nil {
			return err
		}
	}
	_, err := a.tell(ctx, v, func(next *store.VM) {
		next.Ended, next.Trouble = true, ""
		if d.State != hypervisor.Absent || next.Operation != store.Starting {
			next.Operation = store.Nothing
		}
	})
	return err
}

// begins announces what is done to a VM next.
func (a *Agent) begins(ctx context.Context, v *store.VM, what store.Operation) (*store.VM, error) {
	if v.Operation == what {
		return v, nil
	}
	return a.tell(ctx, v, func(next *store.VM) { next.Operation = what })
}

// troubled tells why a VM is not as its operator wants it; "" is that it is.
func (a *Agent) troubled(ctx context.Context, v *store.VM, why string, now time.Time) (
	*store.VM, error) {
	if v.Trouble == why {
		return v, nil
	}
	v, err := a.tell(ctx, v, func(next *store.VM) { next.Trouble = why })
	if err == nil && why != "" {
		a.recorder.Note(now, a.host, v.VM.ID, why)
	}
	return v, err
}

// tell stores what this agent has to say about a VM, unless a controller has claimed or moved
// it meanwhile, or this host is being cut off.
func (a *Agent) tell(ctx context.Context, v *store.VM, how func(*store.VM)) (*store.VM, error) {
	next := *v
	how(&next)
	stored, err := a.store.Put(ctx, &next, a.ownRecord())
	if err != nil {
		return nil, err
	}
	saved := stored.(*store.VM)
	a.atHome(saved)
	a.remember(saved)
	return saved, nil
}
