package planner

import "testing"

// TestALargeFleetIsPlayedInFewerWorlds, so that its answer comes in time.
func TestALargeFleetIsPlayedInFewerWorlds(t *testing.T) {
	for vms, want := range map[int]int{0: 100, 20_000: 100, 40_000: 50, 200_000: 10,
		1_000_000: 10} {
		if got := worlds(vms); got != want {
			t.Errorf("%d VMs are played in %d worlds, want %d", vms, got, want)
		}
	}
}
