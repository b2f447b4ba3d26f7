package agent

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/store"
)

// send does what a migration asks of its source.
func (a *Agent) send(ctx context.Context, m *store.Migration, now time.Time) error {
	switch p := m.State.Phase; {
	case p == migration.Succeeded:
		return a.release(ctx, m, now)
	case p == migration.Failed && m.Source.Began && !m.Source.Failed && !m.Target.Completed:
		return a.closeUp(ctx, m, now)
	case p.Final() || m.Source.Failed || m.Target.Completed:
		return nil
	case m.Source.Began:
		return a.drive(ctx, m, now)
	case p == migration.TargetReady && m.Target.Address != "" && !m.Cancel && !m.Target.Down &&
		!m.State.Conditions.Has(migration.AbortRequested) && !a.cutOff():
		return a.begin(ctx, m, now)
	}
	return nil
}

// begin announces that the transfer begins, and only then begins it: a participant that
// ended the migration meanwhile wrote the record, and the announcement fails. So it does
// when this host is being cut off: its VMs may soon be started elsewhere.
func (a *Agent) begin(ctx context.Context, m *store.Migration, now time.Time) error {
	m, err := a.report(ctx, m, func(r *store.Migration) { r.Source.Began = true },
		a.ownRecord())
	if err != nil {
		return err
	}
	return a.drive(ctx, m, now)
}

// drive looks at a transfer that was announced, and performs its next steps.
func (a *Agent) drive(ctx context.Context, m *store.Migration, now time.Time) error {
	p, err := a.hv.Progress(ctx, m.Spec.ID)
	if err != nil {
		return err
	}
	a.throttled(m, p, now)
	switch p.Status {
	case hypervisor.JobNone:
		return a.driveNothing(ctx, m, now)
	case hypervisor.JobSetup, hypervisor.JobActive:
		if m.Source.Unresolved && p.Mode == hypervisor.PostCopy {
			return a.recovered(ctx, m, now)
		}
		return a.driveActive(ctx, m, p, now)
	case hypervisor.JobFailed, hypervisor.JobCancelled:
		if m.Source.Error != "" { // why it was cancelled says more than that it was
			p.Error = m.Source.Error
		}
		return a.kept(ctx, m, p, now)
	case hypervisor.JobBroken:
		if err := a.resolve(ctx, m, p, now); err != nil {
			return err
		}
		return a.recover(ctx, a.moves.Get(m.Spec.ID), p, now)
	case hypervisor.JobSucceeded:
		if _, dead := m.TargetDead(); dead { // it died before it could say that the VM had come
			return a.resolve(ctx, m, p, now)
		}
		if m.Source.Unresolved && p.Mode == hypervisor.PostCopy { // it went on, and ended, since the last look
			if err := a.recovered(ctx, m, now); err != nil {
				return err
			}
			m = a.moves.Get(m.Spec.ID)
		}
	case hypervisor.JobSwitching:
		a.again(m, now, a.config.Poll)
	}
	return a.started(ctx, m, p)
}

// throttled takes in whether a guest is slowed down. In post-copy it is not: it runs elsewhere.
func (a *Agent) throttled(m *store.Migration, p hypervisor.Progress, now time.Time) {
	percent := 0
	if p.Status == hypervisor.JobActive && p.Mode != hypervisor.PostCopy {
		percent = p.Throttle
	}
	a.moves.Throttled(m.Spec.ID, percent, now)
}

