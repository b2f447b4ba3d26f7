// Package policy is a policy of one's own for godwit, wrong at first: it is written, caught by
// a property test, made right, and compared with godwit's own. README.md tells the story;
// mine_test.go is where to begin with one of your own.
package policy

import (
	"cmp"
	"fmt"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/sim"
)

// LargestFirst lets the largest VMs leave a host first, as many at once as the limits allow:
// what takes longest should not begin last.
type LargestFirst struct{}

// Compare puts the larger VM first.
func (LargestFirst) Compare(_ hypervisor.Bandwidth, a, b evacuation.EvacuatingVM) int {
	return cmp.Compare(b.Memory, a.Memory)
}

// Admit lets every migration start.
func (LargestFirst) Admit(hypervisor.Bandwidth, evacuation.EvacuatingVM, []evacuation.EvacuatingVM) bool {
	return true
}

// BigHosts sends VMs to the largest host, whatever happens there already.
var BigHosts = placement.Weigher{Name: "big-hosts", Multiplier: 100,
	Of: func(_ *placement.VM, h *placement.Host, _ placement.Options) float64 {
		return float64(h.Memory)
	}}

// Lane is what a VM on its way is to have of its target's link for itself.
const Lane = hypervisor.Gbit

// lanes is how many VMs may be on their way to a host with a link: one at least, or it could
// never be used.
func lanes(link hypervisor.Bandwidth) int { return max(1, int(link/Lane)) }

// EachHasALane is the goal: no host has more VMs on their way to it than its link has lanes.
func EachHasALane(w *sim.World) error {
	coming := map[hypervisor.HostName]int{}
	for _, m := range w.Moving() {
		coming[m.State.Target]++
	}
	for _, name := range w.Hosts() {
		link := w.HostRecord(name).Host.Link
		if n := coming[name]; n > lanes(link) {
			return fmt.Errorf("%d VMs are on their way to %s, whose link of %v has %d lanes", n,
				name, link, lanes(link))
		}
	}
	return nil
}

// FreeLane refuses hosts that have no lane free: what [BigHosts] forgets.
var FreeLane = placement.Filter{Name: "free-lane",
	Refuses: func(_ *placement.VM, h *placement.Host, _ placement.Options) bool {
		return h.Facts != nil && h.Incoming >= lanes(h.Facts.Link)
	},
	Explain: func(_ *placement.VM, h *placement.Host, _ placement.Options) (need, have string) {
		return fmt.Sprintf("fewer than %d VMs on their way", lanes(h.Facts.Link)),
			fmt.Sprintf("%d", h.Incoming)
	}}
