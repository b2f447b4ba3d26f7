package conformance

import (
	"slices"
)

// migrationGroups are the cases of this package.
func migrationGroups() []group {
	return []group{
		{Name: "migrate", Trials: slices.Concat(moves, refusedMoves, options)},
		{Name: "hold", Trials: slices.Concat(holds, resolutions, migrationOnlyCopies, switchOvers)},
		{Name: "adjust", Trials: slices.Concat(cancels, adjustments)},
	}
}
