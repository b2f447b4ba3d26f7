package conformance

import (
	"slices"
)

type migrationWorld = World

// MigrationGroups are the cases of this package.
func MigrationGroups() []Group {
	return []Group{
		{Name: "migrate", Trials: slices.Concat(moves, refusedMoves, options)},
		{Name: "hold", Trials: slices.Concat(holds, resolutions, migrationOnlyCopies, switchOvers)},
		{Name: "adjust", Trials: slices.Concat(cancels, adjustments)},
	}
}
