package convergence

import "time"

// untuned: the downtime limit is due for its first value or for the next step.
// Source: KubeVirt v1.9.0 live-migration-source.go:458 (tuneDowntime).
func untuned(l evaluation) bool { return l.tuning() != Decision{} }

// tuned returns the next downtime limit.
func tuned(l evaluation) Decision { return l.tuning() }

// tuning returns the next downtime limit: the initial one at the first look, then
// one step more in each cool-down, from the third pass on, up to MaxDowntime.
// Source: KubeVirt v1.9.0 live-migration-source.go:458 (tuneDowntime).
func (l *evaluation) tuning() Decision {
	t, tunes := l.c.tuning()
	ceiling := l.c.maxDowntime()
	switch {
	case !tunes || l.s.Aborting || l.s.PostCopy:
		return Decision{}
	case l.s.Limit.Now == 0:
		return limit(t.Initial)
	case !sampled(l.p.Status) || l.p.Iteration < t.StartAfterIteration:
		return Decision{}
	case l.s.Limit.Set && l.since-l.s.Limit.At < t.Cooldown:
		return Decision{}
	}
	step := (ceiling - t.Initial) / time.Duration(t.Steps)
	step = max(step.Truncate(time.Millisecond), time.Millisecond)
	if next := min(l.s.Limit.Now+step, ceiling); next > l.s.Limit.Now {
		return limit(next)
	}
	return Decision{}
}

// limit returns the verdict to allow a downtime of d, within MaxDowntime.
func limit(d time.Duration) Decision {
	return Decision{Action: SetDowntime, Limit: d, Why: Tuning}
}