// driveNothing starts the transfer, or, when the hypervisor no longer knows of
// one, finds out what has become of the VM. That the VM does not run here proves
// nothing, even if no start is remembered: it may run at the target.
func (a *Agent) driveNothing(ctx context.Context, m *store.Migration, now time.Time) error {
	d, err := a.hv.Domain(ctx, m.Spec.VM)
	if err != nil {
		return err
	}
	there := d.State.Executes() || d.State == hypervisor.Paused
	started, aborting := m.Source.Started, m.State.Conditions.Has(migration.AbortRequested)
	switch {
	case there && !started && !aborting && a.cutOff():
		return nil
	case there && !started && !aborting:
		if v := a.home.Get(m.Spec.VM); v != nil && !store.SizeOf(d.VM).Is(v.Now()) {
			return a.kept(ctx, m, nothingSent("the target expects another size: "+
				sizeText(v.Now())), now)
		}
		if why := unsendable(a.home.Get(m.Spec.VM)); why != "" {
			return a.kept(ctx, m, nothingSent(why), now)
		}
		return a.start(ctx, m, d.VM, now)
	case there && started && !m.Source.Unresolved:
		return a.kept(ctx, m, hypervisor.Progress{Error: "no transfer is under way"}, now)
	}
	// The request to send may have been lost, or taken effect: the target knows.
	return a.resolve(ctx, m, hypervisor.Progress{Error: "no transfer is known, the VM is " +
		d.State.String()}, now)
}

// unsendable says why a VM must not be sent, by what is done to its disks; "" is that it may.
func unsendable(v *store.VM) string {
	switch {
	case v == nil:
		return ""
	case v.Operation == store.Resizing:
		return "it is being resized"
	case v.Operation == store.Plugging:
		return "one of its disks is being attached or detached"
	case v.Operation == store.Snapshotting:
		return "a snapshot of one of its disks is being changed"
	case v.MovesDisk():
		return "one of its disks is on its way to another image"
	case v.Operation == store.Renaming:
		return "it gets another name"
	}
	if can, why := v.CanMigrate(); !can && v.Migratable {
		return why
	}
	return ""
}

// start asks the hypervisor to send, with the limit of the downtime that convergence would
// begin with: it looks at the transfer as it will be when it has just begun. What else it
// decides is not done, and it decides it again at the next look. It is safe to ask again.
func (a *Agent) start(ctx context.Context, m *store.Migration, vm hypervisor.VM,
	now time.Time) error {
	p := hypervisor.Progress{Job: m.Spec.ID, Status: hypervisor.JobSetup, Started: now,
		Total: vm.Memory, Disks: vm.LocalSize(), Remaining: vm.Memory + vm.LocalSize()}
	state, v := a.config.Converge(monitorOptions(m.Options, p), convergence.State{}, p, now)
	host, err := a.hv.Host(ctx)
	if err != nil {
		return err
	}
	options := a.config.TransferOptions(m.Options, host.Abilities)
	if v.Action == convergence.SetDowntime {
		options.Downtime = max(0, v.Limit)
	}
	if err := a.leaves(m, now); err != nil {
		return err
	}
	err = a.hv.Migrate(ctx, hypervisor.Outgoing{Job: m.Spec.ID, VM: m.Spec.VM,
		Target: m.State.Target, Address: m.Target.Address, Options: options})
	switch {
	case refuses(err, hypervisor.Invalid, hypervisor.Unsupported, hypervisor.Conflict,
		hypervisor.NotFound):
		return a.kept(ctx, m, nothingSent(err.Error()), now)
	case err != nil:
		return err
	case options.Downtime > 0:
		a.note(now, m, "convergence: "+v.String())
		state = state.Accepted(v, now)
	}
	*a.moves.Memory(m.Spec.ID) = state
	a.again(m, now, a.config.Poll)
	_, err = a.report(ctx, m, func(r *store.Migration) {
		r.Source.Started, r.Source.Cap = true, options.Bandwidth
	})
	return err
}

// started makes up for a report that was lost after the transfer had begun.
func (a *Agent) started(ctx context.Context, m *store.Migration, p hypervisor.Progress) error {
	if m.Source.Started && m.Source.Mode == p.Mode &&
		(p.Status != hypervisor.JobSucceeded || m.Source.HandedOver) {
		return nil
	}
	_, err := a.report(ctx, m, func(r *store.Migration) {
		r.Source.Started, r.Source.Mode = true, p.Mode
		if p.Status == hypervisor.JobSucceeded {
			r.Source.HandedOver = true
			measured(&r.Source, p)
		}
	})
	return err
}

