package placement

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
)

// TestTheOrderOfFiltersIsIrrelevantToAcceptance walks the table in a drawn
// order. It catches a filter that relies on an earlier one.
func TestTheOrderOfFiltersIsIrrelevantToAcceptance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		few := rapid.IntRange(0, 3)
		vm := &VM{Memory: hypervisor.Bytes(few.Draw(t, "memory")), CPUs: few.Draw(t, "cpus")}
		host := &Host{
			Name: "n1", Memory: hypervisor.Bytes(few.Draw(t, "has")), CPUs: few.Draw(t, "hasCPUs"),
			Down: rapid.Bool().Draw(t, "down"), Incoming: few.Draw(t, "incoming"),
		}
		o := Options{Inbound: few.Draw(t, "inbound")}
		fits, reasons := true, 0
		for _, f := range rapid.Permutation(everything).Draw(t, "order") {
			if f.Refuses(vm, host, o) {
				fits = false
				reasons++
			}
		}
		if fits != Fits(vm, host, o) || reasons != len(Check(vm, host, o)) {
			t.Fatalf("in another order: fits %v with %d reasons; Check = %v",
				fits, reasons, Check(vm, host, o))
		}
	})
}

// TestEachFilterHasItsOwnName: reasons are told apart by it.
func TestEachFilterHasItsOwnName(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range everything {
		if f.Name == "" || seen[f.Name] || f.Refuses == nil || f.Explain == nil {
			t.Errorf("filter %q is incomplete or repeated", f.Name)
		}
		seen[f.Name] = true
	}
}

// TestHostsThatTakeNoVMAreKeptAside: the answers would be the same without
// it, but every search would visit them again.
func TestHostsThatTakeNoVMAreKeptAside(t *testing.T) {
	x := NewIndex(1, Host{Name: "n1", Down: true}, Host{Name: "n2", Cordoned: true},
		Host{Name: "n3", Incoming: 1}, Host{Name: "n4"})
	x.Reserve(&VM{}, "n4")
	if best := x.tree.nodes[1].best; best != none {
		t.Errorf("%s takes part", x.tree.hosts[best].Name)
	}
	x.Arrive("n4")
	if best := x.tree.nodes[1].best; best == none {
		t.Error("n4 takes no part after the arrival")
	}
}
