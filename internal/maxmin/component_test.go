package maxmin

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A change recomputes what shares a link with it, directly or through others, and no
// other flow is even looked at.
func TestAChangeLooksAtNothingThatItCannotReach(t *testing.T) {
	bystanders := 0
	rapid.Check(t, func(t *rapid.T) {
		var n Network
		links := make([]*Link, rapid.IntRange(2, 8).Draw(t, "links"))
		for i := range links {
			links[i] = n.AddLink(hypervisor.Bandwidth(rapid.IntRange(0, 100).Draw(t, "capacity")))
		}
		add := func() *Flow {
			var route []*Link
			for _, l := range links {
				if rapid.IntRange(0, 3).Draw(t, "crosses") == 0 {
					route = append(route, l)
				}
			}
			limit := hypervisor.Bandwidth(rapid.IntRange(0, 100).Draw(t, "limit"))
			return n.Add(nil, limit, route...)
		}
		flows := make([]*Flow, rapid.IntRange(1, 12).Draw(t, "flows"))
		for i := range flows {
			flows[i] = add()
		}
		n.Settle()

		before := n.epoch
		var reached map[*Flow]bool
		at := rapid.IntRange(0, len(flows)-1).Draw(t, "which")
		switch rapid.SampledFrom([]string{"limit", "remove", "add"}).Draw(t, "change") {
		case "limit":
			reached = reach(flows, flows[at])
			n.SetLimit(flows[at], flows[at].limit+1)
		case "remove":
			reached = reach(flows, flows[at])
			n.Remove(flows[at])
		case "add":
			f := add()
			flows = append(flows, f)
			reached = reach(flows, f)
		}
		n.Settle()
		for i, f := range flows {
			if looked := f.seen > before; looked && !reached[f] {
				t.Fatalf("flow %d was looked at, and shares nothing with the change", i)
			}
			if !reached[f] {
				bystanders++
			}
		}
	})
	if bystanders == 0 {
		t.Error("no flow was ever out of reach: nothing was tested")
	}
}

// reach returns the flows that share a link with f, directly or through others.
func reach(flows []*Flow, f *Flow) map[*Flow]bool {
	reached := map[*Flow]bool{f: true}
	for grew := true; grew; {
		grew = false
		for _, g := range flows {
			for other := range reached {
				if !reached[g] && meet(g, other) {
					reached[g], grew = true, true
					break
				}
			}
		}
	}
	return reached
}

func meet(a, b *Flow) bool {
	for _, l := range a.links {
		for _, k := range b.links {
			if l == k {
				return true
			}
		}
	}
	return false
}
