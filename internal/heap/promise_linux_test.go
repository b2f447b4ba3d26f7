package heap

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestAvailableMemory(t *testing.T) {
	for _, c := range []struct {
		info string
		want int64
	}{
		{"MemTotal:  24683520 kB\nMemFree: 1 kB\nMemAvailable:  19881984 kB\n", 19881984 << 10},
		{"MemAvailable: 0 kB", 0},
		{"MemFree: 1 kB\n", 0},
		{"MemAvailable: -5 kB\n", 0},
		{"MemAvailable: many kB\n", 0},
		{"MemAvailable: 9007199254740993000 kB\n", 0},
		{"", 0},
	} {
		if got := available(c.info); got != c.want {
			t.Errorf("available(%q) = %d, want %d", c.info, got, c.want)
		}
	}
}

// What a keeper reserves is not used, and is there when the heap grows.
func TestAHeapGrowsIntoWhatIsReserved(t *testing.T) {
	if !promises(small) {
		t.Skip("this kernel does not promise, or has not, 820 MiB")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(usual))
	runtime.GC()
	k := Keep()
	defer k.Close()
	for range 2 * k.next >> 20 { // it collects
		sink = make([]byte, 1<<20)
		k.Tend()
	}
	all := read("/memory/classes/total:bytes")
	if k.reserved != small || all < small || read("/memory/classes/heap/objects:bytes") > k.next {
		t.Fatalf("%d MiB are reserved, there are %d", k.reserved>>20, all>>20)
	}
	var kept [][]byte
	for range 400 {
		kept = append(kept, make([]byte, 1<<20))
		k.Tend()
	}
	if now := read("/memory/classes/total:bytes"); now > all+hopeful {
		t.Errorf("400 MiB more, and the process has grown from %d to %d MiB", all>>20, now>>20)
	}
	runtime.KeepAlive(kept)
}
