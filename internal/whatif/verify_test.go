package whatif_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
)

// smallFleet has three hosts with 8 bytes and 8 CPUs each. On a are x, with 4 bytes, and y,
// with 2, which are to be apart from each other; on b is z, with 6; on c is p, with 2,
// which cannot move.
func smallFleet() *plan.Fleet {
	f := &plan.Fleet{Filters: placement.AllFilters()}
	for _, name := range []hypervisor.HostName{"a", "b", "c"} {
		f.Hosts = append(f.Hosts, placement.Host{Name: name, Memory: 8, CPUs: 8,
			Load: &placement.Load{}})
	}
	add := func(id hypervisor.VMID, home hypervisor.HostName, memory hypervisor.Bytes) *plan.VM {
		f.VMs = append(f.VMs, plan.VM{Home: home,
			VM: placement.VM{ID: id, Memory: memory, CPUs: 1}})
		return &f.VMs[len(f.VMs)-1]
	}
	add("p", "c", 2).Pinned = "a GPU"
	add("x", "a", 4).Constraints.Apart = []string{"g"}
	add("y", "a", 2).Constraints.Apart = []string{"g"}
	add("z", "b", 6)
	return settled(f)
}

// settled registers every VM where it is, and returns the fleet.
func settled(f *plan.Fleet) *plan.Fleet {
	index := placement.NewIndex(0, f.Hosts...)
	for i := range f.VMs {
		if index.Reserve(&f.VMs[i].VM, f.VMs[i].Home) {
			index.Arrive(f.VMs[i].Home)
		}
	}
	f.Hosts = slices.Clone(index.Hosts())
	return f
}

func TestMoves(t *testing.T) {
	x := plan.Move{VM: "x", Source: "a", Target: "c"}
	y := plan.Move{VM: "y", Source: "a", Target: "b"}
	z := plan.Move{VM: "z", Source: "b", Target: "c"}
	tests := []struct {
		name  string
		waves []plan.Wave
		want  string // in the error
	}{
		{"nothing", nil, ""},
		{"two moves at once", []plan.Wave{{x, y}}, ""},
		{"one after the other", []plan.Wave{{y}, {x}}, ""},
		{"a full host", []plan.Wave{{x}, {z}}, "memory needs 6B has 2B"},
		{"room that is free only when another has left", []plan.Wave{{z}, {x}, {y}}, "memory"},
		{"two that are to be apart, on their way at once",
			[]plan.Wave{{x, {VM: "y", Source: "a", Target: "c"}}}, "apart"},
		{"a VM that cannot move", []plan.Wave{{{VM: "p", Source: "c", Target: "a"}}}, "is no move"},
		{"a VM that is not there", []plan.Wave{{{VM: "q", Source: "a", Target: "b"}}},
			"is no move"},
		{"a host that is not there", []plan.Wave{{{VM: "x", Source: "a", Target: "d"}}},
			"is no move"},
		{"from where it is not", []plan.Wave{{{VM: "x", Source: "b", Target: "c"}}}, "is no move"},
		{"from where it was", []plan.Wave{{x}, {x}}, "wave 2"},
		{"twice in a wave", []plan.Wave{{x, {VM: "x", Source: "a", Target: "b"}}}, "is no move"},
		{"to where it is", []plan.Wave{{{VM: "x", Source: "a", Target: "a"}}}, "source"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			check(t, whatif.CheckMoves(smallFleet(), tt.waves), tt.want)
		})
	}
}

func check(t *testing.T, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q in it", err, want)
	}
}

func TestEmpties(t *testing.T) {
	x := plan.Move{VM: "x", Source: "a", Target: "c"}
	a := []hypervisor.HostName{"a"}
	check(t, whatif.CheckEmpties(smallFleet(), []plan.Wave{{x}}, a), "y is on a at the end")
	check(t, whatif.CheckEmpties(smallFleet(), []plan.Wave{{x, {VM: "y", Source: "a", Target: "b"}}}, a), "")
	check(t, whatif.CheckEmpties(smallFleet(), nil, []hypervisor.HostName{"b"}), "z is on b at the end")
}

// TestCompanyMayNotMoveMeanwhile: who asks for the company of a VM may come before or
// after it has moved, not while it does.
func TestCompanyMayNotMoveMeanwhile(t *testing.T) {
	f := smallFleet()
	f.VMs[1].Constraints = placement.Constraints{With: []hypervisor.VMID{"p", "y"}}
	f.Hosts = fleetHosts(f)
	x := plan.Move{VM: "x", Source: "a", Target: "c"}
	y := plan.Move{VM: "y", Source: "a", Target: "b"}
	check(t, whatif.CheckMoves(f, []plan.Wave{{x, y}}), "asks to be with y")
	check(t, whatif.CheckMoves(f, []plan.Wave{{x}, {y}}), "")
}

// fleetHosts counts the VMs again after their constraints have changed.
func fleetHosts(f *plan.Fleet) []placement.Host {
	g := smallFleet()
	for i := range g.Hosts {
		h := &g.Hosts[i]
		h.UsedMemory, h.UsedCPUs, h.Groups, h.Load = 0, 0, nil, &placement.Load{}
	}
	g.VMs = f.VMs
	return settled(g).Hosts
}

func stuckProof(vms ...hypervisor.VMID) plan.Certificate {
	return plan.Certificate{Kind: plan.Stuck, VMs: vms}
}

