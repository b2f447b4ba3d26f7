package conformance

import (
	"slices"
)

type world = World

const (
	source = Source
	target = Target
	theVM  = TheVM
)

// FailureGroups are the cases of this package.
func FailureGroups() []Group {
	return []Group{
		{Name: "failures", Trials: slices.Concat(deaths, remains, returns, onlyCopies, cuts)},
		{Name: "reopen", Trials: slices.Concat(reopenings, reopenedCopies)},
		{Name: "contexts", Trials: contexts},
		{Name: "crowd", Trials: crowds},
		{Name: "walk", Trials: walks},
	}
}
