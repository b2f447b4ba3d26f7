package migration

import (
	"cmp"
	"time"

	"github.com/godwit-vm/godwit/internal/workqueue"
)

// Config is what an operator decides about migrations. A zero field takes the default that it
// names, so that the zero value is ready for use.
type Config struct {
	// Compatible restores KubeVirt's decisions exactly; see the package's documentation for what
	// it loses.
	Compatible bool
	Timeouts   Timeouts
	// Retry decides when what failed is tried again. Default: [Config.Backoff].
	Retry Retry
	// BackoffBase is the wait after the first failure in a row; it doubles with each. Default:
	// 20s (KubeVirt v1.9.0 migration.go:1049).
	BackoffBase time.Duration
	// BackoffCap is the longest wait between retries. Default: 320s, where KubeVirt's ends
	// because it keeps five finished migrations.
	BackoffCap time.Duration
	// AvoidFor is how long a host is remembered after a migration to it failed. Default: 10m;
	// KubeVirt has no such memory.
	AvoidFor time.Duration
	// Keep is how many finished migrations of a VM are kept; less than zero is none. Default: 5
	// (KubeVirt v1.9.0 migration.go:2251).
	Keep int

	full bool // the defaults are filled in: what is zero now was set to zero
}

// Timeouts bounds all phases but ends. KubeVirt has only Unschedulable, Target, UtilityVolumes.
type Timeouts struct {
	Pending       time.Duration // waiting for a target that takes it; default: 24h
	Unschedulable time.Duration // a target finds no room; default: 5m (migration.go:86)
	// Target is how long a target may take to start for any reason, and the deadline of
	// Scheduling. Default: 15m (KubeVirt v1.9.0 migration.go:99).
	Target   time.Duration
	HandOver time.Duration // Scheduled; default: 1m
	Prepare  time.Duration // PreparingTarget; default: 5m
	// Probe bounds each phase until the target listens, where the target has failed lately:
	// what is tried once more has not long to show that it works. Default: 30s.
	Probe    time.Duration
	Begin    time.Duration // TargetReady: the source must begin; default: 2m
	Transfer time.Duration // Running, where no budget bounds it tighter; default: 24h
	// Abort is how long a request to abort may stay unanswered before the outcome is called
	// unknown. Default: 2m.
	Abort time.Duration
	// UtilityVolumes is how long utility volumes may hold a migration back. Default: 150s
	// (KubeVirt v1.9.0 virt-config.go:39).
	UtilityVolumes time.Duration
}

// Complete returns c with the defaults filled in. What is set to zero afterwards is zero. All
// methods complete a Config that is not; that costs an allocation each time.
func (c Config) Complete() Config {
	if c.full {
		return c
	}
	c.full = true
	t := &c.Timeouts
	t.Pending = cmp.Or(t.Pending, 24*time.Hour)
	t.Unschedulable = cmp.Or(t.Unschedulable, 5*time.Minute)
	t.Target = cmp.Or(t.Target, 15*time.Minute)
	t.HandOver = cmp.Or(t.HandOver, time.Minute)
	t.Prepare = cmp.Or(t.Prepare, 5*time.Minute)
	t.Probe = cmp.Or(t.Probe, 30*time.Second)
	t.Begin = cmp.Or(t.Begin, 2*time.Minute)
	t.Transfer = cmp.Or(t.Transfer, 24*time.Hour)
	t.Abort = cmp.Or(t.Abort, 2*time.Minute)
	t.UtilityVolumes = cmp.Or(t.UtilityVolumes, 150*time.Second)
	c.BackoffBase = cmp.Or(c.BackoffBase, 20*time.Second)
	c.BackoffCap = cmp.Or(c.BackoffCap, 320*time.Second)
	c.AvoidFor = cmp.Or(c.AvoidFor, 10*time.Minute)
	c.Keep = cmp.Or(c.Keep, 5)
	return c
}

// completed returns c with the defaults filled in: c itself if they are.
func (c *Config) completed() *Config {
	if c.full {
		return c
	}
	full := c.Complete()
	return &full
}

// Validate returns every reason why c cannot be meant: a negative time is over before it begins,
// so that every migration would fail, or be tried again, at once.
func (c Config) Validate() error {
	t, of := &c.Timeouts, func(name string, value time.Duration) workqueue.Span {
		return workqueue.Span{Name: name, Value: value}
	}
	return workqueue.CheckSpans("migration.Config", of("Timeouts.Pending", t.Pending),
		of("Timeouts.Unschedulable", t.Unschedulable), of("Timeouts.Target", t.Target),
		of("Timeouts.HandOver", t.HandOver), of("Timeouts.Prepare", t.Prepare),
		of("Timeouts.Begin", t.Begin), of("Timeouts.Transfer", t.Transfer),
		of("Timeouts.Abort", t.Abort), of("Timeouts.UtilityVolumes", t.UtilityVolumes),
		of("BackoffBase", c.BackoffBase), of("BackoffCap", c.BackoffCap),
		of("AvoidFor", c.AvoidFor))
}

// deadline returns when the phase of s, if it begins now, must have ended; an end has none.
func (c *Config) deadline(m *Spec, s *State, o *Observation) time.Time {
	t, now := &c.Timeouts, o.Now
	if s.Phase == Unset || s.Phase.Final() {
		return time.Time{}
	}
	if s.Phase == Running && s.Budget > 0 {
		return now.Add(s.Budget).Add(t.Abort)
	}
	within := [...]time.Duration{Pending: t.Pending, Scheduling: or(m.Timeouts.Target, t.Target),
		Scheduled: t.HandOver, PreparingTarget: t.Prepare, TargetReady: t.Begin,
		Running: t.Transfer}
	if o.Suspect && s.Phase > Pending && s.Phase < TargetReady {
		return now.Add(min(within[s.Phase], t.Probe))
	}
	return now.Add(within[s.Phase])
}
