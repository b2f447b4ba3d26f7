package simtest

import (
	"iter"

	"github.com/godwit-vm/godwit/internal/explore"
	"github.com/godwit-vm/godwit/internal/sweep"
)

// ExploreConfig bounds an exploration: which faults happen, how many, and how many states are
// visited. See [Bounds].
type ExploreConfig = explore.Config

// ExploreFault is a set of kinds of faults.
type ExploreFault = explore.Fault

// The sets of faults of an exploration.
const (
	EveryFault   = explore.AllFaults // every kind but the mistakes of people
	EveryMistake = explore.Mistakes  // what people do wrong
)

// Scenes yields the small scenes of 2 hosts or more and 1 VM or more, up to so many of each, with
// a name: texts for [Explore].
func Scenes(hosts, vms int) iter.Seq2[string, string] { return explore.Scenes(hosts, vms) }

// MeasureKind says what a measure counts, and so how differences are told. See [Measure].
type MeasureKind = sweep.Kind

// The kinds of measures.
const (
	Numbers = sweep.Number
	Seconds = sweep.Seconds // a time
	Bytes   = sweep.Bytes
	Counts  = sweep.Count // small whole numbers, often 0
)

// ComparisonResult is what a comparison finds of one measure.
type ComparisonResult = sweep.ComparisonResult
