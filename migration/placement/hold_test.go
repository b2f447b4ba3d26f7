package placement_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// A host holds what an index reserves for one that has come, and refuses what the index refuses.
func TestHoldIsReserveAndArrive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		host := placement.Host{Name: "n1", Memory: 8, CPUs: 4}
		if rapid.Bool().Draw(t, "load is known") {
			host.Load = &placement.Load{}
		}
		index := placement.NewIndex(0, host)
		for i := range rapid.IntRange(0, 6).Draw(t, "VMs") {
			size := rapid.IntRange(-1, 5)
			vm := placement.VM{ID: hypervisor.VMID("default/v" + string(rune('a'+i))),
				Memory:  hypervisor.Bytes(size.Draw(t, "memory")),
				Balloon: hypervisor.Bytes(size.Draw(t, "balloon")), CPUs: size.Draw(t, "CPUs"),
				Disk: hypervisor.Bytes(size.Draw(t, "disk"))}
			vm.Constraints.Apart = rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 0, 2).
				Draw(t, "apart")
			want := index.Reserve(&vm, "n1") && index.Arrive("n1")
			if got := host.Hold(&vm); got != want {
				t.Fatalf("Hold(%+v) = %v, want %v", vm, got, want)
			}
		}
		want, _ := index.Get("n1")
		if diff := cmp.Diff(want, host); diff != "" {
			t.Fatalf("the reservations (-index +host):\n%s", diff)
		}
	})
}
