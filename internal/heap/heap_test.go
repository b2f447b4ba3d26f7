package heap

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestGarbageGathersInWhatRoomIsLeft(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name       string
		live, room int64
		want       int
	}{
		{"nothing lives", 0, 1024 * mib, 2000},
		{"little lives", 8 * mib, 1024 * mib, 2000},
		{"little lives in a small room", 8 * mib, 24 * mib, 200},
		{"there is room for nine times what lives", 100 * mib, 1000 * mib, 900},
		{"there is just room", 100 * mib, 500 * mib, 400},
		{"what lives is a half", 512 * mib, 1024 * mib, 100},
		{"what lives is three quarters", 768 * mib, 1024 * mib, 33},
		{"what lives is nearly all", 1000 * mib, 1024 * mib, 100},
		{"what lives is more", 4096 * mib, 1024 * mib, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := percent(c.live, c.room); got != c.want {
				t.Errorf("percent(%d, %d) = %d, want %d", c.live, c.room, got, c.want)
			}
		})
	}
}

// It is measured again after each collection.
func TestWhatLivesIsFollowed(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	kept := make([]byte, 64<<20)
	Spend(96 << 20) // there is room for at most half as much more
	for n := chosen(); n < least || n > 50; n = chosen() {
		// Cleanups run by themselves, after a collection.
		runtime.GC()
		runtime.Gosched()
	}
	runtime.KeepAlive(kept)
}
