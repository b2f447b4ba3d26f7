package agent

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// pause stops the guest of a VM that runs. It is announced first: whatever becomes of this agent,
// a later one knows that it is godwit's to resume.
func (a *Agent) pause(ctx context.Context, v *store.VM, now time.Time) error {
	if v.Operation != store.Pausing || !v.Paused {
		var err error
		v, err = a.tell(ctx, v, func(next *store.VM) {
			next.Operation, next.Paused = store.Pausing, true
		})
		if err != nil {
			return err
		}
		a.recorder.Note(now, a.host, v.VM.ID, because("is paused", "pause", v))
	}
	a.queue.At(v.Key(), now.Add(a.config.Poll))
	err := a.hv.Do(ctx, v.VM.ID, hypervisor.Pause{})
	if err != nil {
		return a.refusedLife(ctx, v, "it is not paused: ", err, now)
	}
	return a.changed(ctx, v, true)
}

// resume lets the guest of a VM run on that this agent, or one before it, has paused. It is asked
// for also when the guest runs: a pause that was not answered may take effect late.
func (a *Agent) resume(ctx context.Context, v *store.VM, now time.Time) error {
	if v.Operation != store.Resuming {
		var err error
		if v, err = a.begins(ctx, v, store.Resuming); err != nil {
			return err
		}
		a.recorder.Note(now, a.host, v.VM.ID, because("is resumed", "resume", v))
	}
	a.queue.At(v.Key(), now.Add(a.config.Poll))
	if err := a.hv.Do(ctx, v.VM.ID, hypervisor.Unpause{}); err != nil {
		return a.refusedLife(ctx, v, "it is not resumed: ", err, now)
	}
	return a.changed(ctx, v, false)
}

// changed tells that the guest was paused, or runs on.
func (a *Agent) changed(ctx context.Context, v *store.VM, paused bool) error {
	_, err := a.tell(ctx, v, func(next *store.VM) {
		next.Operation, next.Paused, next.Trouble = store.Nothing, paused, ""
	})
	return err
}

// refusedLife tells why a command was refused, which is given again later.
func (a *Agent) refusedLife(ctx context.Context, v *store.VM, what string, err error,
	now time.Time) error {
	if !refuses(err, hypervisor.Conflict, hypervisor.Unsupported, hypervisor.Invalid) {
		return err
	}
	_, told := a.troubled(ctx, v, what+errorText(err), now)
	return errors.Join(err, told)
}

// whilePaused does what is asked of a VM whose guest is paused. One that godwit has not paused is
// left alone: an operator on the host, or its hypervisor, had a reason. Who wants it to run on has
// godwit adopt the pause, and takes that back.
func (a *Agent) whilePaused(ctx context.Context, v *store.VM, now time.Time) error {
	switch {
	case !v.Pause && v.Paused:
		return a.resume(ctx, v, now)
	case v.Off():
		how := "godwit vm resume it"
		if !v.Pause {
			how = "not by godwit: resume it on " + string(a.host)
		}
		_, err := a.troubled(ctx, v, "it does not shut down: its guest is paused: "+how+
			", or godwit vm stop --kill", now)
		return err
	case v.Pause && (!v.Paused || v.Operation != store.Nothing || v.Trouble != "" || a.uncounted(v)):
		_, err := a.tell(ctx, v, func(next *store.VM) {
			a.count(next)
			next.Operation, next.Paused, next.Ended, next.Trouble = store.Nothing, true, false, ""
		})
		return err
	case !v.Pause && !v.Ended:
		_, err := a.troubled(ctx, v, "its guest is paused, and not by godwit: godwit vm pause and then "+
			"godwit vm resume let it run on", now)
		return err
	}
	return nil
}

// because says what is done to a VM, and on whose request, unless something else was asked for since.
func because(what, request string, v *store.VM) string {
	if who := v.Asked.Words(); who != "" && v.Asked.What == request {
		return what + ": " + who
	}
	return what
}
