package words_test

import (
	"testing"

	"github.com/godwit-vm/godwit/internal/words"
)

func TestSpansAreForPeople(t *testing.T) {
	for seconds, want := range map[float64]string{0: "0.0s", 12.34: "12.3s", 59.9: "59.9s",
		60: "1m00s", 119: "1m59s", 3600: "1h00m", 5400: "1h30m", 86399: "23h59m"} {
		if got := words.Span(seconds); got != want {
			t.Errorf("Span(%v) = %q, want %q", seconds, got, want)
		}
	}
}

func TestOneIsNotMany(t *testing.T) {
	for n, want := range map[int]string{0: "0 VMs", 1: "1 VM", 2: "2 VMs"} {
		if got := words.Count(n, "VM"); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}
