package qmp

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp/handover"
	"github.com/godwit-vm/godwit/hypervisor/qmp/journal"
	"github.com/godwit-vm/godwit/hypervisor/qmp/life"
	"github.com/godwit-vm/godwit/hypervisor/qmp/monitor"
	"github.com/godwit-vm/godwit/hypervisor/qmp/qapi"
)

// Progress answers how the job goes. The source's downtime ends when the target
// holds the complete state, the target's when the guest runs there.
func (h *Host) Progress(ctx context.Context, id hypervisor.JobID) (hypervisor.Progress, error) {
	if err := ctx.Err(); err != nil {
		return hypervisor.Progress{}, h.explain("Progress", "", err)
	}
	j := h.job(id)
	if j == nil {
		return hypervisor.Progress{Job: id}, nil
	}
	h.mu.Lock()
	d := h.domains[j.VM.ID]
	h.mu.Unlock()
	if d == nil {
		return j.Last, nil
	}
	l, m, err := d.look(ctx)
	if err != nil {
		return hypervisor.Progress{}, h.explain("Progress", j.VM.ID, observing(err))
	}
	rec, job, _ := d.present()
	if rec == nil || job == nil || job.ID != id || !l.Alive {
		return h.job(id).Last, nil
	}
	p := progress(job, m)
	p.Status, p.Mode = life.Status(rec, job, l), life.Mode(job, l)
	if job.Stage == journal.Mirroring {
		mirrored(&p, l.Mirrors)
	}
	if p.Status == hypervisor.JobFailed && p.Error == "" && job.Role == journal.Target {
		p.Error = lastWords(h.settings(d.id))
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

// mirrored adds how the copies of the disks go.
func mirrored(p *hypervisor.Progress, ms []qapi.Job) {
	for _, m := range ms {
		p.Sent += hypervisor.Bytes(m.Current)
		p.Remaining += hypervisor.Bytes(m.Total - m.Current)
		if m.Error != "" {
			p.Error = m.Error
		}
	}
}

// Adjust changes a job that this host sends.
func (h *Host) Adjust(ctx context.Context, id hypervisor.JobID, a hypervisor.Adjustment) error {
	j := h.job(id)
	if j == nil || j.Role != journal.Source {
		return h.explain("Adjust", "", refuse(hypervisor.NotFound, "no job %q is sent from here", id))
	}
	d, release, err := h.hold(ctx, j.VM.ID)
	if err != nil {
		return h.explain("Adjust", j.VM.ID, err)
	}
	defer release()
	if err = ctx.Err(); err == nil {
		err = d.adjust(ctx, id, a)
	}
	d.changed()
	return h.explain("Adjust", j.VM.ID, err)
}

func (d *domain) adjust(ctx context.Context, id hypervisor.JobID, a hypervisor.Adjustment) error {
	l, _, err := d.look(ctx)
	if err != nil {
		return observing(err)
	}
	p := present{look: l, job: d.host.job(id)}
	p.rec, _, p.vm = d.present()
	status := p.job.Last.Status
	if p.rec != nil && p.rec.Job == id {
		status, p.state = life.Status(p.rec, p.job, l), life.State(p.rec, p.job, l)
	}
	switch a := a.(type) {
	case hypervisor.Cancel:
		return d.cancel(ctx, p, status)
	case hypervisor.StartPostCopy:
		return d.startPostCopy(ctx, p, status)
	case hypervisor.PauseGuest:
		return d.pauseGuest(ctx, p, status)
	case hypervisor.SetDowntime:
		return d.retune(ctx, p, a.Limit > 0, qapi.Parameters{DowntimeLimit: downtime(a.Limit)})
	case hypervisor.SetBandwidth:
		return d.retune(ctx, p, a.Limit >= 0, qapi.Parameters{MaxBandwidth: bandwidth(a.Limit)})
	case hypervisor.SwitchOver:
		return d.switchOver(p, status)
	case hypervisor.Recover:
		return d.recover(ctx, p, a.Address)
	}
	return refuse(hypervisor.Unsupported, "%T", a)
}

func tooLate(s hypervisor.JobStatus) error { return refuse(hypervisor.Conflict, "the job is %v", s) }

// cancel ends a transfer before its source has stopped. QEMU may pass that point
// while the request is on its way; it then decides, and a target that has
// everything still is not told to start.
func (d *domain) cancel(ctx context.Context, p present, status hypervisor.JobStatus) error {
	held := p.look.Migration == qapi.PreSwitchover && p.job.Options.HoldSwitchOver &&
		!p.job.Released
	switch {
	case status == hypervisor.JobCancelled || status == hypervisor.JobFailed:
		return nil // the source kept the VM, as was asked
	case p.job.Stage == journal.Mirroring:
		return d.giveUp(ctx, p.vm, hypervisor.JobCancelled)
	case p.job.PostCopied || p.job.Cold || !held && status != hypervisor.JobSetup &&
		status != hypervisor.JobActive:
		return tooLate(status)
	}
	return p.vm.MigrateCancel(ctx)
}

func (d *domain) startPostCopy(ctx context.Context, p present, status hypervisor.JobStatus) error {
	switch {
	case !p.job.Options.PostCopy:
		return refuse(hypervisor.Invalid, "the job does not allow post-copy")
	case p.job.PostCopied && life.Mode(p.job, p.look) == hypervisor.PostCopy:
		return nil
	case status != hypervisor.JobActive || p.state == hypervisor.Stopping ||
		p.job.Stage != journal.Sending:
		return refuse(hypervisor.Conflict, "the job is %v, the VM %v", status, p.state)
	}
	if err := d.putJob(true, func(j *journal.Job) { j.PostCopied = true }); err != nil {
		return err
	}
	return p.vm.MigrateStartPostcopy(ctx)
}

func (d *domain) pauseGuest(ctx context.Context, p present, status hypervisor.JobStatus) error {
	switch {
	case p.job.GuestPaused && p.job.Stage.Live():
		return nil
	case status != hypervisor.JobSetup && status != hypervisor.JobActive || p.job.PostCopied:
		return tooLate(status)
	case p.state == hypervisor.Paused: // by its operator, and stays so
		return nil
	case p.state != hypervisor.Running:
		return p.conflict()
	}
	if err := d.putJob(false, func(j *journal.Job) { j.GuestPaused = true }); err != nil {
		return err
	}
	return p.vm.Stop(ctx)
}

// retune changes a limit of a running transfer.
func (d *domain) retune(ctx context.Context, p present, valid bool, q qapi.Parameters) error {
	switch {
	case !valid:
		return refuse(hypervisor.Invalid, "the limit makes no sense")
	case p.vm == nil || !p.look.Alive || p.job.Stage != journal.Sending || p.job.Acknowledged:
		return refuse(hypervisor.Conflict, "the job is not under way")
	case p.job.Cold:
		return refuse(hypervisor.Conflict, "a VM at rest moves without limits")
	}
	return p.vm.SetParameters(ctx, q)
}

// switchOver lets a job go on that waits before the switch-over. It may come
// before the job waits.
func (d *domain) switchOver(p present, status hypervisor.JobStatus) error {
	switch {
	case !p.job.Options.HoldSwitchOver:
		return refuse(hypervisor.Invalid, "the job does not wait before the switch-over")
	case p.job.Released:
		return nil
	case p.job.Stage != journal.Sending && p.job.Stage != journal.Mirroring:
		return tooLate(status)
	}
	return d.putJob(true, func(j *journal.Job) { j.Released = true })
}

// recover goes on with a post-copy whose connection broke. A link that is only
// silent is given up first: nothing times out by itself.
func (d *domain) recover(ctx context.Context, p present, address hypervisor.Address) error {
	switch {
	case !p.job.PostCopied || p.vm == nil || !postcopy(p.look.Migration):
		return refuse(hypervisor.Conflict, "no post-copy of the job is broken")
	case p.look.Migration == qapi.PostcopyRecover:
		return nil
	}
	if p.look.Migration == qapi.PostcopyActive {
		err := p.vm.client.ExecuteOOB(ctx, "migrate-pause", nil, nil)
		if _, refused := errors.AsType[*monitor.Error](err); err != nil && !refused {
			return err
		}
		if err := d.awaitPause(ctx, p.vm); err != nil {
			return err
		}
	}
	out := hypervisor.Outgoing{Job: p.job.ID, VM: d.id, Address: address, Options: p.job.Options}
	answer, err := d.agree(ctx, out, handover.Message{})
	if err != nil {
		return err
	}
	defer d.hangUp()
	return d.transfer(ctx, p.vm, answer.URI, true)
}

// awaitPause waits until a post-copy that was told to pause has.
func (d *domain) awaitPause(ctx context.Context, vm *instance) error {
	ctx, cancel := context.WithTimeout(ctx, d.host.config.Timeout)
	defer cancel()
	for {
		m, err := vm.QueryMigrate(ctx)
		if err != nil || m.Status == qapi.PostcopyPaused {
			return err
		}
		select {
		case <-ctx.Done():
			return refuse(hypervisor.Transient, "the broken post-copy does not pause: it is %s",
				strings.TrimSpace(string(m.Status)))
		case <-time.After(soon):
		}
	}
}
