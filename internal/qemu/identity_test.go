//go:build linux

package qemu

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// statusOf writes what the kernel writes.
func statusOf(pid int, name string, state byte, start uint64) []byte {
	return fmt.Appendf(nil, "%d (%s) %c 1 2 3 0 -1 4194560 5 6 7 8 9 10 11 12 20 0 1 0 %d 13 14\n",
		pid, name, state, start)
}

func TestNoNameOfAProgramHidesItsStatus(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", ")", "a) Z 1 1 1",
			"(", " ", "\n", "x) R 1 (y) S 2"})).Draw(t, "name")
		state := rapid.SampledFrom([]byte("RSDTtZXI")).Draw(t, "state")
		start := rapid.Uint64().Draw(t, "start")
		pid := rapid.IntRange(1, 1<<22).Draw(t, "pid")
		got, err := parseStatus(statusOf(pid, name, state, start))
		if want := (status{state, start}); err != nil || got != want {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	})
}

// endless does not fit into 64 bits.
const endless = "99999999999999999999"

func TestWhatIsNoStatus(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":            "",
		"no name":            "1 S 1 2 3",
		"a name without end": "1 (sleep S 1 2 3",
		"too few fields":     "1 (sleep) S 1 2 3",
		"a long state":       "1 (a) SS 1 2 3 0 -1 4 5 6 7 8 9 10 11 12 20 0 1 0 99 13 14",
		"a negative start":   "1 (a) S 1 2 3 0 -1 4 5 6 7 8 9 10 11 12 20 0 1 0 -9 13 14",
		"an endless start":   "1 (a) S 1 2 3 0 -1 4 5 6 7 8 9 10 11 12 20 0 1 0 " + endless + " 1",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := parseStatus([]byte(text)); err == nil {
				t.Errorf("it is read as %+v", got)
			}
		})
	}
}

func FuzzParseStatus(f *testing.F) {
	f.Add(statusOf(1, "sleep", 'S', 99))
	f.Add(statusOf(1, "a) Z (", 'Z', 0))
	f.Add([]byte(") ("))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parseStatus(text)
		if err != nil && s != (status{}) {
			t.Errorf("%v, and yet %+v", err, s)
		}
	})
}

func FuzzSplitArgs(f *testing.F) {
	f.Add([]byte("a\x00b\x00"))
	f.Add([]byte("\x00\x00"))
	f.Add(bytes.Repeat([]byte("x"), maxArgs+1))
	f.Fuzz(func(t *testing.T, text []byte) {
		total := 0
		for _, arg := range splitArgs(text) {
			total += len(arg) + 1
		}
		if total > max(maxArgs, len(text)+1) {
			t.Errorf("%d bytes make arguments of %d", len(text), total)
		}
	})
}
