package heap

import (
	"math"
	"runtime"
	"runtime/debug"
)

// How far the heap of a process may grow that does one thing after the other: to small as long
// as that is twice what lives, then to four times what lives, but no further than great while
// that is half as much again as what lives. With what Go needs besides, a process whose heap is
// great stays below 4 GiB.
const (
	small = 820 << 20
	great = 3440 << 20
)

// A Keeper collects the garbage of a process whose work is done by one goroutine, while that
// one waits for it. Beside the work a collection takes a quarter of a core for as long as it
// lasts, has the work note every pointer that it writes, and keeps what is made meanwhile. It
// is for the whole process, and leaves all to Go in one that has chosen for itself how much
// garbage there may be, by GOGC or by [debug.SetGCPercent].
type Keeper struct {
	pages    Pages
	percent  int    // that was set last; 0 is that all is left to Go
	next     uint64 // how far the heap may grow
	reserved int64  // how large a process was prepared for
}

// Keep begins to keep the process's heap, until [Keeper.Close].
func Keep() *Keeper {
	k := &Keeper{}
	if k.percent = chosen(); k.percent != usual {
		k.percent = 0
		return k
	}
	k.plan()
	return k
}

// Tend collects garbage if there is enough of it, and asks for huge pages for what the process
// has got. Whoever allocates calls it now and then: it costs little as long as there is nothing
// to do.
func (k *Keeper) Tend() {
	k.pages.Enlarge()
	if k.percent > 0 && read("/memory/classes/heap/objects:bytes") >= k.next {
		k.reserve()
		runtime.GC()
		k.plan()
	}
}

// reserve has the kernel promise what the heap is going to grow into, in huge pages, which it
// gives as they are used: Go asks it for little at a time, and uses that at once. What is
// reserved is garbage of the collection that follows.
func (k *Keeper) reserve() {
	to := int64(small)
	if k.next >= small {
		to = great + great/6 // with what lies between
	}
	if k.reserved >= to {
		return
	}
	k.reserved = to
	lacks := to - int64(read("/memory/classes/total:bytes"))
	if lacks < hopeful || !promises(lacks) {
		return
	}
	debug.SetGCPercent(-1) // it is planned anew
	room := make([]byte, lacks)
	k.pages.Enlarge()
	runtime.KeepAlive(room)
}

// plan says when to collect again. Should nobody tend the heap before it is twice as large, Go
// collects beside the work.
func (k *Keeper) plan() {
	live := max(floor, live())
	next := target(live)
	k.next, k.percent = uint64(next), int((2*next-live)*100/live)
	debug.SetGCPercent(k.percent)
}

// Close leaves the heap to Go again.
func (k *Keeper) Close() {
	if k.percent > 0 && chosen() == k.percent {
		debug.SetGCPercent(usual)
	}
	k.percent = 0
}

// target returns how far a heap may grow of which so much lives.
func target(live int64) int64 {
	switch {
	case live <= small/2:
		return min(live+live*most/100, small)
	case live <= great/3*2:
		return min(4*live, great)
	}
	return live + live/2
}

// read returns a figure of the runtime's; what it does not know is more than any other.
func read(name string) uint64 {
	if n, known := figure(name); known {
		return n
	}
	return math.MaxUint64
}
