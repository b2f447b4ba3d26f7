package plan_test

import (
	"fmt"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/plan"
)

func TestCertificateInWords(t *testing.T) {
	vms, hosts := []hypervisor.VMID{"x", "y"}, []hypervisor.HostName{"a", "b"}
	var many []hypervisor.VMID
	for i := range 20 {
		many = append(many, hypervisor.VMID(fmt.Sprintf("v%d", i)))
	}
	tests := []struct {
		c    plan.Certificate
		want string
	}{
		{plan.Certificate{Kind: plan.Stuck, VMs: vms[:1], Pinned: "a GPU"},
			"x cannot move while it runs: a GPU"},
		{plan.Certificate{Kind: plan.Stuck, VMs: vms[:1]},
			"no other host would take x, even if it were empty"},
		{plan.Certificate{Kind: plan.Stuck, VMs: many}, "none of v0, v1, v2, v3, v4, v5, v6, v7, " +
			"v8, v9, … and 10 more can be the first to move: they wait for each other"},
		{plan.Certificate{Kind: plan.Short, VMs: vms, Hosts: hosts, Resource: plan.Memory,
			Need: 3 << 30, Have: 1 << 30}, "2 VMs need 3GiB of memory together; the hosts " +
			"that they could be on have 1GiB of memory: a, b"},
		{plan.Certificate{Kind: plan.Short, VMs: vms, Hosts: hosts, Resource: plan.CPUs, Unit: 4,
			Need: 2, Have: 1}, "2 VMs need at least 4 CPUs each; the hosts that they could " +
			"be on have room for 1: a, b"},
		{plan.Certificate{Kind: plan.Short, VMs: vms, Resource: plan.Places, Group: "g", Need: 2},
			"2 VMs of group g must be apart; there is no host that they could be on"},
		{plan.Certificate{Kind: plan.Short, VMs: vms, Hosts: hosts, Resource: plan.CPUs,
			Need: 5, Have: 1}, "2 VMs need 5 CPUs together; the hosts that they could be on " +
			"have 1 CPU: a, b"},
		{plan.Certificate{Kind: plan.Short, VMs: vms[:1], Hosts: hosts, Resource: plan.Memory,
			Need: 3 << 30, Have: 1 << 30}, "x needs 3GiB of memory; the hosts that it could " +
			"be on have 1GiB of memory: a, b"},
		{plan.Certificate{Kind: plan.Short, VMs: vms[:1], Hosts: hosts, Resource: plan.CPUs,
			Unit: 1, Need: 1}, "x needs 1 CPU; the hosts that it could be on have room for 0: " +
			"a, b"},
		{plan.Certificate{Kind: plan.Short, VMs: vms[:1], Hosts: hosts, Resource: plan.Places,
			Group: "g", Need: 1}, "x must be apart from others of group g; the hosts that it " +
			"could be on have 0 places: a, b"},
		{plan.Certificate{Kind: plan.Exhausted, States: 7},
			"moves can reach 7 arrangements of the VMs, and in none are the hosts empty"},
		{plan.Certificate{Kind: plan.Exhausted, States: 1},
			"moves can reach 1 arrangement of the VMs, and in none are the hosts empty"},
	}
	for _, tt := range tests {
		if got := tt.c.String(); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}