// driveActive aborts a transfer that is no longer wanted, and helps one that is
// to converge.
func (a *Agent) driveActive(ctx context.Context, m *store.Migration, p hypervisor.Progress,
	now time.Time) error {
	if err := a.started(ctx, m, p); err != nil {
		return err
	}
	if m = a.moves.Get(m.Spec.ID); m.State.Conditions.Has(migration.AbortRequested) {
		a.again(m, now, a.config.Poll)
		return a.abort(ctx, m)
	}
	if err := a.limit(ctx, m, now); err != nil {
		return err
	}
	return a.converge(ctx, a.moves.Get(m.Spec.ID), p, now)
}

// limit passes on a limit on the bandwidth that has changed since the transfer began. One that the hypervisor
// cannot take is not asked for again; one that it does not take now is, after a while.
func (a *Agent) limit(ctx context.Context, m *store.Migration, now time.Time) error {
	if m.Options == nil || m.Options.Bandwidth == m.Source.Cap {
		return nil
	}
	if at := a.moves.LimitAt(m.Spec.ID); now.Before(at) {
		a.queue.At(m.Key(), at)
		return nil
	}
	limit := m.Options.Bandwidth
	said := "bandwidth limited to " + limit.String()
	if limit == 0 {
		said = "bandwidth not limited any more"
	}
	err := a.hv.Adjust(ctx, m.Spec.ID, hypervisor.SetBandwidth{Limit: limit})
	switch {
	case refuses(err, hypervisor.Conflict):
		a.warn(m.Spec.VM, "bandwidth not changed yet: "+errorText(err), now)
		a.moves.LimitLater(m.Spec.ID, now.Add(remember))
		a.again(m, now, remember)
		return nil
	case refuses(err, hypervisor.Unsupported):
		said = "bandwidth not changed: " + errorText(err)
	case err != nil:
		return err
	}
	return a.announce(ctx, m, now, said, func(r *store.Migration) { r.Source.Cap = limit })
}

// abort passes the request on.
func (a *Agent) abort(ctx context.Context, m *store.Migration) error {
	if err := a.cancel(ctx, m.Spec.ID); err != nil || m.Source.Aborting {
		return err
	}
	_, err := a.report(ctx, m, func(r *store.Migration) { r.Source.Aborting = true })
	return err
}

// remember is how long the monitor's memory may stay unstored, and a transfer whose end a hint
// would tell not looked at.
const remember = 10 * time.Second

// converge asks what to do so that the transfer ends, and does it. The monitor's memory is
// stored before it acts, and now and then besides: an agent that dies loses at most a little
// patience, or asks once more for what was accepted.
func (a *Agent) converge(ctx context.Context, m *store.Migration, p hypervisor.Progress,
	now time.Time) error {
	state := a.moves.Memory(m.Spec.ID)
	next, v := a.config.Converge(monitorOptions(m.Options, p), *state, p, now)
	*state = next
	calm := a.config.Poll
	if !a.moves.Notified(m.Spec.ID) && a.hinted { // what stirred it may not be over yet
		calm = max(calm, min(next.Started.Add(next.Calm).Sub(now), remember))
	}
	a.again(m, now, calm)
	_, due := v.Adjustment()
	fresh := m.Source.Looked.IsZero() && now.Sub(p.Started) < remember
	if !due && (fresh || now.Sub(m.Source.Looked) < remember) {
		return nil
	}
	return a.adjust(ctx, m, p, v, now)
}

// adjust stores what convergence remembers, and does what it has decided, if anything.
func (a *Agent) adjust(ctx context.Context, m *store.Migration, p hypervisor.Progress,
	v convergence.Decision, now time.Time) error {
	state := a.moves.Memory(m.Spec.ID)
	before := *state
	m, err := a.report(ctx, m, func(r *store.Migration) {
		r.Source.Monitor, r.Source.Looked, r.Source.Sent = &before, now, p.Sent
		if v.Action == convergence.Abort {
			r.Source.Error, r.Source.GaveUp = "given up: "+v.String(), v.Why
		}
	})
	adjust, due := v.Adjustment()
	if err != nil || !due {
		return err
	}
	err = a.hv.Adjust(ctx, m.Spec.ID, adjust)
	switch {
	case err == nil:
		a.note(now, m, "convergence: "+v.String())
		*state = before.Accepted(v, now)
	case errors.Is(err, hypervisor.Conflict), errors.Is(err, hypervisor.Unsupported):
		after := before.Refused(v)
		*state = after
		_, err = a.report(ctx, m, func(r *store.Migration) { r.Source.Monitor = &after })
	}
	return err
}

