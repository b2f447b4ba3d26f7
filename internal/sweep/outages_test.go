package sweep

import (
	"slices"
	"testing"

	"github.com/godwit-vm/godwit/sim"
)

// Worked out by hand: of four samples a is out in three and b in one; a sample without an outage
// counts as 0.
func TestOutagesByVM(t *testing.T) {
	out := func(all ...sim.VMOutage) Sample { return Sample{OutagesByVM: all} }
	got := outagesByVM([]Sample{
		out(sim.VMOutage{VM: "a", Seconds: 60}), out(),
		out(sim.VMOutage{VM: "a", Seconds: 20}, sim.VMOutage{VM: "b", Seconds: 400, Down: true}),
		out(sim.VMOutage{VM: "a", Seconds: 40})})
	want := []VMOutages{{VM: "b", Samples: 1, Down: 1, Mean: 100, P50: 0, P99: 400, Max: 400},
		{VM: "a", Samples: 3, Mean: 30, P50: 20, P99: 60, Max: 60}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
