package placement_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// TestConstraintsAreStored: those of today keep their form, so that what was
// stored before can be read, and the new ones survive a store.
func TestConstraintsAreStored(t *testing.T) {
	text, err := json.Marshal(placement.Constraints{})
	old := `{"Selector":null,"Affinity":null,"Tolerations":null,"Apart":null}`
	if err != nil || string(text) != old {
		t.Errorf("no constraints are stored as %s, %v", text, err)
	}
	c := placement.Constraints{
		Zones: []string{"a"}, Specs: map[string]string{"gen": "= 3"}, Tenant: "shop",
		Groups: []placement.GroupRule{{Group: "g", Policy: placement.AntiAffinity, Max: 2,
			Domain: "rack"}},
		With: []hypervisor.VMID{"x"}, Without: []hypervisor.VMID{"y"},
		Platform: placement.Platform{Arch: "x86_64", Machine: "q35", CPUModel: "m",
			CPUFeatures: []string{"f"}, HostModel: "h", HostFeatures: []string{"g"}, Hypervisor: "QEMU", MinVersion: 7},
		Topology: &placement.TopologyRequest{Parts: []placement.Part{{CPUs: 1, Memory: 2}}, Dedicated: true,
			Threads: placement.Isolate, PageSize: 1},
		Devices:  []placement.DeviceAsk{{Class: "gpu", Count: 1, Stays: true}},
		Networks: []string{"front"},
	}
	if text, err = json.Marshal(c); err != nil {
		t.Fatal(err)
	}
	var back placement.Constraints
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, back); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

func withLoad() placement.Host {
	h := empty("n1", 64)
	h.Facts = &placement.Facts{
		Cells: []placement.Cell{{Memory: 64 * hypervisor.GiB,
			Cores: []placement.CPUSet{placement.CPUSetOf(0, 1), placement.CPUSetOf(2, 3)}}},
		Devices: placement.Devices{{Class: "gpu", Count: 2}, {Class: "nic", Count: 2}},
	}
	h.Load = &placement.Load{VMs: 1, Devices: placement.Devices{{Class: "nic", Count: 1}}}
	return h
}

func special(id hypervisor.VMID) *placement.VM {
	return &placement.VM{ID: id, Memory: 8 * hypervisor.GiB, CPUs: 2, Overhead: 2, Balloon: 1,
		Disk: 5, Constraints: placement.Constraints{
			Groups:   []placement.GroupRule{{Group: "g", Policy: placement.AntiAffinity}},
			Topology: &placement.TopologyRequest{Dedicated: true},
			Devices:  []placement.DeviceAsk{{Class: "gpu", Count: 1}},
		}}
}

func TestTheBooksCountWhatAVMTakes(t *testing.T) {
	x := placement.NewIndex(0, withLoad())
	x.Reserve(special("a"), "n1")
	x.Reserve(special("b"), "n1")
	got, _ := x.Get("n1")
	if got.UsedMemory != 16*hypervisor.GiB+2 || got.Groups["g"] != 2 || got.Load.VMs != 3 ||
		got.Load.Disk != 10 || got.FreeDevices("gpu") != 0 || got.FreeDevices("nic") != 1 {
		t.Errorf("used %v, groups %v, load %+v", got.UsedMemory, got.Groups, got.Load)
	}
	if cpus := got.Load.Cells[0].Pinned.String(); cpus != "0-3" {
		t.Errorf("pinned CPUs %s", cpus)
	}
	x.Leave(special("a"), "n1")
	if got, _ = x.Get("n1"); got.Load.Cells[0].Pinned.String() != "2-3" {
		t.Errorf("after a has left, pinned CPUs %s", got.Load.Cells[0].Pinned)
	}
	if has, known := got.HasVM("b"); !has || !known {
		t.Error("b is not known to be there")
	}
	if has, _ := got.HasVM("a"); has {
		t.Error("a is still there")
	}
}