// kept tells that the transfer has ended and the VM is still here. What the transfer sent, and
// how long the guest stood for it, counts although it was for nothing.
func (a *Agent) kept(ctx context.Context, m *store.Migration, p hypervisor.Progress,
	now time.Time) error {
	a.moves.Ended(m.Spec.ID)
	if err := a.stays(m.Spec.VM); err != nil {
		return err
	}
	return a.announce(ctx, m, now, "source kept the VM: "+p.Error, func(r *store.Migration) {
		r.Source.Failed, r.Source.Unresolved, r.Source.Error = true, false, p.Error
		measured(&r.Source, p)
	})
}

// nothingSent is the progress of a transfer that did not begin.
func nothingSent(why string) hypervisor.Progress {
	return hypervisor.Progress{Status: hypervisor.JobFailed, Error: why}
}

// measured takes over what the hypervisor measured of a transfer that has ended. A hypervisor
// that knows of no transfer has measured nothing.
func measured(r *store.SourceReport, p hypervisor.Progress) {
	if p.Status.Final() || p.Status == hypervisor.JobBroken {
		r.Downtime, r.Sent, r.Measured = p.Downtime, max(r.Sent, p.Sent), true
	}
}

// resolve finds out how a transfer ended that broke after the VM had stopped
// here: it says so, and takes the VM back when it may.
func (a *Agent) resolve(ctx context.Context, m *store.Migration, p hypervisor.Progress,
	now time.Time) error {
	if !m.Source.Unresolved {
		err := a.announce(ctx, m, now, "outcome unknown: "+p.Error, func(r *store.Migration) {
			r.Source.Unresolved, r.Source.Started, r.Source.Error = true, true, p.Error
			r.Source.Mode = p.Mode
		})
		if err != nil {
			return err
		}
		m = a.moves.Get(m.Spec.ID)
	}
	dead, ok := m.TargetDead()
	if !ok || m.Source.Ceded && dead.Proof == hypervisor.TargetDiscarded {
		return nil // the record changes when the outcome is known, or the target has said more
	}
	d, err := a.hv.Domain(ctx, m.Spec.VM)
	if err != nil {
		return err
	}
	goesOn := d.Unresolved && (d.State.Executes() || d.State == hypervisor.Paused) // by itself
	switch {
	case d.State == hypervisor.HandingOver || d.State == hypervisor.HandedOver || goesOn:
		if back, err := a.takeBack(ctx, m, dead, now); err != nil || !back {
			return err
		}
	case d.Unresolved: // it has lost its memory here, too: the host has to know before a start
		err := a.hv.Do(ctx, m.Spec.VM, hypervisor.Abandon{Job: m.Spec.ID, Dead: dead})
		if err != nil {
			return err
		}
	}
	return a.kept(ctx, m, p, now)
}

// recoverable reports whether a source may go on with a post-copy whose connection broke: its guest executes
// at the target as far as it has its memory, and what it lacks is here. That starts no guest and resumes none
// here. It is of no use when the target is dead.
func recoverable(m *store.Migration, p hypervisor.Progress, able hypervisor.Abilities) bool {
	_, dead := m.TargetDead()
	return p.Status == hypervisor.JobBroken && p.Mode == hypervisor.PostCopy && able.Has(hypervisor.CanRecover) &&
		!dead && !m.State.Phase.Final() && !m.Source.Failed && m.Target.Address != ""
}