func TestCertificate(t *testing.T) {
	short := plan.Certificate{Kind: plan.Short, Resource: plan.Memory, Need: 12, Have: 6,
		VMs: []hypervisor.VMID{"x", "y", "z"}, Hosts: []hypervisor.HostName{"c"}}
	changed := func(how func(*plan.Certificate)) plan.Certificate {
		c := short
		how(&c)
		return c
	}
	tests := []struct {
		name  string
		hosts string
		c     plan.Certificate
		want  string
	}{
		{"a VM that cannot move", "c", stuckProof("p"), ""},
		{"and need not leave", "a", stuckProof("p"), "must leave"},
		{"for a wrong reason", "c", plan.Certificate{Kind: plan.Stuck,
			VMs: []hypervisor.VMID{"p"}, Pinned: "a NIC"}, "is not pinned because"},
		{"a VM that could move if others did", "b", stuckProof("z"), "z could move to"},
		{"nowhere to go", "abc", stuckProof("x"), ""},
		{"two that do not wait for each other", "b", stuckProof("x", "z"), "could move"},
		{"too little memory on the only host left", "ab", short, ""},
		{"a host that they could be on is left out", "a", short, "could be on"},
		{"a VM counts twice", "ab", changed(func(c *plan.Certificate) {
			c.VMs = []hypervisor.VMID{"x", "x", "z"}
		}), "x does not count"},
		{"a VM that cannot move counts", "ab", changed(func(c *plan.Certificate) {
			c.VMs = []hypervisor.VMID{"p", "x"}
		}), "p does not count"},
		{"enough for some", "ab", changed(func(c *plan.Certificate) {
			c.VMs, c.Need = []hypervisor.VMID{"x", "y"}, 6
		}), "they need 6, there are 6"},
		{"wrong numbers", "ab", changed(func(c *plan.Certificate) { c.Have = 5 }), "there are 6"},
		{"units", "ab", changed(func(c *plan.Certificate) {
			c.Unit, c.VMs, c.Need, c.Have = 4, []hypervisor.VMID{"x", "z"}, 2, 1
		}), ""},
		{"a VM below the unit", "ab", changed(func(c *plan.Certificate) {
			c.Unit, c.Need, c.Have = 4, 3, 1
		}), "y does not count"},
		{"CPUs suffice", "ab", changed(func(c *plan.Certificate) {
			c.Resource, c.Need, c.Have = plan.CPUs, 3, 7
		}), "they need 3, there are 7"},
		{"places for those to be apart", "ab", changed(func(c *plan.Certificate) {
			c.Resource, c.Group, c.VMs = plan.Places, "g", []hypervisor.VMID{"x", "y"}
			c.Need, c.Have = 2, 1
		}), ""},
		{"one that need not be apart", "ab", changed(func(c *plan.Certificate) {
			c.Resource, c.Group = plan.Places, "g"
		}), "z does not count"},
		{"an unknown resource", "ab", changed(func(c *plan.Certificate) {
			c.Resource = "luck"
		}), "x does not count"},
		{"every arrangement", "ab", plan.Certificate{Kind: plan.Exhausted, States: 4}, ""},
		{"another number of them", "ab", plan.Certificate{Kind: plan.Exhausted, States: 2},
			"4 arrangements can be reached, not 2"},
		{"one of them has it empty", "a", plan.Certificate{Kind: plan.Exhausted, States: 3},
			"0 VMs are left"},
		{"an unknown kind", "a", plan.Certificate{Kind: "oracle"}, "not known"},
		{"an unknown VM", "a", stuckProof("q"), "there is no VM q"},
		{"an unknown host", "d", stuckProof("p"), "there is no host d"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			check(t, whatif.CheckCertificate(smallFleet(), letters(tt.hosts), &tt.c), tt.want)
		})
	}
}

// letters returns the hosts that a text names, each with one letter.
func letters(text string) (hosts []hypervisor.HostName) {
	for _, name := range text {
		hosts = append(hosts, hypervisor.HostName(name))
	}
	return hosts
}

// TestWhoCannotMoveKeepsItsPlace: it counts against the places of its group.
func TestWhoCannotMoveKeepsItsPlace(t *testing.T) {
	f := smallFleet()
	f.VMs[0].Constraints.Apart = []string{"g"}
	f.Hosts = fleetHosts(f)
	c := plan.Certificate{Kind: plan.Short, Resource: plan.Places, Group: "g", Need: 2,
		VMs: []hypervisor.VMID{"x", "y"}, Hosts: []hypervisor.HostName{"c"}}
	check(t, whatif.CheckCertificate(f, letters("ab"), &c), "")
	c.Have = 1
	check(t, whatif.CheckCertificate(f, letters("ab"), &c), "there are 0")
}

// TestCertificateNeedsItsCondition: nothing runs out that no condition looks at.
func TestCertificateNeedsItsCondition(t *testing.T) {
	f := smallFleet()
	f.Filters = []placement.Filter{placement.Basic()[0]}
	c := plan.Certificate{Kind: plan.Short, Resource: plan.Memory, Need: 12, Have: 6,
		VMs: []hypervisor.VMID{"x", "y", "z"}, Hosts: []hypervisor.HostName{"c"}}
	check(t, whatif.CheckCertificate(f, []hypervisor.HostName{"a", "b"}, &c),
		"no condition of the fleet is called memory")
}

// TestExhaustionIsNoProofWithCells: in which cells a VM sits depends on the way taken.
func TestExhaustionIsNoProofWithCells(t *testing.T) {
	f := smallFleet()
	f.VMs[1].Constraints.Topology = &placement.TopologyRequest{}
	check(t, whatif.CheckCertificate(f, []hypervisor.HostName{"a", "b"},
		&plan.Certificate{Kind: plan.Exhausted, States: 3}), "asks for cells")
}
