// Package move is cases about migrations that go their way, and about what is done to them.
package move

import (
	"slices"

	"github.com/godwit-vm/godwit/hypervisor/hypervisortest/internal/stage"
)

type world = stage.World

const (
	source = stage.Source
	target = stage.Target
	theVM  = stage.TheVM
)

// Groups are the cases of this package.
func Groups() []stage.Group {
	return []stage.Group{
		{Name: "migrate", Trials: slices.Concat(moves, refusedMoves, options)},
		{Name: "hold", Trials: slices.Concat(holds, resolutions, onlyCopies, switchOvers)},
		{Name: "adjust", Trials: slices.Concat(cancels, adjustments)},
	}
}
