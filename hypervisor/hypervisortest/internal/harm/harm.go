// Package harm is cases about what goes wrong: processes, links and callers that are lost, our
// own process, and commands without sense.
package harm

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
		{Name: "failures", Trials: slices.Concat(deaths, remains, returns, onlyCopies, cuts)},
		{Name: "reopen", Trials: slices.Concat(reopenings, reopenedCopies)},
		{Name: "contexts", Trials: contexts},
		{Name: "crowd", Trials: crowds},
		{Name: "walk", Trials: walks},
	}
}
