//go:build linux

package transfer

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp/domain"
	"github.com/godwit-vm/godwit/hypervisor/qmp/fault"
	"github.com/godwit-vm/godwit/hypervisor/qmp/handover"
	"github.com/godwit-vm/godwit/hypervisor/qmp/journal"
	"github.com/godwit-vm/godwit/hypervisor/qmp/life"
	"github.com/godwit-vm/godwit/hypervisor/qmp/monitor"
	"github.com/godwit-vm/godwit/hypervisor/qmp/probe"
	"github.com/godwit-vm/godwit/hypervisor/qmp/qapi"
	"github.com/godwit-vm/godwit/hypervisor/qmp/qemu"
)

// Progress answers how a job goes. The source's downtime ends when the target
// holds the complete state, the target's when the guest runs there.
func Progress(ctx context.Context, n *domain.Node, id hypervisor.JobID,
) (hypervisor.Progress, error) {
	j := n.Job(id)
	if j == nil {
		return hypervisor.Progress{Job: id}, nil
	}
	var m domain.Moment
	if d := n.Find(j.VM.ID); d != nil {
		var err error
		if m, err = d.Moment(ctx); err != nil {
			return hypervisor.Progress{}, fault.Observing(err)
		}
	}
	if m.Rec == nil || m.Job == nil || m.Job.ID != id {
		if now := n.Job(id); now != nil { // its end was noted before its domain went
			j = now
		}
		return j.Last, nil
	}
	job, l := m.Job, m.Look
	p := job.Last
	if l.Alive || job.Cold && job.Role == journal.Source && job.Stage.Live() {
		p = progress(job, m.Migration)
		p.Mode = life.Mode(job, l)
	}
	if life.Stranded(job, l) && job.Acknowledged && !job.Parked.IsZero() {
		// Post-copy is paused while something is left, and fails only when all is sent.
		// Source: QEMU 10.0 migration/migration.c (migration_detect_error, migration_completion).
		p.Remaining = 0
	}
	p.Status = life.Told(m.Rec, job, l)
	if !p.Status.Final() && life.Status(m.Rec, job, l).Final() {
		p.Error = job.Last.Error // not that of the migration before
	}
	if job.Role == journal.Source && job.Stage.Live() {
		mirrored(&p, job, l.Mirrors)
	}
	if p.Status == hypervisor.JobFailed && p.Error == "" && job.Role == journal.Target {
		p.Error = qemu.LastWords(n.QEMU.Settings(job.VM.ID))
	}
	return p, nil
}

// progress puts what QEMU tells of a migration into our terms.
func progress(j *journal.Job, m qapi.Migration) hypervisor.Progress {
	p := j.Last
	if m.Status == qapi.None || m.Status == "" || !j.Stage.Live() {
		return p
	}
	p.Sent = hypervisor.Bytes(m.RAM.Transferred)
	p.Iteration = m.RAM.DirtySyncCount
	p.Bandwidth = hypervisor.Bandwidth(math.Max(0, math.Min(m.RAM.Mbps, 1e9)) * 1e6 / 8)
	p.DirtyRate = hypervisor.Bandwidth(m.RAM.DirtyPagesRate * m.RAM.PageSize)
	p.Throttle = m.Throttle
	p.Remaining = hypervisor.Bytes(m.RAM.Remaining)
	if m.RAM.Total == 0 { // it does not know yet
		p.Remaining = p.Total
	}
	if j.Role == journal.Source {
		p.Downtime = time.Duration(m.Downtime) * time.Millisecond
		if m.ErrorDesc != "" {
			p.Error = m.ErrorDesc
		}
	}
	if j.GuestPaused && j.Role == journal.Source {
		p.Mode = hypervisor.PausedCopy
	}
	return p
}

// mirrored adds how the copies of the disks go. All of the memory comes after them. They go on
// until the guest has stopped, and what was sent of them stays sent.
func mirrored(p *hypervisor.Progress, job *journal.Job, ms []qapi.Job) {
	if job.Stage == journal.Mirroring && !job.Cold {
		p.Remaining = p.Total
	}
	for _, m := range ms {
		p.Sent += hypervisor.Bytes(m.Current)
		p.Remaining += hypervisor.Bytes(m.Total - m.Current)
		if m.Error != "" {
			p.Error = m.Error
		}
	}
}

