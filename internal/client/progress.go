package client

import (
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/store"
)

// defaultDowntime is the hypervisor's default downtime limit. Source: QEMU 7.2 migration.c (DEFAULT_MIGRATE_SET_DOWNTIME).
const defaultDowntime = 300 * time.Millisecond

// TransferProgress is the progress of a migration according to its record, which is written from
// time to time: Looked is when the figures were true.
type TransferProgress struct {
	Looked    time.Time            // zero: the source has not said anything yet
	Sent      hypervisor.Bytes     // on the wire so far
	Remaining hypervisor.Bytes     // still to send
	Rate      hypervisor.Bandwidth // smoothed; 0 is not known
	DirtyRate hypervisor.Bandwidth // 0 is not known
	Iteration int                  // passes over memory so far
	// End is when it would be over if nothing changed; zero is not known, or never.
	End time.Time
}

// progressOf reads the progress of a migration from its record. The remaining memory is what the
// last sample of this pass found, less what was sent since.
func progressOf(m *store.Migration, now time.Time) TransferProgress {
	f := TransferProgress{Looked: m.Source.Looked, Sent: m.Source.Sent}
	s := m.Source.Monitor
	if s == nil || m.State.Phase.Final() {
		return f
	}
	f.Rate, f.Iteration = hypervisor.Bandwidth(s.Bandwidth), s.Iteration
	f.Remaining = s.Watermark.PassLow
	f.DirtyRate = dirtyRate(s)
	if f.Rate <= 0 || m.Source.Looked.IsZero() {
		return f
	}
	e := convergence.Predict(f.Remaining, min(f.DirtyRate, f.Rate-1), f.Rate, allowed(m))
	if !e.Converges {
		return f
	}
	if f.End = m.Source.Looked.Add(e.Left); f.End.Before(now) {
		f.End = now // it takes longer than it should
	}
	return f
}

// dirtyRate estimates how fast the guest dirties memory: what was left when this pass
// began had been dirtied during the one before, which took as long as its bytes need.
func dirtyRate(s *convergence.State) hypervisor.Bandwidth {
	w := s.Watermark
	if s.Iteration < 2 || w.FirstPass <= 0 || s.Clock <= 0 {
		return 0
	}
	pass := max(w.FirstPass/time.Duration(s.Iteration-1), time.Second)
	return hypervisor.Bandwidth(float64(w.PassStart) / pass.Seconds())
}

// allowed returns how long the last pass may take.
func allowed(m *store.Migration) time.Duration {
	if s := m.Source.Monitor; s != nil && s.Limit.Now > 0 {
		return s.Limit.Now
	}
	if m.Options != nil && m.Options.MaxDowntime > 0 {
		return m.Options.MaxDowntime
	}
	return defaultDowntime
}

// EstimateDrain predicts when a draining host is empty: the remaining memory and disks of the VMs that
// leave, divided by the present rate, or else by the link's. It is zero when no VM leaves, or
// nothing is known. The prediction is optimistic: guests dirty memory again, and limits may let
// only some VMs leave at once. Cluster is the eviction strategy of VMs without one.
func (c *Cluster) EstimateDrain(host hypervisor.HostName, cluster evacuation.Strategy, now time.Time) time.Time {
	left, rate := c.Outstanding(host, cluster, now)
	if left == 0 || rate <= 0 {
		return time.Time{}
	}
	took := left.At(rate)
	if took > 10*365*24*time.Hour {
		return time.Time{}
	}
	return now.Add(took)
}

// Outstanding returns the remaining memory and disks of the VMs that leave a draining host, and
// the rate at which they leave it: the present one, or else that of its link. A rate of zero is
// unknown.
func (c *Cluster) Outstanding(host hypervisor.HostName, cluster evacuation.Strategy,
	now time.Time) (hypervisor.Bytes, hypervisor.Bandwidth) {
	h := c.Host(host)
	if h == nil {
		return 0, 0
	}
	left, rate := hypervisor.Bytes(0), hypervisor.Bandwidth(0)
	for _, v := range c.On(host) {
		m := c.Migration(v.ActiveMigration)
		switch {
		case v.Stopped || stays(v, cluster) != "":
			continue // it is not moved
		case m == nil || m.State.Phase != migration.Running:
			left += v.Weight()
			continue
		}
		f := progressOf(m, now)
		rate += f.Rate
		if left += f.Remaining; f.Looked.IsZero() {
			left += v.Weight()
		}
	}
	if rate <= 0 {
		rate = h.Host.Link
	}
	return left, rate
}
