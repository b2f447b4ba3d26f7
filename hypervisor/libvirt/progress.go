//go:build linux && libvirt_dlopen

package libvirt

import (
	"cmp"
	"context"
	"time"

	"libvirt.org/go/libvirt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/internal/conn"
	"github.com/godwit-vm/godwit/internal/backend"
)

// jobProgress answers how a job goes.
func jobProgress(ctx context.Context, n *node, id hypervisor.JobID,
) (hypervisor.Progress, error) {
	j := n.Job(id)
	if j == nil {
		return hypervisor.Progress{Job: id}, nil
	}
	of := n.Find(j.VM.ID)
	if of == nil || j.Last.Status.Final() {
		return j.Last, nil
	}
	d := move{of}
	f, err := d.Find(ctx)
	if err != nil {
		return hypervisor.Progress{}, err
	}
	if j = n.Job(id); f.Job == nil || f.Job.ID != id || j.Last.Status.Final() {
		return j.Last, nil
	}
	p := d.live(j, f.Observed)
	p.Status, p.Mode = statusOf(j, f.Observed.domainLook), modeOf(j, f.Observed.domainLook)
	if p.Status == hypervisor.JobSucceeded && j.Role == backend.Source {
		p = d.final(ctx, j, f.Observed)
		p.Status = hypervisor.JobSucceeded
	}
	return p, nil
}

// live is how the job goes while libvirt is at it. What was sent never becomes less.
func (d move) live(j *jobRecord, s observation) hypervisor.Progress {
	p := j.Last
	if j.Role == backend.Source && s.Sends && s.Stats.MemoryTotal+s.Stats.DiskTotal > 0 {
		fill(&p, s.Stats)
		p.Downtime = 0
		p.Sent = d.Sent(p.Sent)
	}
	return p
}

// fill puts what libvirt tells of a migration into our terms.
func fill(p *hypervisor.Progress, s conn.JobStats) {
	p.Sent = max(p.Sent, s.MemoryProcessed+s.DiskProcessed)
	p.Iteration = max(p.Iteration, s.Iteration, int(min(s.MemoryProcessed, 1)))
	p.Disks = cmp.Or(p.Disks, s.DiskTotal)
	p.Remaining = min(s.MemoryRemaining, s.MemoryTotal) + s.DiskRemaining
	if s.MemoryTotal == 0 { // disks go first
		p.Remaining += p.Total
	}
	p.DirtyRate, p.Bandwidth = s.DirtyRate, s.MemoryBandwidth
	p.Throttle, p.Downtime = s.Throttle, s.Downtime
}

// final is how the job went. libvirt keeps the figures of one that succeeded as long
// as it keeps the domain, and tells them once when it ends.
func (d move) final(ctx context.Context, j *jobRecord, s observation) hypervisor.Progress {
	p := d.live(j, s)
	p.Sent = d.Sent(p.Sent)
	p.Mode = modeOf(j, s.domainLook)
	stats := d.told(ctx, j, s)
	if stats == nil && s.Defined {
		_ = d.Do(ctx, func(dom *libvirt.Domain) error { // without figures it ended, too
			info, err := dom.GetJobStats(libvirt.DOMAIN_JOB_STATS_COMPLETED |
				libvirt.DOMAIN_JOB_STATS_KEEP_COMPLETED)
			if err == nil && info.Type == libvirt.DOMAIN_JOB_COMPLETED {
				done := conn.JobStatsOf(*info)
				stats = &done
			}
			return err
		})
	}
	if stats != nil && stats.MemoryTotal > 0 {
		fill(&p, *stats)
		p.Remaining = 0
	}
	return p
}

// The limits of a look that waits for the figures of a migration that has just ended: a busy libvirtd tells them
// seconds after the guest has gone, but before its call returns. This process hears of them soon after: on a busy
// machine the thread that reads events may run seconds after the one that waits for the call.
const (
	figuresSoon = 5 * time.Second
	figuresNow  = 3 * time.Second
)

// told is what libvirt tells when a migration has ended. When the source has just
// stopped, or the call has returned, it is about to. Of a definition that moves alone it tells nothing.
func (d move) told(ctx context.Context, j *jobRecord, s observation) *conn.JobStats {
	soon := !j.Cold && (s.Run == runShutoffMigrated && s.Call == calling || s.Call == callSucceeded)
	until := time.Now().Add(figuresSoon)
	for ; ; time.Sleep(5 * time.Millisecond) {
		stats := d.Stats()
		if stats != nil || !soon || ctx.Err() != nil || !time.Now().Before(until) {
			return stats
		}
		if now := time.Now().Add(figuresNow); d.answer() != calling && now.Before(until) {
			until = now
		}
	}
}
