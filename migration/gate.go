package migration

import "github.com/godwit-vm/godwit/migration/slot"

// What bounds how much moves at once; package slot has the arithmetic.
type (
	Limits = slot.Limits // how many migrations hold a slot at once
	Gate   = slot.Gate   // what the limits say about one more target
	Slots  = slot.Slots  // the slots that are held
	Slot   = slot.Slot   // what one migration holds
)

// Unlimited is a limit that is never reached.
const Unlimited = slot.Unlimited

// The answers of a [Gate]. Only Open lets a target be created.
const (
	NotAsked    = slot.NotAsked
	Open        = slot.Open
	ClusterFull = slot.ClusterFull
	SourceFull  = slot.SourceFull
	NoHostFits  = slot.NoHostFits
)

// DefaultLimits are KubeVirt's.
func DefaultLimits() Limits { return slot.DefaultLimits() }

// HoldsSlot reports whether an unfinished migration counts against the limits.
// Source: KubeVirt v1.9.0 migration.go:2440 (findRunningMigrations).
func HoldsSlot(p Phase, hasTarget, vmExists bool) bool {
	return p.Active() || !p.Final() && hasTarget && vmExists
}