// recover asks the hypervisor to go on with a post-copy that broke, where both hosts can. It does not wait for that:
// the transfer is broken until it goes on. Until the target can be reached that fails, and is asked for again after a
// while, which grows up to [Config.RetryCap].
func (a *Agent) recover(ctx context.Context, m *store.Migration, p hypervisor.Progress, now time.Time) error {
	if m == nil || a.cutOff() || !recoverable(m, p, hypervisor.CanRecover) {
		return nil
	}
	if a.moves.IsRecovering(m.Spec.ID, now) {
		a.again(m, now, a.config.Poll)
	}
	if at := a.moves.RecoverAt(m.Spec.ID); now.Before(at) {
		a.queue.At(m.Key(), at)
		return nil
	}
	if able, err := a.bothCan(ctx, m); err != nil || !recoverable(m, p, able) {
		return err
	}
	attempt, next := a.moves.Attempt(m.Spec.ID, now, a.config.Retry, a.config.RetryCap)
	a.queue.At(m.Key(), next)
	err := a.hv.Adjust(ctx, m.Spec.ID, hypervisor.Recover{Address: m.Target.Address})
	a.moves.Recovers(m.Spec.ID, err == nil, now)
	why := p.Error // with the attempt before
	switch {
	case errors.Is(err, hypervisor.Conflict): // it is not broken in a way that this would mend
		return nil
	case err != nil:
		why = errorText(err)
	default:
		a.again(m, now, a.config.Poll)
	}
	if err != nil || attempt > 1 {
		a.warn(m.Spec.VM, "post-copy broke, and does not go on yet: "+why, now)
	}
	return nil
}

// bothCan returns the abilities that both hosts of a migration have: some versions of a hypervisor send
// and do not survive to receive.
func (a *Agent) bothCan(ctx context.Context, m *store.Migration) (hypervisor.Abilities, error) {
	here, err := a.hv.Host(ctx)
	if err != nil || !here.Abilities.Has(hypervisor.CanRecover) {
		return 0, err
	}
	there, err := store.HostNamed(ctx, a.store, m.State.Target)
	if err != nil {
		return 0, err
	}
	return here.Abilities & there.Host.Abilities, nil
}

// recovered tells that a post-copy that broke goes on: its outcome is as open as that of any other.
func (a *Agent) recovered(ctx context.Context, m *store.Migration, now time.Time) error {
	a.again(m, now, a.config.Poll)
	return a.announce(ctx, m, now, "post-copy broke, and goes on", func(r *store.Migration) {
		r.Source.Unresolved, r.Source.Error = false, ""
	})
}

// closeUp ends what is left here of a transfer whose migration has failed without a word from
// here: this host was thought to be dead. The VM may have been started elsewhere meanwhile:
// what stands here is given up, never resumed, and what runs is left alone.
func (a *Agent) closeUp(ctx context.Context, m *store.Migration, now time.Time) error {
	p, err := a.hv.Progress(ctx, m.Spec.ID)
	if err != nil {
		return err
	}
	switch p.Status {
	case hypervisor.JobSetup, hypervisor.JobActive, hypervisor.JobSwitching: // not for long
		a.again(m, now, a.config.Poll)
		if cancellable(p) {
			return a.cancel(ctx, m.Spec.ID)
		}
		return nil
	}
	dead, ok := m.TargetDead()
	d, err := a.hv.Domain(ctx, m.Spec.VM)
	if err != nil || !ok {
		return err
	}
	stands := d.State == hypervisor.HandingOver || d.State == hypervisor.HandedOver
	if d.Job == m.Spec.ID && (stands || d.Unresolved && d.State.Rests()) {
		err := a.hv.Do(ctx, m.Spec.VM, hypervisor.Abandon{Job: m.Spec.ID, Dead: dead})
		if err != nil {
			return err
		}
	}
	p.Error = "it was thought to be dead"
	return a.kept(ctx, m, p, now)
}

// cancellable reports whether the guest runs on here when a transfer is cancelled.
func cancellable(p hypervisor.Progress) bool {
	return p.Mode != hypervisor.PostCopy && (p.Status == hypervisor.JobSetup || p.Status == hypervisor.JobActive)
}