// Adjust changes a job that this host sends. The caller holds the domain's turn.
func Adjust(ctx context.Context, of *domain.Domain, id hypervisor.JobID,
	a hypervisor.Adjustment) error {
	d := move{of}
	l, _, err := d.Look(ctx)
	if err != nil {
		return fault.Observing(err)
	}
	p := domain.Found{Moment: domain.Moment{Look: l, Job: d.Node.Job(id)}}
	p.Rec, _, p.VM = d.Present()
	status := p.Job.Last.Status
	if p.Rec != nil && p.Rec.Job == id {
		status, p.State = life.Status(p.Rec, p.Job, l), life.State(p.Rec, p.Job, l)
	}
	switch a := a.(type) {
	case hypervisor.Cancel:
		return d.cancel(ctx, p, status)
	case hypervisor.StartPostCopy:
		return d.startPostCopy(ctx, p, status)
	case hypervisor.PauseGuest:
		return d.pauseGuest(ctx, p, status)
	case hypervisor.SetDowntime:
		limit := qapi.Parameters{DowntimeLimit: qemu.Downtime(a.Limit)}
		if err := d.retune(ctx, p, a.Limit > 0, limit); err != nil {
			return err
		}
		return d.PutJob(false, func(j *journal.Job) { j.Options.Downtime = a.Limit })
	case hypervisor.SetBandwidth:
		return d.retune(ctx, p, a.Limit >= 0,
			qapi.Parameters{MaxBandwidth: qemu.Bandwidth(a.Limit)})
	case hypervisor.SwitchOver:
		return d.switchOver(p, status)
	case hypervisor.Recover:
		return d.recover(ctx, p, a.Address)
	}
	return fault.Refuse(hypervisor.Unsupported, "%T", a)
}

func tooLate(s hypervisor.JobStatus) error {
	return fault.Refuse(hypervisor.Conflict, "the job is %v", s)
}

// cancel ends a transfer before its source has stopped. QEMU may pass that point
// while the request is on its way; it then decides, and a target that has
// everything still is not told to start.
func (d move) cancel(ctx context.Context, p domain.Found, status hypervisor.JobStatus) error {
	held := p.Look.Migration == qapi.PreSwitchover && p.Job.Options.HoldSwitchOver &&
		!p.Job.Released
	switch {
	case status == hypervisor.JobCancelled || status == hypervisor.JobFailed:
		return nil // the source kept the VM, as was asked
	case p.Job.Stage == journal.Mirroring:
		return d.cancelCopies(ctx, p.VM)
	case p.Job.PostCopied || p.Job.Cold || !held && status != hypervisor.JobSetup &&
		status != hypervisor.JobActive:
		return tooLate(status)
	}
	if err := d.PutJob(false, func(j *journal.Job) { j.Cancelled = true }); err != nil {
		return err
	}
	return p.VM.MigrateCancel(ctx)
}

// cancelCopies ends a job whose disks are being copied. QEMU takes a moment to end
// a copy; until it has, GiveUp is due.
func (d move) cancelCopies(ctx context.Context, vm *qemu.Instance) error {
	if err := d.PutJob(false, func(j *journal.Job) { j.Cancelled = true }); err != nil {
		return err
	}
	err := d.giveUp(ctx, vm, hypervisor.JobCancelled)
	if errors.Is(err, qemu.ErrEnding) {
		return nil
	}
	return err
}

func (d move) startPostCopy(ctx context.Context, p domain.Found,
	status hypervisor.JobStatus) error {
	if err := d.Node.QEMU.Need(hypervisor.CanPostCopy); err != nil {
		return err
	}
	switch {
	case !p.Job.Options.PostCopy:
		return fault.Refuse(hypervisor.Invalid, "the job does not allow post-copy")
	case p.Job.PostCopied:
		return nil // whether or not QEMU has heard: Step tells it
	case status != hypervisor.JobActive || p.State == hypervisor.Stopping ||
		p.Job.Stage != journal.Sending:
		return fault.Refuse(hypervisor.Conflict, "the job is %v, the VM %v", status, p.State)
	}
	if err := d.PutJob(true, func(j *journal.Job) { j.PostCopied = true }); err != nil {
		return err
	}
	return d.goOver(ctx, p.VM)
}

// goOver begins post-copy. The guest of a QEMU that would let it run again when the transfer
// fails later is stopped first. It runs again at the target; or here, if post-copy does not begin,
// which a link that takes nothing would keep from being known for as long as its kernel tries.
func (d move) goOver(ctx context.Context, vm *qemu.Instance) error {
	job := d.Node.Job(d.Record().Job)
	if job.Parked.IsZero() {
		major, err := vm.Major(ctx)
		if err != nil {
			return err
		}
		if major < probe.ResumesPostCopied.Major {
			return vm.MigrateStartPostcopy(ctx)
		}
		now := time.Now().UTC()
		if err := d.PutJob(true, func(j *journal.Job) { j.Parked = now }); err != nil {
			return err
		}
	} else if time.Since(job.Parked) > d.Node.Timeout {
		return vm.Yank(ctx)
	}
	if err := vm.Stop(ctx); err != nil {
		return err
	}
	return vm.MigrateStartPostcopy(ctx)
}

