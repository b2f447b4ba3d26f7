// Package heap lets a process that lives shortly, as a simulation does, trade memory for
// time: garbage is collected the less often the less memory is in use.
package heap

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// How much garbage gathers, in percent of what lives: at most, at least while it is to stay
// in a room, and when that is hopeless, which is Go's default.
const (
	most  = 2000
	least = 25
	usual = 100
	floor = 4 << 20 // as Go counts what lives, when it is less
)

// Spend lets garbage gather to twenty times what lives, but only as far as both fit into room
// bytes. A process that needs more than room, or nearly all of it, goes on as if nobody had
// asked: collecting ever more often would cost it more time than the memory is worth. It is
// for the whole process, and until somebody sets another percentage.
func Spend(room int64) {
	set := percent(live(), room)
	debug.SetGCPercent(set)
	// It is measured anew after every collection: what nobody holds is cleaned up by each.
	mark := new([16]*byte)
	runtime.AddCleanup(mark, func(room int64) {
		if chosen() == set {
			Spend(room)
		}
	}, room)
}

// percent returns how much garbage may gather, in percent of what lives.
func percent(live, room int64) int {
	live = max(floor, live)
	fits := 100 * (room - live) / live
	if fits < least {
		return usual
	}
	return int(min(fits, most))
}

// live returns how many bytes the last collection has left.
func live() int64 {
	bytes, _ := figure("/gc/heap/live:bytes") // if nobody can tell, as if there were room
	return int64(min(bytes, 1<<62))
}

// figure returns a figure of the runtime's, or 0 and false if it does not know it.
func figure(name string) (uint64, bool) {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0, false
	}
	return sample[0].Value.Uint64(), true
}
