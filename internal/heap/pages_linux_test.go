package heap

import (
	"maps"
	"os"
	"runtime"
	"strings"
	"testing"
)

func TestPrivateMemory(t *testing.T) {
	for _, c := range []struct {
		line     string
		from, to uintptr
	}{
		{"c000000000-c004000000 rw-p 00000000 00:00 0 \n", 0xc000000000, 0xc004000000},
		{"c000000000-c004000000 rw-p 00000000 00:00 0      [anon: Go: heap]\n",
			0xc000000000, 0xc004000000},
		{"c000400000-c004000000 ---p 00000000 00:00 0 \n", 0, 0},
		{"00400000-004ab000 r-xp 00000000 fe:00 9978050    /usr/bin/godwit\n", 0, 0},
		{"0058e000-00599000 rw-p 0018e000 fe:00 9978050    /usr/bin/godwit\n", 0, 0},
		{"7f03e1860000-7f03e1a00000 rw-s 00000000 00:01 77 /dev/shm/x\n", 0, 0},
		{"c004000000-c000000000 rw-p 00000000 00:00 0\n", 0, 0},
		{"x-y rw-p 00000000 00:00 0\n", 0, 0},
		{"c000000000 rw-p 00000000 00:00 0\n", 0, 0},
		{"\n", 0, 0},
	} {
		if from, to := private(c.line); from != c.from || to != c.to {
			t.Errorf("private(%q) = %x to %x, want %x to %x", c.line, from, to, c.from, c.to)
		}
	}
}

// What a process uses already is in huge pages afterwards, where the kernel has any, and holds
// what it held. That of one that is not large stays where it is.
func TestALargeProcessGetsHugePages(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		t.Skip("this kernel has no transparent huge pages: ", err)
	}
	kept := make([]byte, 256<<20)
	for i := range kept {
		kept[i] = byte(i >> 12)
	}
	before := inHugePages(t)
	var pages Pages
	if pages.Enlarge(); len(pages.used) == 0 {
		t.Error("what a process uses that is not large is moved, or forgotten")
	}
	if pages.ask(true); len(pages.used) > 0 {
		t.Errorf("it is to be moved again: %v", pages.used)
	}
	if after := inHugePages(t); after <= before {
		t.Skipf("%s is in huge pages, as before: this kernel gives none to those who ask "+
			"(MADV_COLLAPSE came with Linux 6.1), or has none left", after)
	}
	for i := range kept {
		if kept[i] != byte(i>>12) {
			t.Fatalf("byte %d is %d", i, kept[i])
		}
	}
	asksOnce(t, &pages)
	runtime.KeepAlive(kept)
}

// asksOnce wants nothing to be asked for a second time in a map of the process that has not
// changed. Some looks find a change: the kernel joins what has become alike, and the race
// detector maps more.
func asksOnce(t *testing.T, pages *Pages) {
	for seen, i := "", 0; i < 20; i++ {
		now, asked := mapped(t), maps.Clone(pages.asked)
		pages.ask(true)
		switch {
		case maps.Equal(asked, pages.asked):
			return
		case now == seen && now == mapped(t):
			t.Fatal("it asked again although nothing has grown")
		}
		seen = now
	}
	t.Error("it asks again and again although nothing grows")
}

// mapped returns the map of this process.
func mapped(t *testing.T) string {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// inHugePages returns how much of this process is in huge pages, as the kernel writes it: longer
// or greater is more.
func inHugePages(t *testing.T) string {
	text, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		t.Skip("this kernel does not tell how much is in huge pages: ", err)
	}
	for line := range strings.Lines(string(text)) {
		if size, is := strings.CutPrefix(line, "AnonHugePages:"); is {
			return strings.TrimSuffix(size, "\n") // in a column: padded from the left
		}
	}
	t.Skip("this kernel does not tell how much is in huge pages")
	return ""
}
