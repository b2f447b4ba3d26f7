package inventory_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
)

func TestAFleetIsInOrderHoweverItsFileIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		many := make([]int, rapid.IntRange(1, 60).Draw(t, "many"))
		for i := range many {
			many[i] = i
		}
		order := rapid.Permutation(many).Draw(t, "order")
		var s inventory.Spec
		for _, n := range order { // each of a size of its own
			size := fmt.Sprintf("%dMiB", n+1)
			s.Hosts = append(s.Hosts, inventory.HostSpec{Name: fmt.Sprintf("n%02d", n),
				Memory: size, CPUs: 1})
			s.VMs = append(s.VMs, inventory.VMSpec{Name: fmt.Sprintf("v%02d", n), Memory: size})
		}
		f, err := s.Fleet("made", nil)
		if err != nil || len(f.Hosts) != len(order) || len(f.VMs) != len(order) {
			t.Fatal(err, f)
		}
		for i := range order {
			size := hypervisor.Bytes(i+1) * hypervisor.MiB
			host := hypervisor.HostName(fmt.Sprintf("n%02d", i))
			if h := &f.Hosts[i]; h.Name != host || h.Memory != size {
				t.Errorf("host %d is %s of %v", i, h.Name, h.Memory)
			}
			vm := hypervisor.VMID(fmt.Sprintf("default/v%02d", i))
			if v := &f.VMs[i]; v.ID != vm || v.Memory != size {
				t.Errorf("VM %d is %s of %v", i, v.ID, v.Memory)
			}
		}
	})
}
