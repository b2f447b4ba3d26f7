package conformance

import (
	"slices"
)

// lifecycleGroups are the cases of this package.
func lifecycleGroups() []group {
	return []group{
		{Name: "lifecycle", Trials: slices.Concat(lives, limits)},
		{Name: "hardware", Trials: slices.Concat(sizes, hotplugs, disks, diskMoves, measurements, consoles)},
		{Name: "receive", Trials: slices.Concat(targets, restingTargets, refusedTargets)},
	}
}
