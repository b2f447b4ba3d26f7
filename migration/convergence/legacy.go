package convergence

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// legacyRules is KubeVirt's default monitor.
// Source: KubeVirt v1.9.0 live-migration-source.go:762 (handleLegacyConvergence).
var legacyRules = [...]rule{
	{"in post-copy", anyhow, inPostCopy, keep},
	{"over budget: assist", anyhow, legacyAssist, assist},
	{"no progress", anyhow, legacyStuck, abort(Stuck)},
	{"over budget", anyhow, legacyOverdue, abort(OverBudget)},
	{"downtime limit", anyhow, untuned, tuned},
}

// legacy decides as KubeVirt does by default.
func legacy(l *evaluation) Decision {
	l.s.Legacy = l.legacyProgress()
	v := decide(legacyRules[:], *l)
	if v.Why == Tuning && l.s.Limit.Now == 0 {
		l.s.Limit.Now = qemuDowntime // until accepted; a refused first limit is not repeated
	}
	return v
}

// legacyProgress tracks progress. The "watermark" is the previous
// sample and not the lowest: any decrease counts.
// Source: KubeVirt v1.9.0 live-migration-source.go:856 (processInflightMigration).
func (l *evaluation) legacyProgress() LegacyState {
	was := l.s.Legacy
	if !sampled(l.p.Status) && l.p.Status != hypervisor.JobSetup {
		return was
	}
	if was.Watermark == 0 || l.p.Remaining < was.Watermark {
		was.ProgressAt = l.since
	}
	was.Watermark = l.p.Remaining
	return was
}

// legacyStopped: the guest is paused, or was told to switch over, which the
// monitor does not tell apart.
func (l *evaluation) legacyStopped() bool { return l.s.Paused || l.s.Forced }

// legacyDeadline returns the acceptable completion time in seconds; a pause
// doubles it. It cannot overflow: a span has at most 9.3e9 seconds.
// Source: KubeVirt v1.9.0 live-migration-source.go:821.
func (l *evaluation) legacyDeadline() int64 {
	if l.legacyStopped() {
		return 2 * l.acceptable()
	}
	return l.acceptable()
}

// legacyLate: more whole seconds have passed than are acceptable; 0 is no limit.
// Source: KubeVirt v1.9.0 live-migration-source.go (shouldTriggerTimeout).
func (l *evaluation) legacyLate() bool {
	deadline := l.legacyDeadline()
	return deadline != 0 && l.seconds() > deadline
}

// legacyAssist: the budget is used up and the guest may be disturbed. A cancel
// that is under way does not stop this.
// Source: KubeVirt v1.9.0 live-migration-source.go (shouldAssistMigrationToComplete).
func legacyAssist(l evaluation) bool {
	return l.c.AllowWorkloadDisruption && l.legacyLate() && !l.legacyStopped()
}

// assist makes the transfer end: by post-copy, by a downtime limit of twice the
// budget (at most QEMU's 2,000 s) for passed-through devices, or by a pause.
// Source: KubeVirt v1.9.0 live-migration-source.go:780 (handleLegacyConvergence).
func assist(l evaluation) Decision {
	switch {
	case l.c.VFIO:
		twice := times(time.Second, 2*l.acceptable())
		return Decision{SetDowntime, min(twice, qemuMaxDowntime), OverBudget}
	case l.c.AllowPostCopy:
		return Decision{Action: StartPostCopy, Why: OverBudget}
	}
	return Decision{Action: Pause, Why: OverBudget}
}

// legacyStuck: more whole seconds than ProgressTimeout have passed since the
// last progress, and no cancel is under way.
// Source: KubeVirt v1.9.0 live-migration-source.go:842 (isMigrationProgressing).
func legacyStuck(l evaluation) bool {
	timeout := int64(l.c.ProgressTimeout / time.Second)
	idle := int64((l.since - l.s.Legacy.ProgressAt) / time.Second)
	return timeout > 0 && idle > timeout && !l.s.Aborting
}

// legacyOverdue: the acceptable time is over, and no cancel is under way.
// Source: KubeVirt v1.9.0 live-migration-source.go (handleLegacyConvergence).
func legacyOverdue(l evaluation) bool { return l.legacyLate() && !l.s.Aborting }
