package cli

import (
	"testing"
	"time"
	_ "time/tzdata" // wherever the test runs
)

// TestALargeFleetIsPlayedInFewerWorlds, so that its answer comes in time.
func TestALargeFleetIsPlayedInFewerWorlds(t *testing.T) {
	for vms, want := range map[int]int{0: 100, 20_000: 100, 40_000: 50, 200_000: 10,
		1_000_000: 10} {
		if got := worlds(vms); got != want {
			t.Errorf("%d VMs are played in %d worlds, want %d", vms, got, want)
		}
	}
}

// TestTheNightsInWhichClocksAreChanged are an hour longer, or shorter, than others.
func TestTheNightsInWhichClocksAreChanged(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		day    time.Month
		date   int
		at, by string
		want   time.Duration
	}{
		{time.June, 10, "", "06:00", 18*time.Hour - time.Second},
		{time.June, 10, "", "12:00", 24*time.Hour - time.Second},
		{time.June, 10, "22:00", "06:00", 8 * time.Hour},
		{time.June, 10, "06:00", "05:00", 23 * time.Hour},
		{time.March, 28, "22:00", "06:00", 7 * time.Hour},
		{time.March, 28, "", "06:00", 17*time.Hour - time.Second},
		{time.October, 24, "22:00", "06:00", 9 * time.Hour},
		{time.October, 24, "06:00", "06:00", 24 * time.Hour}, // tomorrow, when it is over
	} {
		f := drainFlags{at: tt.at, by: tt.by}
		now := time.Date(2026, tt.day, tt.date, 12, 0, 1, 0, berlin)
		begin, end, err := f.window(now)
		if got := end.Sub(begin); err != nil || got != tt.want {
			t.Errorf("on %v %d, from %q to %q: %v, %v, want %v", tt.day, tt.date, tt.at, tt.by, got,
				err, tt.want)
		}
	}
}
