package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
)

// fleet returns hosts of 10 GiB, called a, b, c and so on, with VMs of so many GiB each.
func fleet(hosts ...[]int) *plan.Fleet {
	f := &plan.Fleet{}
	for i, sizes := range hosts {
		h := placement.Host{Name: hypervisor.HostName(rune('a' + i)), Memory: 10 * gib, CPUs: 100,
			Load: &placement.Load{}}
		for n, size := range sizes {
			v := plan.VM{Home: h.Name, VM: placement.VM{CPUs: 1,
				Memory: hypervisor.Bytes(size) * gib,
				ID:     hypervisor.VMID(string(h.Name) + string(rune('0'+n)))}}
			h, _ = h.With(&v.VM)
			h.Incoming = 0
			f.VMs = append(f.VMs, v)
		}
		f.Hosts = append(f.Hosts, h)
	}
	return f
}

func TestBadRequests(t *testing.T) {
	type request = plan.Request
	full := fleet([]int{4}, []int{4}, nil)
	full.Hosts[2].Down = true
	tests := []struct {
		r    request
		want string
	}{
		{request{Fleet: full, Hosts: []hypervisor.HostName{"x"}}, `no host "x" among 3`},
		{request{Fleet: full, Hosts: []hypervisor.HostName{"a", "a"}}, "a is named twice"},
		{request{Fleet: full, Hosts: []hypervisor.HostName{"c"}}, "c is down"},
		{request{Fleet: full}, "no host is to be serviced"},
		{request{Fleet: &plan.Fleet{}}, "the fleet has no hosts"},
		{request{Fleet: full, Hosts: []hypervisor.HostName{"a"}, Keep: 2}, "2 hosts up; "},
		{request{Fleet: full, Hosts: []hypervisor.HostName{"a"}, Keep: -1}, "negative"},
		{request{Fleet: full, Hosts: []hypervisor.HostName{"a"}, Fill: 101}, "101 % full"},
	}
	for _, tt := range tests {
		if err := tt.r.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %s", tt.r, err, tt.want)
		}
	}
}

// TestOneMoveEach: VMs go where no service is needed any more, so that only those of the
// first batch move twice, and with a spare host none does. The fleet stays as it is.
func TestOneMoveEach(t *testing.T) {
	f := fleet([]int{4, 4}, []int{4, 4}, []int{4, 4}, nil)
	before := slices.Clone(f.Hosts)
	a := plan.Maintenance(&plan.Request{Fleet: f,
		Hosts: []hypervisor.HostName{"c", "a", "b"}})
	if len(a.Batches) != 3 || a.Moves != 6 || a.VMs != 6 || a.Most != 1 || a.Least != 3 ||
		len(a.Obstacles) != 0 {
		t.Errorf("%+v", a)
	}
	if diff := cmp.Diff(before, f.Hosts); diff != "" {
		t.Errorf("the fleet has changed:\n%s", diff)
	}
}

// TestHeadroom: hosts stay within the fill if that is possible, and not otherwise.
func TestHeadroom(t *testing.T) {
	for _, tt := range []struct {
		f       *plan.Fleet
		batches int
		fullest int
	}{
		{fleet([]int{3}, []int{3}, []int{3}, []int{3}), 2, 90}, // three would fit, 100 % full
		{fleet([]int{5}, []int{5}, []int{5}), 3, 100},
	} {
		r := plan.Request{Fleet: tt.f, Service: 1}
		for _, h := range tt.f.Hosts {
			r.Hosts = append(r.Hosts, h.Name)
		}
		a, fullest := plan.Maintenance(&r), 0
		for _, b := range a.Batches {
			fullest = max(fullest, b.Fill)
		}
		if len(a.Batches) != tt.batches || fullest > tt.fullest || len(a.Obstacles) > 0 {
			t.Errorf("%d batches, %d %% full: %+v", len(a.Batches), fullest, a)
		}
	}
}

// TestParking: two VMs that have each other's place come home by way of a third host.
func TestParking(t *testing.T) {
	before := fleet([]int{7}, []int{6}, nil)
	now := moved(before, []plan.Move{{VM: "a0", Source: "a", Target: "c"},
		{VM: "b0", Source: "b", Target: "a"}, {VM: "a0", Source: "c", Target: "b"}})
	r := plan.PlanReturn(now, before)
	want := plan.Wave{{VM: "b0", Source: "a", Target: "c"}, {VM: "a0", Source: "b", Target: "a"},
		{VM: "b0", Source: "c", Target: "b"}}
	if diff := cmp.Diff(want, slices.Concat(r.Waves...)); diff != "" {
		t.Errorf("moves (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]hypervisor.VMID{"b0"}, r.Parked); diff != "" {
		t.Errorf("parked (-want +got):\n%s", diff)
	}
	if err := whatif.CheckMoves(now, r.Waves); err != nil {
		t.Error(err)
	}
	now.Hosts[2].Cordoned = true // nowhere to park
	if r := plan.PlanReturn(now, before); len(r.Left) != 2 || !r.Proven || r.Moves != 0 {
		t.Errorf("without a third host: %+v", r)
	}
}
