package humanize_test

import (
	"fmt"
	"testing"

	"github.com/godwit-vm/godwit/internal/humanize"
)

func TestSpansAreForPeople(t *testing.T) {
	for seconds, want := range map[float64]string{0: "0.0s", 12.34: "12.3s", 59.9: "59.9s",
		60: "1m00s", 119: "1m59s", 3600: "1h00m", 5400: "1h30m", 86399: "23h59m"} {
		if got := humanize.Span(seconds); got != want {
			t.Errorf("Span(%v) = %q, want %q", seconds, got, want)
		}
	}
}

func TestOneIsNotMany(t *testing.T) {
	for n, want := range map[int]string{0: "0 VMs", 1: "1 VM", 2: "2 VMs"} {
		if got := humanize.Count(n, "VM"); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestALongListIsCut(t *testing.T) {
	var names []string
	for i := range 13 {
		names = append(names, fmt.Sprint(i))
	}
	for n, want := range map[int]string{0: "", 1: "0", 2: "0, 1",
		12: "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11",
		13: "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, … and 3 more"} {
		if got := humanize.List(names[:n]); got != want {
			t.Errorf("List of %d names = %q, want %q", n, got, want)
		}
	}
}
