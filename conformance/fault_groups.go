package conformance

import (
	"slices"
)

// failureGroups are the cases of this package.
func failureGroups() []group {
	return []group{
		{Name: "failures", Trials: slices.Concat(deaths, remains, returns, onlyCopies, cuts)},
		{Name: "reopen", Trials: slices.Concat(reopenings, reopenedCopies)},
		{Name: "contexts", Trials: contexts},
		{Name: "crowd", Trials: crowds},
		{Name: "walk", Trials: walks},
	}
}