// TestWithAndWithoutAreOpposites, also for a VM that is reserved twice, and they
// change no copy but their own.
func TestWithAndWithoutAreOpposites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := withLoad()
		for _, id := range rapid.SliceOfN(rapid.SampledFrom([]hypervisor.VMID{"a", "b"}), 0, 3).
			Draw(t, "before") {
			h, _ = h.With(special(id))
		}
		before := h.Clone()
		vm := special(rapid.SampledFrom([]hypervisor.VMID{"a", "c"}).Draw(t, "vm"))
		with, ok := h.With(vm)
		after, back := with.Without(vm, true)
		if !ok || !back {
			t.Fatal("an entry was refused")
		}
		if diff := cmp.Diff(before, h); diff != "" {
			t.Fatalf("the host itself changed (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(before, after, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("reserved and taken back (-before +after):\n%s", diff)
		}
		if cmp.Equal(with, before) {
			t.Fatal("an entry changed nothing")
		}
	})
}

func TestTheBooksRefuseVMsWithoutASize(t *testing.T) {
	for name, vm := range map[string]*placement.VM{
		"a negative disk":      {Disk: -1},
		"a negative overhead":  {Overhead: -1},
		"a negative balloon":   {Balloon: -1},
		"a balloon too large":  {Memory: 1, Balloon: 2},
		"a sum that overflows": {Memory: 1<<63 - 1, Overhead: 1},
		"less than no device": {Constraints: placement.Constraints{Devices: []placement.DeviceAsk{
			{Class: "gpu", Count: -1}}}},
		"a disk that overflows":   {Disk: 1<<63 - 1},
		"more devices than taken": nil,
	} {
		h := withLoad()
		h.Load.Disk = 1
		x := placement.NewIndex(0, h)
		refused := vm != nil && x.Reserve(vm, "n1")
		if vm == nil {
			refused = x.Leave(special("a"), "n1")
		}
		if refused {
			t.Errorf("%s is reserved", name)
		}
	}
}

func TestAnIndexUsesTheFiltersThatItIsGiven(t *testing.T) {
	even := placement.Filter{Name: "even", Refuses: func(
		_ *placement.VM, h *placement.Host, _ placement.Options) bool {
		return h.Name == "n1"
	}, Explain: func(*placement.VM, *placement.Host, placement.Options) (string, string) {
		return "an even host", "an odd one"
	}}
	x := placement.NewIndex(0, empty("n1", 64), empty("n2", 32))
	x.Use(append(placement.Basic(), even)...)
	if host, _ := x.Best(web(), placement.Options{}); host != "n2" {
		t.Errorf("Best = %q", host)
	}
	want := reasons("even", "an even host", "an odd one")
	if diff := cmp.Diff(want, x.Check(web(), "n1", placement.Options{})); diff != "" {
		t.Errorf("Check (-want +got):\n%s", diff)
	}
	counts := []placement.Count{{Check: "even", Hosts: 1}}
	if diff := cmp.Diff(counts, x.Histogram(web(), placement.Options{})); diff != "" {
		t.Errorf("Histogram (-want +got):\n%s", diff)
	}
	if n := len(x.Refusals(web(), placement.Options{})); n != 1 {
		t.Errorf("%d refusals", n)
	}
}

func TestSurveyCountsTheOtherMembers(t *testing.T) {
	a, b, c := empty("a", 1), empty("b", 1), empty("c", 1)
	a.Groups, b.Groups = map[string]int{"g": 2}, map[string]int{"g": 3, "h": 1}
	a.Labels, c.Labels = placement.Labels{"rack": "r"}, placement.Labels{"rack": "r"}
	a.Facts = &placement.Facts{Zone: "z"}
	vm := &placement.VM{Constraints: placement.Constraints{Groups: []placement.GroupRule{
		{Group: "g"}, {Group: "g", Domain: "rack"}}}}
	for _, m := range []*placement.Move{
		placement.CompareHosts(vm, "a", []placement.Host{a, b, c}),
		placement.NewIndex(0, c, b, a).CompareHosts(vm, "a"),
	} {
		want := &placement.Move{Source: a.Facts, Members: map[string]int{"g": 4},
			Domains: map[placement.Domain]int{{Group: "g", Label: "rack", Value: "r"}: 1}}
		if diff := cmp.Diff(want, m, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("CompareHosts (-want +got):\n%s", diff)
		}
	}
	if m := placement.NewIndex(0, a).CompareHosts(&placement.VM{}, "a"); m.Source != a.Facts {
		t.Error("a VM in no group has no source")
	}
}
