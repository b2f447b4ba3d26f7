//go:build linux

package qmp

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// progressOf answers how a job goes. The source's downtime ends when the target
// holds the complete state, the target's when the guest runs there.
func progressOf(ctx context.Context, n *node, id hypervisor.JobID,
) (hypervisor.Progress, error) {
	j := n.Job(id)
	if j == nil {
		return hypervisor.Progress{Job: id}, nil
	}
	var m moment
	if d := n.Find(j.VM.ID); d != nil {
		var err error
		if m, err = d.Moment(ctx); err != nil {
			return hypervisor.Progress{}, qemu.Observing(err)
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
	if l.Alive || job.Cold && job.Role == backend.Source && job.Stage.Live() {
		p = progress(job, m.Migration, n.QEMU.Encrypts(job.Options) != nil)
		p.Mode = modeOf(job, l)
	}
	if strandedSource(job, l) && job.Acknowledged && !job.Parked.IsZero() {
		// Post-copy is paused while something is left, and fails only when all is sent.
		// Source: QEMU 10.0 migration/migration.c (migration_detect_error, migration_completion).
		p.Remaining = 0
	}
	p.Status = told(m.Rec, job, l)
	if p.Status == hypervisor.JobBroken { // why it was not recovered says more than why it broke
		p.Error = cmp.Or(job.Last.Error, p.Error)
	}
	if !p.Status.Final() && statusOf(m.Rec, job, l).Final() {
		p.Error = job.Last.Error // not that of the migration before
	}
	if job.Role == backend.Source && job.Stage.Live() {
		mirrored(&p, job, l.Mirrors)
	}
	if p.Status == hypervisor.JobFailed && p.Error == "" && job.Role == backend.Target {
		p.Error = qemu.LastWords(n.QEMU.Settings(job.VM.ID))
	}
	return p, nil
}

// progress puts what QEMU tells of a migration into our terms. The error of an encrypted one that has
// sent nothing names TLS: QEMU says only what is wrong with a certificate.
func progress(j *jobRecord, m qemu.Migration, encrypted bool) hypervisor.Progress {
	p := j.Last
	if m.Status == qemu.None || m.Status == "" || !j.Stage.Live() {
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
	if j.Role == backend.Source {
		p.Downtime = time.Duration(m.Downtime) * time.Millisecond
		if m.ErrorDesc != "" {
			p.Error = m.ErrorDesc
			if encrypted && m.RAM.Transferred == 0 {
				p.Error = "over TLS: " + m.ErrorDesc
			}
		}
	}
	if j.GuestPaused && j.Role == backend.Source {
		p.Mode = hypervisor.PausedCopy
	}
	return p
}

// mirrored adds how the copies of the disks go. All of the memory comes after them. They go on
// until the guest has stopped, and what was sent of them stays sent.
func mirrored(p *hypervisor.Progress, job *jobRecord, ms []qemu.Job) {
	if job.Stage == stageMirroring && !job.Cold {
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

// adjust changes a job that this host sends. The caller holds the domain's lock.
func adjust(ctx context.Context, of *domain, id hypervisor.JobID,
	a hypervisor.Adjustment) error {
	d := move{of}
	l, _, err := d.Look(ctx)
	if err != nil {
		return qemu.Observing(err)
	}
	p := found{moment: moment{Look: l, Job: d.Node.Job(id)}}
	p.Rec, _, p.VM = d.Present()
	status := p.Job.Last.Status
	if p.Rec != nil && p.Rec.Job == id {
		status, p.State = statusOf(p.Rec, p.Job, l), stateOf(p.Rec, p.Job, l)
	}
	switch a := a.(type) {
	case hypervisor.Cancel:
		return d.cancel(ctx, p, status)
	case hypervisor.StartPostCopy:
		return d.startPostCopy(ctx, p, status)
	case hypervisor.PauseGuest:
		return d.pauseGuest(ctx, p, status)
	case hypervisor.SetDowntime:
		limit := qemu.Parameters{DowntimeLimit: qemu.Downtime(a.Limit)}
		if err := d.retune(ctx, p, a.Limit > 0, limit); err != nil {
			return err
		}
		return d.PutJob(false, func(j *jobRecord) { j.Options.Downtime = a.Limit })
	case hypervisor.SetBandwidth:
		return d.limit(ctx, p, a.Limit)
	case hypervisor.SwitchOver:
		return d.switchOver(p, status)
	case hypervisor.Recover:
		return d.recover(p, a.Address)
	}
	return qemu.Refuse(hypervisor.Unsupported, "%T", a)
}

func tooLate(s hypervisor.JobStatus) error {
	return qemu.Refuse(hypervisor.Conflict, "the job is %v", s)
}

// cancel ends a transfer before its source has stopped. QEMU may pass that point
// while the request is on its way; it then decides, and a target that has
// everything still is not told to start.
func (d move) cancel(ctx context.Context, p found, status hypervisor.JobStatus) error {
	held := p.Look.Migration == qemu.PreSwitchover && p.Job.Options.HoldSwitchOver &&
		!p.Job.Released
	switch {
	case status == hypervisor.JobCancelled || status == hypervisor.JobFailed:
		return nil // the source kept the VM, as was asked
	case p.Job.Stage == stageMirroring:
		return d.cancelCopies(ctx, p.VM)
	case p.Job.PostCopied || p.Job.Cold || !held && status != hypervisor.JobSetup &&
		status != hypervisor.JobActive:
		return tooLate(status)
	}
	if err := d.PutJob(false, func(j *jobRecord) { j.Cancelled = true }); err != nil {
		return err
	}
	return p.VM.MigrateCancel(ctx)
}

// cancelCopies ends a job whose disks are being copied. QEMU takes a moment to end
// a copy; until it has, stepGiveUp is next.
func (d move) cancelCopies(ctx context.Context, vm *qemu.Instance) error {
	if err := d.PutJob(false, func(j *jobRecord) { j.Cancelled = true }); err != nil {
		return err
	}
	err := d.giveUp(ctx, vm, hypervisor.JobCancelled)
	if errors.Is(err, qemu.ErrEnding) {
		return nil
	}
	return err
}

func (d move) startPostCopy(ctx context.Context, p found,
	status hypervisor.JobStatus) error {
	if err := d.Node.QEMU.Need(hypervisor.CanPostCopy); err != nil {
		return err
	}
	switch {
	case !p.Job.Options.PostCopy:
		return qemu.Refuse(hypervisor.Invalid, "the job does not allow post-copy")
	case p.Job.PostCopied:
		return nil // whether or not QEMU has heard: Step tells it
	case status != hypervisor.JobActive || p.State == hypervisor.Stopping ||
		p.Job.Stage != stageSending:
		return qemu.Refuse(hypervisor.Conflict, "the job is %v, the VM %v", status, p.State)
	}
	if err := d.PutJob(true, func(j *jobRecord) { j.PostCopied = true }); err != nil {
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
		if major < qemu.ResumesPostCopied.Major {
			return vm.MigrateStartPostcopy(ctx)
		}
		now := time.Now()
		if err := d.PutJob(true, func(j *jobRecord) { j.Parked = now }); err != nil {
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

func (d move) pauseGuest(ctx context.Context, p found, status hypervisor.JobStatus) error {
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
	if err := d.PutJob(false, func(j *jobRecord) { j.GuestPaused = true }); err != nil {
		return err
	}
	return p.VM.Stop(ctx)
}

// limit changes how fast a job sends. Local disks are copied before the memory, which QEMU moves with what it
// was told before, and go on being copied meanwhile.
func (d move) limit(ctx context.Context, p found, limit hypervisor.Bandwidth) error {
	copies := limit >= 0 && p.VM != nil && p.Look.Alive && p.Job.Stage == stageMirroring
	var err error
	switch {
	case !copies:
		err = d.retune(ctx, p, limit >= 0, qemu.Limited(limit))
	case !p.Job.Cold:
		err = p.VM.SetParameters(ctx, qemu.Limited(limit))
	}
	if err != nil {
		return err
	}
	return p.VM.LimitMirrors(ctx, p.Rec.VM, limit)
}

// retune changes a limit of a running transfer.
func (d move) retune(ctx context.Context, p found, valid bool, q qemu.Parameters) error {
	switch {
	case !valid:
		return qemu.Refuse(hypervisor.Invalid, "the limit makes no sense")
	case p.VM == nil || !p.Look.Alive || p.Job.Stage != stageSending ||
		p.Job.Acknowledged && !postcopy(p.Look.Migration):
		return qemu.Refuse(hypervisor.Conflict, "the job is not under way")
	case p.Job.Cold:
		return qemu.Refuse(hypervisor.Conflict, "a VM at rest moves without limits")
	}
	return p.VM.SetParameters(ctx, q)
}

// switchOver lets a job go on that waits before the switch-over. It may come
// before the job waits.
func (d move) switchOver(p found, status hypervisor.JobStatus) error {
	switch {
	case !p.Job.Options.HoldSwitchOver:
		return qemu.Refuse(hypervisor.Invalid, "the job does not wait before the switch-over")
	case p.Job.Released:
		return nil
	case p.Job.Stage != stageSending && p.Job.Stage != stageMirroring:
		return tooLate(status)
	}
	return d.PutJob(true, func(j *jobRecord) { j.Released = true })
}
