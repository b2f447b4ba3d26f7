package heap

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestHowFarAHeapMayGrow(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name       string
		live, want int64
	}{
		{"little lives", 4 * mib, 84 * mib},
		{"twenty times what lives does not fit", 100 * mib, 820 * mib},
		{"what lives is half of small", 410 * mib, 820 * mib},
		{"what lives is more", 411 * mib, 1644 * mib},
		{"four times what lives does not fit", 1000 * mib, 3440 * mib},
		{"what lives is nearly two thirds of great", 2280 * mib, 3440 * mib},
		{"what lives is more than that", 2400 * mib, 3600 * mib},
		{"what lives is more than great", 8000 * mib, 12000 * mib},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := target(c.live); got != c.want {
				t.Errorf("target(%d MiB) = %d MiB, want %d", c.live/mib, got/mib, c.want/mib)
			}
		})
	}
}

var sink []byte

// All garbage of a process that tends its heap is collected while that waits.
func TestATendedHeapIsCollectedByItsKeeperAlone(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(usual))
	runtime.GC()
	k := Keep()
	if k.percent == usual || chosen() != k.percent {
		t.Fatalf("%d %% are set, the keeper has set %d", chosen(), k.percent)
	}
	own, all := count(t, "/gc/cycles/automatic:gc-cycles"), count(t, "/gc/cycles/forced:gc-cycles")
	for range 3 * int(k.next>>20) {
		sink = make([]byte, 1<<20)
		if k.Tend(); read("/memory/classes/heap/objects:bytes") > k.next {
			t.Fatalf("a tended heap has grown beyond %d MiB", k.next>>20)
		}
	}
	if n := count(t, "/gc/cycles/forced:gc-cycles") - all; n < 3 || n > 4 {
		t.Errorf("for three times what it may grow to the keeper has collected %d times", n)
	}
	if n := count(t, "/gc/cycles/automatic:gc-cycles") - own; n > 0 {
		t.Errorf("Go has collected %d times beside it", n)
	}
	if k.Close(); chosen() != usual {
		t.Errorf("%d %% afterwards, want %d", chosen(), usual)
	}
}

// A heap that nobody tends does not grow without end.
func TestAHeapThatNobodyTendsIsCollectedByGo(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(usual))
	runtime.GC()
	k := Keep()
	defer k.Close()
	before, made := count(t, "/gc/cycles/automatic:gc-cycles"), 0
	for ; count(t, "/gc/cycles/automatic:gc-cycles") == before; made++ {
		if sink = make([]byte, 1<<20); made > 30*int(k.next>>20) {
			t.Fatalf("%d MiB were made, and nothing was collected", made)
		}
	}
}

func TestAProcessThatHasChosenForItselfKeepsItsHeap(t *testing.T) {
	const own = 70
	defer debug.SetGCPercent(debug.SetGCPercent(own))
	k := Keep()
	if k.Tend(); chosen() != own {
		t.Errorf("%d %%, want %d", chosen(), own)
	}
	if k.Close(); chosen() != own {
		t.Errorf("%d %% afterwards, want %d", chosen(), own)
	}
}

func count(t *testing.T, name string) uint64 {
	t.Helper()
	n, known := figure(name)
	if !known {
		t.Skip("this runtime does not count ", name)
	}
	return n
}
