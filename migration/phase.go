package migration

import (
	"fmt"
	"slices"
)

// A Phase is how far a migration has come. It never moves back, and one decision moves it by at
// most one step.
// Source: KubeVirt v1.9.0 api/core/v1/types.go:1851 (phases of a local migration).
type Phase uint8

// The phases.
const (
	Unset           Phase = iota // asked for, not yet accepted
	Pending                      // accepted; waits for a slot and a target
	Scheduling                   // a target has been created; it is not ready
	Scheduled                    // the target is ready; not handed over
	PreparingTarget              // handed over; the target prepares to receive
	TargetReady                  // the target listens; the source has not begun
	Running                      // memory moves
	Succeeded                    // the VM runs at the target
	Failed                       // the VM stayed where it was
)

var phases = [...]string{"", "Pending", "Scheduling", "Scheduled", "PreparingTarget",
	"TargetReady", "Running", "Succeeded", "Failed"}

// Phases lists all phases in order.
func Phases() []Phase {
	return []Phase{Unset, Pending, Scheduling, Scheduled, PreparingTarget, TargetReady, Running,
		Succeeded, Failed}
}

// String returns the phase's word; Unset is the empty word.
func (p Phase) String() string { return word(phases[:], int(p)) }

// word returns words[i], and says so when i is out of range.
func word(words []string, i int) string {
	if i >= len(words) {
		return fmt.Sprintf("invalid(%d)", i)
	}
	return words[i]
}

// MarshalText stores words, so that renumbering cannot corrupt the past.
func (p Phase) MarshalText() ([]byte, error) {
	if int(p) >= len(phases) {
		return nil, fmt.Errorf("migration: no phase has the number %d", uint8(p))
	}
	return []byte(phases[p]), nil
}

// UnmarshalText reads a word that MarshalText wrote.
func (p *Phase) UnmarshalText(text []byte) error {
	i := slices.Index(phases[:], string(text))
	if i < 0 {
		return fmt.Errorf("migration: unknown phase %q", text)
	}
	*p = Phase(i)
	return nil
}

// Final reports whether p is an end: nothing is decided after it.
// Source: KubeVirt v1.9.0 types.go:846 (IsFinal).
func (p Phase) Final() bool { return p == Succeeded || p == Failed }

// Active reports whether p holds a slot: from the creation of the target until the end.
// Source: KubeVirt v1.9.0 types.go:850 (IsRunning).
func (p Phase) Active() bool { return p >= Scheduling && p <= Running }

// TargetCreated reports whether a target must exist in p, or has existed.
// Source: KubeVirt v1.9.0 types.go:863 (TargetIsCreated).
func (p Phase) TargetCreated() bool { return p >= Scheduling }

// HandedOver reports whether the VM's state names this migration in p.
// Source: KubeVirt v1.9.0 types.go:871 (TargetIsHandedOff).
func (p Phase) HandedOver() bool { return p >= PreparingTarget }
