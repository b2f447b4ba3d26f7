package convergence

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// State is what is kept about one transfer between two looks. The zero value is
// a transfer that was not looked at. It is a value: methods return a changed
// copy, and what its slices hold is never written. It can be stored as JSON.
// All spans are counted from Started.
type State struct {
	// Started is when the transfer began: what the hypervisor says, or the first
	// look. UTC, without a monotonic reading.
	Started time.Time `json:",omitzero"`
	// Clock is the span of the latest look.
	Clock time.Duration `json:",omitempty"`
	// Calm is until when nothing will be asked for unless a pass ends: who hears of that
	// need not look before. Zero is not known.
	Calm time.Duration `json:",omitempty"`

	// Aborting: a cancel was accepted and has not failed.
	Aborting bool `json:",omitempty"`
	// GaveUp: the cancel was accepted because of Downtime.
	GaveUp bool `json:",omitempty"`
	// Paused: the guest is stopped at the source.
	Paused bool `json:",omitempty"`
	// PostCopy: the target runs.
	PostCopy bool `json:",omitempty"`
	// Forced: a downtime limit was accepted that makes the hypervisor switch over
	// at the next opportunity, at ForcedAt.
	Forced   bool          `json:",omitempty"`
	ForcedAt time.Duration `json:",omitempty"`
	// Stretched: Forced came after the budget, which it extended.
	Stretched bool `json:",omitempty"`

	// Iteration is the highest pass seen.
	Iteration int `json:",omitempty"`
	// Bandwidth is the smoothed speed, in bytes per second; 0 is not known.
	Bandwidth float64 `json:",omitempty"`

	Limit     LimitState     `json:",omitzero"`
	Refusals  Refusals       `json:",omitzero"`
	Watermark WatermarkState `json:",omitzero"`
	Legacy    LegacyState    `json:",omitzero"`
	Stall     StallState     `json:",omitzero"`
	// Own is what a [Policy] from elsewhere remembers: numbers, with a meaning of its own.
	// It is replaced and never written.
	Own []int64 `json:",omitempty"`
}

// LimitState is what is known about the downtime limit.
type LimitState struct {
	Now       time.Duration `json:",omitempty"` // the limit; 0 is not known
	Set       bool          `json:",omitempty"` // the hypervisor accepted Now
	At        time.Duration `json:",omitempty"` // when it did
	Iteration int           `json:",omitempty"` // in which pass it did
}

// Refusals counts the remedies that were refused, up to three each.
type Refusals struct {
	Downtime int `json:",omitempty"`
	PostCopy int `json:",omitempty"`
	Pause    int `json:",omitempty"`
}

// WatermarkState is what [Watermark] remembers.
type WatermarkState struct {
	// Sent is the most that was seen on the wire, MovedAt when data last moved.
	Sent    hypervisor.Bytes `json:",omitempty"`
	MovedAt time.Duration    `json:",omitempty"`
	// PassStart is the backlog at the start of this pass, PassLow the least that
	// was left in it.
	PassStart hypervisor.Bytes `json:",omitempty"`
	PassLow   hypervisor.Bytes `json:",omitempty"`
	// PassAt is when this pass was first seen, PassTook how long the one before took.
	PassAt   time.Duration `json:",omitempty"`
	PassTook time.Duration `json:",omitempty"`
	// FirstTook is how long the first pass took, FirstLeft the backlog when it had ended.
	FirstTook time.Duration    `json:",omitempty"`
	FirstLeft hypervisor.Bytes `json:",omitempty"`
	// Low is the lowest backlog at the start of any pass but the first, LowAt and
	// LowIteration when it was reached (or patience renewed); LowIteration 0 is
	// not yet.
	Low          hypervisor.Bytes `json:",omitempty"`
	LowAt        time.Duration    `json:",omitempty"`
	LowIteration int              `json:",omitempty"`
	// Throttle is the highest percentage of CPU time taken away.
	Throttle int `json:",omitempty"`
	// Data is what the first pass sent, FirstPass when it had ended.
	Data      hypervisor.Bytes `json:",omitempty"`
	FirstPass time.Duration    `json:",omitempty"`
}

// LegacyState is what [Legacy] remembers.
type LegacyState struct {
	// Watermark is the previous sample of what remains, in spite of its name.
	Watermark hypervisor.Bytes `json:",omitempty"`
	// ProgressAt is when a sample was last smaller than the one before.
	ProgressAt time.Duration `json:",omitempty"`
}

// tries is how often Watermark asks for a remedy that is refused.
const tries = 3

// Accepted returns the state after the hypervisor has taken v. An accepted
// Abort stops all further verdicts that could only repeat it.
func (s State) Accepted(v Decision, now time.Time) State {
	at := max(s.since(now), s.Clock)
	switch v.Action {
	case Abort:
		s.Aborting = true
		s.GaveUp = s.GaveUp || v.Why == Downtime
	case StartPostCopy:
		s.PostCopy = true
	case Pause:
		s.Paused = true
	case SetDowntime:
		if v.Why == Tuning {
			s.Limit = LimitState{Now: v.Limit, Set: true, At: at, Iteration: s.Iteration}
			s.Refusals.Downtime = 0
			break
		}
		s.Forced, s.ForcedAt = true, at
		s.Stretched = s.Stretched || v.Why == OverBudget
	}
	return s
}

// Refused returns the state after the hypervisor has not taken v, or after an
// Abort that it had taken has failed. What is refused is asked for again.
// Source: KubeVirt v1.9.0 live-migration-source.go:1011 (a failed abort is retried).
func (s State) Refused(v Decision) State {
	switch v.Action {
	case Abort:
		s.Aborting = false
	case StartPostCopy:
		s.Refusals.PostCopy = min(s.Refusals.PostCopy+1, tries)
	case Pause:
		s.Refusals.Pause = min(s.Refusals.Pause+1, tries)
	case SetDowntime:
		if v.Why == Tuning {
			s.Refusals.Downtime = min(s.Refusals.Downtime+1, tries)
			break
		}
		s.Refusals.Pause = min(s.Refusals.Pause+1, tries)
	}
	return s
}

// since returns the span from the start to now; nothing has started before the
// first look.
func (s *State) since(now time.Time) time.Duration {
	if s.Started.IsZero() {
		return 0
	}
	return now.Sub(s.Started)
}
