package simtest

import (
	"iter"

	"github.com/godwit-vm/godwit/internal/explore"
)

// ExploreConfig bounds an exploration: which faults happen, how many, and how many states are
// visited. See [Bounds]. A field that is zero has the default it names.
type ExploreConfig struct {
	// Faults are the kinds of faults that may happen. Default: none.
	Faults ExploreFault
	// Budget is how many faults may happen on one path. Default: none.
	Budget int
	// Odd limits how often the order of steps may differ from the usual one, where the participant
	// that is due acts, the controller first, and time passes only when none is due: at most Odd-1
	// times on one path. 0 is no limit. Faults do not count. A small limit explores long paths: the
	// number of states then grows with their length, and not exponentially.
	Odd int
	// Depth is how many steps one path has at most. Default: no limit.
	Depth int
	// States is after how many states the exploration ends. Default: when there are no more.
	States int
	// Rest is the interval, in states, at which one is continued until nothing happens any more;
	// the invariants of rest are checked there. Default: 200; a negative number is never.
	Rest int
}

// ExploreFault is a set of kinds of faults; combine them with "|".
type ExploreFault uint16

// The kinds of faults.
const (
	// Crashes: the controller or an agent dies, before any write or command.
	Crashes = ExploreFault(explore.Crashes)
	// LostAnswers: a write or a command takes effect, and its answer is lost.
	LostAnswers = ExploreFault(explore.LostAnswers)
	// Refusals: the store refuses a write, or the hypervisor a command.
	Refusals = ExploreFault(explore.Refusals)
	// StaleViews: a participant acts on an old view of the store.
	StaleViews = ExploreFault(explore.StaleViews)
	// LostHints: a notification of a change is lost.
	LostHints = ExploreFault(explore.LostHints)
	// Repeats: a participant acts twice.
	Repeats = ExploreFault(explore.Repeats)
	// Delays: a participant hangs for long, or another one's time comes first.
	Delays = ExploreFault(explore.Delays)
	// Kills: the process of a VM dies.
	Kills = ExploreFault(explore.Kills)
	// Cuts: a link is cut, and is repaired at any time, or never.
	Cuts = ExploreFault(explore.Cuts)
	// Resets: the connections between two hosts are closed.
	Resets = ExploreFault(explore.Resets)
	// Power: a host loses its power or is fenced, and may return.
	Power = ExploreFault(explore.Power)
	// FalseReports: an operator says that a host is off, and it is not.
	FalseReports = ExploreFault(explore.Words)
	// Directories: the directory of an agent is emptied.
	Directories = ExploreFault(explore.Directories)
	// Backups: the store is set back to its first state.
	Backups = ExploreFault(explore.Backups)

	// EveryFault is every kind but the mistakes of people.
	EveryFault = ExploreFault(explore.AllFaults)
	// EveryMistake is what people do wrong: false reports, directories, backups.
	EveryMistake = ExploreFault(explore.Mistakes)
)

// on is the exploration of a scene within these bounds, in one world at a time.
func (c *ExploreConfig) on(scene *explore.Scene) explore.Config {
	return explore.Config{Scene: scene, Faults: explore.Fault(c.Faults), Budget: c.Budget, Odd: c.Odd,
		Depth: c.Depth, States: c.States, Rest: c.Rest, Workers: 1}
}

// Scenes yields the small scenes of 2 hosts or more and 1 VM or more, up to so many of each, with
// a name: texts for [Explore].
func Scenes(hosts, vms int) iter.Seq2[string, string] { return explore.Scenes(hosts, vms) }