// cancel asks for the end of a transfer. Too late is no error: the outcome tells.
func (a *Agent) cancel(ctx context.Context, job hypervisor.JobID) error {
	err := a.hv.Adjust(ctx, job, hypervisor.Cancel{})
	if errors.Is(err, hypervisor.Conflict) {
		return nil
	}
	return err
}

// takeBack lets a VM that had stopped here run again, when its target is known
// never to have run. When the target is dead but may have run, the memory here
// is older than the VM's disks: the VM starts anew instead, as it does after a post-copy
// from which the host knows no way back. A host that keeps nothing of what it has handed
// over can do neither: then it reports false.
func (a *Agent) takeBack(ctx context.Context, m *store.Migration, dead hypervisor.Evidence,
	now time.Time) (bool, error) {
	refused := false
	if dead.NeverRan(m.Spec.VM, m.State.Target, m.Spec.ID) && !m.Source.HandedOver {
		if may, err := a.mayRun(ctx, m, now); err != nil || !may {
			return false, err
		}
		err := a.hv.Do(ctx, m.Spec.VM, hypervisor.Resume{Job: m.Spec.ID, NeverRan: dead})
		if err == nil {
			a.note(now, m, "resumed at the source: "+dead.Proof.String())
		}
		refused = errors.Is(err, hypervisor.Conflict) && m.Source.Mode == hypervisor.PostCopy
		if !refused && !errors.Is(err, hypervisor.Unsupported) {
			return true, err
		}
	}
	err := a.hv.Do(ctx, m.Spec.VM, hypervisor.Abandon{Job: m.Spec.ID, Dead: dead})
	if errors.Is(err, hypervisor.Conflict) && dead.Proof == hypervisor.TargetDiscarded && !refused {
		return false, a.cede(ctx, m, now)
	}
	if err == nil {
		a.note(now, m, "memory given up, the target may have run: "+dead.Proof.String())
	}
	return true, err
}

// cede leaves a VM to its target: by the word of the hypervisor here the target had it,
// and nothing is left of it here. Asking again would be answered the same.
func (a *Agent) cede(ctx context.Context, m *store.Migration, now time.Time) error {
	return a.announce(ctx, m, now, "left to the target: nothing can be taken back here",
		func(r *store.Migration) { r.Source.Ceded, r.Source.HandedOver = true, true })
}

// release removes what is left here of a VM that has moved: the record says so.
func (a *Agent) release(ctx context.Context, m *store.Migration, now time.Time) error {
	a.moves.Ended(m.Spec.ID)
	if m.Source.Released {
		return nil
	}
	d, err := a.hv.Domain(ctx, m.Spec.VM)
	if err != nil {
		return err
	}
	if d.State == hypervisor.Absent || d.Job == m.Spec.ID { // its disks may be left of it
		if d.State.Executes() {
			a.note(now, m, "runs here although it has moved: left alone")
			return nil
		}
		release := hypervisor.Release{Job: m.Spec.ID,
			Moved: m.Testimony(hypervisor.RunsAtTarget, m.State.Target)}
		err = a.hv.Do(ctx, m.Spec.VM, release)
		if errors.Is(err, hypervisor.Conflict) && m.Target.Lost { // what is here is not fetched any more
			dead := m.Testimony(hypervisor.ProcessReaped, m.State.Target)
			abandon := hypervisor.Abandon{Job: m.Spec.ID, Dead: dead}
			err = errors.Join(a.hv.Do(ctx, m.Spec.VM, abandon), a.hv.Do(ctx, m.Spec.VM, release))
		}
		if err != nil && !errors.Is(err, hypervisor.NotFound) {
			return err
		}
	}
	p, err := a.hv.Progress(ctx, m.Spec.ID)
	if err != nil {
		return err
	}
	a.throttled(m, p, now)
	_, err = a.report(ctx, m, func(r *store.Migration) {
		r.Source.Released, r.Source.Monitor = true, nil // what helped it to converge is past
		if p.Status == hypervisor.JobSucceeded {
			measured(&r.Source, p)
		}
	})
	return err
}
