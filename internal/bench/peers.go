package bench

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/convergence"
)

// Nova's defaults.
// Source: Nova 00a030403f nova/conf/libvirt.py (live_migration_downtime and what follows).
const (
	novaDowntime = 500 * time.Millisecond
	novaSteps    = 10
	novaDelay    = 75 * time.Second  // for each GiB, between two steps
	novaTimeout  = 800 * time.Second // for each GiB
	novaLeast    = 2 * hypervisor.GiB
)

// Nova raises the downtime limit in ten steps, each a time later that grows with the VM, and
// ends what takes too long: by post-copy or by stopping the guest where that is allowed,
// else by giving up. It does not look at how the transfer goes.
// Source: Nova 00a030403f nova/virt/libvirt/migration.py (downtime_steps,
// should_trigger_timeout_action), driver.py (_live_migration_monitor).
func Nova(c convergence.Config, s convergence.State, p hypervisor.Progress, now time.Time) (
	convergence.State, convergence.Decision) {
	s = begin(s, p, now)
	if !active(s, p) {
		return s, convergence.Decision{}
	}
	elapsed := now.Sub(s.Started)
	size := float64(max(c.Memory, novaLeast, p.Total)) / float64(hypervisor.GiB)
	if elapsed > time.Duration(size*float64(novaTimeout)) && !s.Paused {
		return s, help(c, convergence.OverBudget)
	}
	limit := time.Duration(0)
	delay := time.Duration(size * float64(novaDelay)).Truncate(time.Second)
	for i := range novaSteps + 1 {
		if elapsed > delay*time.Duration(i) {
			limit = novaStep(ceiling(c, novaDowntime), i)
		}
	}
	return s, tune(s, limit)
}

// novaStep returns the limit of step i of a ramp to most.
// Source: Nova 00a030403f nova/virt/libvirt/migration.py (downtime_steps).
func novaStep(most time.Duration, i int) time.Duration {
	base := float64(most.Milliseconds()) / novaSteps
	offset := (float64(most.Milliseconds()) - base) / novaSteps
	return time.Duration(base+offset*float64(i)) * time.Millisecond
}

// begin notes when the transfer began.
func begin(s convergence.State, p hypervisor.Progress, now time.Time) convergence.State {
	if s.Started.IsZero() {
		s.Started = now.UTC()
		if !p.Started.IsZero() && p.Started.Before(now) {
			s.Started = p.Started.UTC()
		}
	}
	s.PostCopy = s.PostCopy || p.Mode == hypervisor.PostCopy
	s.Paused = s.Paused || p.Mode == hypervisor.PausedCopy
	return s
}

// active reports whether something can still be done about the transfer.
func active(s convergence.State, p hypervisor.Progress) bool {
	return p.Status == hypervisor.JobActive && !s.PostCopy && !s.Aborting
}

// ceiling returns the longest downtime that is allowed.
func ceiling(c convergence.Config, otherwise time.Duration) time.Duration {
	if c.MaxDowntime > 0 {
		return c.MaxDowntime
	}
	return otherwise
}

// tune asks for a limit unless it holds already.
func tune(s convergence.State, limit time.Duration) convergence.Decision {
	if limit <= 0 || limit == s.Limit.Now {
		return convergence.Decision{}
	}
	return convergence.Decision{Action: convergence.SetDowntime, Limit: limit,
		Why: convergence.Tuning}
}

// help ends a transfer in the best way that is allowed.
func help(c convergence.Config, why convergence.Reason) convergence.Decision {
	switch {
	case c.AllowPostCopy && !c.VFIO:
		return convergence.Decision{Action: convergence.StartPostCopy, Why: why}
	case c.AllowWorkloadDisruption && !c.VFIO:
		return convergence.Decision{Action: convergence.Pause, Why: why}
	}
	return convergence.Decision{Action: convergence.Abort, Why: why}
}
