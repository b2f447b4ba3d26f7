package due

import (
	"testing"
	"time"
)

// A key that is looked at often and waits for a far deadline each time leaves
// no trace of the deadlines that it no longer waits for.
func TestTimersForgetWhatWasDropped(t *testing.T) {
	var timers Timers[int]
	epoch := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 100_000 {
		timers.Drop(7)
		timers.Set(7, epoch.Add(time.Duration(i)*time.Hour))
		if n := len(timers.queue); n > 2+fewStale {
			t.Fatalf("%d wishes are kept for one key", n)
		}
	}
	if k, ok := timers.Pop(epoch.Add(100_000 * time.Hour)); !ok || k != 7 {
		t.Errorf("Pop = %v, %v", k, ok)
	}
	if k, ok := timers.Pop(epoch.Add(200_000 * time.Hour)); ok {
		t.Errorf("a dropped wish came back: %v", k)
	}
}
