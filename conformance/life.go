package conformance

import (
	"slices"
)

type lifecycleWorld = World

// LifecycleGroups are the cases of this package.
func LifecycleGroups() []Group {
	return []Group{
		{Name: "lifecycle", Trials: slices.Concat(lives, limits)},
		{Name: "hardware", Trials: slices.Concat(sizes, disks, measurements)},
		{Name: "receive", Trials: slices.Concat(targets, restingTargets, refusedTargets)},
	}
}
