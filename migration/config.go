package migration

import "time"

// Config is what an operator decides about migrations. A zero field takes the
// default that it names; [Config.Complete] fills it in.
type Config struct {
	// Compatible restores KubeVirt's decisions exactly; see the package's
	// documentation for what it loses.
	Compatible bool
	// Timeouts bounds every phase that is not final.
	Timeouts Timeouts
	// BackoffBase is the wait after the first failure in a row; it doubles with
	// each. Default: 20s (KubeVirt v1.9.0 migration.go:1049).
	BackoffBase time.Duration
	// BackoffCap is the longest wait between retries. Default: 320s, where
	// KubeVirt's ends because it keeps five finished migrations.
	BackoffCap time.Duration
	// AvoidFor is how long a host is remembered after a migration to it failed.
	// Default: 10m; KubeVirt has no such memory.
	AvoidFor time.Duration
	// Keep is how many finished migrations of a VM are kept. Default: 5
	// (KubeVirt v1.9.0 migration.go:2251).
	Keep int
}

// Timeouts bounds the phases. KubeVirt has only Unschedulable, Target and
// UtilityVolumes.
type Timeouts struct {
	// Pending is how long a migration may wait for a slot and a target.
	// Default: 24h.
	Pending time.Duration
	// Unschedulable is how long a target may find no room. Default: 5m
	// (KubeVirt v1.9.0 migration.go:86).
	Unschedulable time.Duration
	// Target is how long a target may take to start for any reason, and the
	// deadline of Scheduling. Default: 15m (KubeVirt v1.9.0 migration.go:99).
	Target time.Duration
	// HandOver is the deadline of Scheduled. Default: 1m.
	HandOver time.Duration
	// Prepare is the deadline of PreparingTarget. Default: 5m.
	Prepare time.Duration
	// Begin is the deadline of TargetReady: the source must begin. Default: 2m.
	Begin time.Duration
	// Transfer is the deadline of Running when the resolved options bound it no
	// tighter. Default: 24h.
	Transfer time.Duration
	// Abort is how long a request to abort may stay unanswered before the
	// outcome is called unknown. Default: 2m.
	Abort time.Duration
	// UtilityVolumes is how long utility volumes may hold a migration back.
	// Default: 150s (KubeVirt v1.9.0 virt-config.go:39).
	UtilityVolumes time.Duration
}

// Complete returns c with the defaults filled in.
func (c Config) Complete() Config {
	t := &c.Timeouts
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&t.Pending, 24 * time.Hour},
		{&t.Unschedulable, 5 * time.Minute},
		{&t.Target, 15 * time.Minute},
		{&t.HandOver, time.Minute},
		{&t.Prepare, 5 * time.Minute},
		{&t.Begin, 2 * time.Minute},
		{&t.Transfer, 24 * time.Hour},
		{&t.Abort, 2 * time.Minute},
		{&t.UtilityVolumes, 150 * time.Second},
		{&c.BackoffBase, 20 * time.Second},
		{&c.BackoffCap, 320 * time.Second},
		{&c.AvoidFor, 10 * time.Minute},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.Keep == 0 {
		c.Keep = 5
	}
	return c
}

// deadline returns when a phase that begins at now must have ended.
func (c *Config) deadline(p Phase, s *State, now time.Time) time.Time {
	switch p {
	case Pending:
		return now.Add(c.Timeouts.Pending)
	case Scheduling:
		return now.Add(c.Timeouts.Target)
	case Scheduled:
		return now.Add(c.Timeouts.HandOver)
	case PreparingTarget:
		return now.Add(c.Timeouts.Prepare)
	case TargetReady:
		return now.Add(c.Timeouts.Begin)
	case Running:
		if s.Budget > 0 {
			return now.Add(s.Budget + c.Timeouts.Abort)
		}
		return now.Add(c.Timeouts.Transfer)
	}
	return time.Time{}
}