func (d move) pauseGuest(ctx context.Context, p domain.Found, status hypervisor.JobStatus) error {
	switch {
	case p.Job.GuestPaused && p.Job.Stage.Live() && p.State != hypervisor.Running:
		return nil
	case status != hypervisor.JobSetup && status != hypervisor.JobActive || p.Job.PostCopied:
		return tooLate(status)
	case p.State == hypervisor.Paused: // by its operator, and stays so
		return nil
	case p.State != hypervisor.Running:
		return p.Conflict()
	}
	if err := d.PutJob(false, func(j *journal.Job) { j.GuestPaused = true }); err != nil {
		return err
	}
	return p.VM.Stop(ctx)
}

// retune changes a limit of a running transfer.
func (d move) retune(ctx context.Context, p domain.Found, valid bool, q qapi.Parameters) error {
	switch {
	case !valid:
		return fault.Refuse(hypervisor.Invalid, "the limit makes no sense")
	case p.VM == nil || !p.Look.Alive || p.Job.Stage != journal.Sending || p.Job.Acknowledged:
		return fault.Refuse(hypervisor.Conflict, "the job is not under way")
	case p.Job.Cold:
		return fault.Refuse(hypervisor.Conflict, "a VM at rest moves without limits")
	}
	return p.VM.SetParameters(ctx, q)
}

// switchOver lets a job go on that waits before the switch-over. It may come
// before the job waits.
func (d move) switchOver(p domain.Found, status hypervisor.JobStatus) error {
	switch {
	case !p.Job.Options.HoldSwitchOver:
		return fault.Refuse(hypervisor.Invalid, "the job does not wait before the switch-over")
	case p.Job.Released:
		return nil
	case p.Job.Stage != journal.Sending && p.Job.Stage != journal.Mirroring:
		return tooLate(status)
	}
	return d.PutJob(true, func(j *journal.Job) { j.Released = true })
}

// recover goes on with a post-copy whose connection broke. A link that is only
// silent is given up first: nothing times out by itself.
func (d move) recover(ctx context.Context, p domain.Found, address hypervisor.Address) error {
	switch {
	case !p.Job.PostCopied || p.VM == nil || !postcopy(p.Look.Migration):
		return fault.Refuse(hypervisor.Conflict, "no post-copy of the job is broken")
	case p.Look.Migration == qapi.PostcopyRecover:
		return nil
	}
	if p.Look.Migration == qapi.PostcopyActive {
		if err := d.pausePostcopy(ctx, p.VM); err != nil {
			return err
		}
	}
	out := hypervisor.Outgoing{Job: p.Job.ID, VM: d.ID, Address: address, Options: p.Job.Options}
	answer, err := d.agree(ctx, out, handover.Message{})
	if err != nil {
		return err
	}
	defer d.HangUp()
	if err := d.transfer(ctx, p.VM, answer.URI, true); err != nil {
		return err
	}
	return d.await(ctx, p.VM, qapi.PostcopyPaused, false)
}

// pausePostcopy gives up the connection of a post-copy. QEMU may find out by itself
// just then that it broke.
func (d move) pausePostcopy(ctx context.Context, vm *qemu.Instance) error {
	err := vm.Client.ExecuteOOB(ctx, "migrate-pause", nil, nil)
	if _, refused := errors.AsType[*monitor.Error](err); err != nil && !refused {
		return err
	}
	return d.await(ctx, vm, qapi.PostcopyPaused, true)
}

// await waits until a migration is, or is no more, in a status. QEMU takes a
// moment to pause post-copy, and to go on with it.
func (d move) await(ctx context.Context, vm *qemu.Instance, status qapi.MigrationStatus,
	is bool) error {
	ctx, cancel := context.WithTimeout(ctx, d.Node.Timeout)
	defer cancel()
	for {
		m, err := vm.QueryMigrate(ctx)
		if err != nil || (m.Status == status) == is {
			return err
		}
		select {
		case <-ctx.Done():
			return fault.Refuse(hypervisor.Transient, "the broken post-copy is still %s", m.Status)
		case <-time.After(2 * time.Millisecond):
		}
	}
}
