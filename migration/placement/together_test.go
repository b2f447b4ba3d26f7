package placement_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// A host takes the VM that stands for some exactly when it takes them one after another, in any order,
// as far as their own rules about each other allow.
func TestAHostTakesAGroupWhenItTakesAllOfIt(t *testing.T) {
	yes, no := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		vms := drawGroup(t)
		h := placement.Host{Name: "n2", Memory: hypervisor.Bytes(rapid.IntRange(1, 16).Draw(t, "GiB")) << 30,
			CPUs:   rapid.IntRange(1, 12).Draw(t, "CPUs"),
			Labels: placement.Labels{"rack": "a", "disk": rapid.SampledFrom([]string{"ssd", "hdd"}).Draw(t, "disk")},
			Load:   &placement.Load{}, Facts: &placement.Facts{Zone: "z1"}}
		if rapid.Bool().Draw(t, "tainted") {
			h.Taints = []placement.Taint{{Key: "k", Effect: placement.NoSchedule}}
		}
		if n := rapid.IntRange(0, 2).Draw(t, "apart there"); n > 0 {
			h.Groups = map[string]int{"far": n}
		}
		all, ok := placement.Together(vms)
		if !ok {
			t.Fatal("they ask for nothing that one VM cannot ask for")
		}
		got := placement.FitsAll(placement.AllFilters(), &all, &h, placement.Options{Source: "n1"})
		want := true
		permute(vms, func(vms []*placement.VM) { want = want && oneByOne(t, vms, h) })
		if got != want {
			t.Fatalf("together %v, one after another %v: %+v on %+v", got, want, all, h)
		}
		if want {
			yes++
		} else {
			no++
		}
	})
	if yes == 0 || no == 0 {
		t.Errorf("%d fit and %d do not: nothing was tested", yes, no)
	}
}

// oneByOne reports whether a host takes VMs one after another.
func oneByOne(t *rapid.T, vms []*placement.VM, full placement.Host) bool {
	want := true
	for i, vm := range vms {
		alone := *vm
		alone.Constraints.Groups = nil
		for _, r := range vm.Constraints.Groups {
			if !r.Binds() {
				alone.Constraints.Groups = append(alone.Constraints.Groups, r)
			}
		}
		want = want && placement.FitsAll(placement.AllFilters(), &alone, &full, placement.Options{Source: "n1"})
		next, reserved := full.With(&alone)
		if !reserved {
			t.Fatalf("VM %d is not reserved", i)
		}
		full = next
	}
	return want
}

// permute calls do with every order of VMs.
func permute(vms []*placement.VM, do func([]*placement.VM)) {
	var swap func(int)
	swap = func(k int) {
		if k == len(vms) {
			do(vms)
			return
		}
		for i := k; i < len(vms); i++ {
			vms[k], vms[i] = vms[i], vms[k]
			swap(k + 1)
			vms[k], vms[i] = vms[i], vms[k]
		}
	}
	swap(0)
}

func drawGroup(t *rapid.T) (vms []*placement.VM) {
	for i := range rapid.IntRange(1, 4).Draw(t, "members") {
		vm := &placement.VM{ID: hypervisor.VMID(rune('a' + i)),
			Memory: hypervisor.Bytes(rapid.IntRange(1, 5).Draw(t, "memory")) << 30,
			CPUs:   rapid.IntRange(1, 4).Draw(t, "vcpus"), CPURequest: rapid.IntRange(0, 2).Draw(t, "asks")}
		c := &vm.Constraints
		c.Groups = []placement.GroupRule{{Group: "pair", Policy: placement.Affinity}}
		switch rapid.IntRange(0, 8).Draw(t, "asks for") {
		case 0:
			c.Selector = placement.Labels{"disk": "ssd"}
		case 1:
			c.Affinity = [][]placement.Requirement{
				{{Key: "disk", Operator: placement.In, Values: []string{"hdd"}}},
				{{Key: "rack", Operator: placement.In, Values: []string{"a"}}}}
		case 2:
			c.Tolerations = []placement.Toleration{{Key: "k", Exists: true}}
		case 3:
			c.Apart = []string{"far"}
		case 4:
			c.Zones = rapid.SampledFrom([][]string{{"z1"}, {"z2"}, {"z1", "z2"}}).Draw(t, "zones")
		case 5:
			c.Groups = append(c.Groups, placement.GroupRule{Group: "far", Policy: placement.AntiAffinity,
				Max: 3})
		case 6:
			c.Without = []hypervisor.VMID{"a"}
			if i == 0 {
				c.Without = nil
			}
		}
		vms = append(vms, vm)
	}
	return vms
}
