package placement_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

func find(hosts []placement.Host, name hypervisor.HostName) *placement.Host {
	i := slices.IndexFunc(hosts, func(h placement.Host) bool { return h.Name == name })
	return &hosts[i]
}

// forbidden says in its own words what the hard constraints forbid, for any caller.
func forbidden(r *placement.Request, h *placement.Host, from *placement.Facts) string {
	f, p := h.Facts, r.VM.Constraints.Platform
	if f == nil {
		f = &placement.Facts{}
	}
	cpu := f.CPU
	if cpu == nil {
		cpu = &placement.CPU{}
	}
	missing := func(wants, haves []string) bool {
		return slices.ContainsFunc(wants, func(w string) bool { return !slices.Contains(haves, w) })
	}
	switch {
	case h.Down:
		return "the host is down"
	case h.Name == r.Source:
		return "the VM is there"
	case r.VM.Demand() > 0 && f.Memory.Total == 0 && r.VM.Demand() > h.Memory,
		f.Memory.Total > 0 && int64(r.VM.Demand()) > f.Memory.Gross():
		return "the memory does not exist"
	case p.Arch != "" && p.Arch != cpu.Arch, missing(p.CPUFeatures, cpu.Features):
		return "another processor"
	case p.Machine != "" && missing([]string{p.Machine}, f.Machines):
		return "an unknown machine type"
	case missing(r.VM.Constraints.Networks, f.Networks):
		return "a network out of reach"
	}
	for _, d := range r.VM.Constraints.Devices {
		if d.Count > h.FreeDevices(d.Class) || d.Stays && d.Count > 0 && !r.Rebuild {
			return "a device"
		}
	}
	if from != nil && from.CPU != nil && f.CPU != nil && !r.Rebuild && p.CPUModel == "" && p.HostModel == "" &&
		len(from.CPU.Features) > 0 && len(cpu.Features) > 0 &&
		missing(from.CPU.Features, cpu.Features) {
		return "an older processor"
	}
	return ""
}

// TestPhysicsIsNeverOverruled: no decision, forced, bypassed or chosen, has a
// target where the VM would not run.
func TestPhysicsIsNeverOverruled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts, vm := chooseDrawHosts(t), chooseDrawVM(t)
		r := drawRequest(t, vm, hosts)
		d := placement.Decide(&placement.Config{}, r, hosts)
		if (d.Outcome == placement.Accepted) != (d.Host != "" && d.Code == "" && len(d.Why) == 0) {
			t.Fatalf("contradictory decision %+v", d)
		}
		if d.Outcome != placement.Accepted {
			if len(d.Why) == 0 {
				t.Fatalf("refused without a reason: %+v", d)
			}
			return
		}
		if why := forbidden(r, find(hosts, d.Host), hosts[0].Facts); why != "" {
			t.Fatalf("%s was accepted: %s", d.Host, why)
		}
	})
}

// TestForceIsMonotone: force never refuses what the check accepts, its debts are
// what the check refuses for, and whatever was named is the target.
func TestForceIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts, vm := chooseDrawHosts(t), chooseDrawVM(t)
		r := drawRequest(t, vm, hosts)
		r.Host = rapid.SampledFrom(hosts).Draw(t, "named host").Name
		r.Force = placement.No
		checked := placement.Decide(&placement.Config{}, r, hosts)
		r.Force = placement.Yes
		forced := placement.Decide(&placement.Config{}, r, hosts)
		if checked.Outcome == placement.Accepted &&
			(forced.Outcome != placement.Accepted || len(forced.Debts) > 0) {
			t.Fatalf("accepted, and with force %+v", forced)
		}
		var debts []placement.Reason
		for _, debt := range forced.Debts {
			debts = append(debts, debt.Reason)
		}
		if forced.Outcome == placement.Accepted {
			if diff := cmp.Diff(checked.Why, debts, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("debts (-refused for +recorded):\n%s", diff)
			}
			if forced.Host != r.Host || forced.Action == "" {
				t.Fatalf("forced to %s: %+v", r.Host, forced)
			}
		}
	})
}

// TestTheChoiceIsTheBestOfThoseThatTakeTheVM compares with asking every host by
// every filter, which also tests the shortcuts: idle filters and shared facts.
func TestTheChoiceIsTheBestOfThoseThatTakeTheVM(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts, vm := chooseDrawHosts(t), chooseDrawVM(t)
		for i := range hosts[1:] { // neighbours and others may share facts
			if seldom(t, "shares") {
				hosts[i+1].Facts = hosts[i].Facts
			}
		}
		r := drawRequest(t, vm, hosts)
		r.Host, r.Force = "", placement.No
		o := placement.Options{Source: r.Source, Inbound: r.Inbound, Avoid: r.Avoid,
			Move: placement.CompareHosts(vm, r.Source, hosts)}
		o.Move.Rebuild = r.Rebuild
		var at []int
		for i := range hosts {
			why := placement.CheckAll(placement.AllFilters(), vm, &hosts[i], o)
			if len(why) == 0 && !slices.Contains(r.Ignored, hosts[i].Name) {
				at = append(at, i)
			}
			if len(why) == 0 != placement.FitsAll(placement.AllFilters(), vm, &hosts[i], o) {
				t.Fatalf("FitsAll contradicts %v", why)
			}
		}
		var want hypervisor.HostName
		if ranked := placement.Rank(placement.Spread(), vm, hosts, at, o); len(ranked) > 0 {
			want = ranked[0].Host
		}
		if d := placement.Decide(&placement.Config{}, r, hosts); d.Host != want {
			t.Fatalf("chose %q, the best is %q", d.Host, want)
		}
	})
}

// TestOrderIsIrrelevant: of filters and of hosts.
func TestOrderIsIrrelevant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts, vm := chooseDrawHosts(t), chooseDrawVM(t)
		r := drawRequest(t, vm, hosts)
		one := placement.Explain(&placement.Config{}, r, hosts)
		c := &placement.Config{Filters: rapid.Permutation(placement.AllFilters()).Draw(t, "filters")}
		other := placement.Explain(c, r, rapid.Permutation(hosts).Draw(t, "hosts"))
		sorted := cmpopts.SortSlices(func(a, b placement.Reason) bool { return a.Check < b.Check })
		debts := cmpopts.SortSlices(func(a, b placement.PolicyViolation) bool { return a.Check < b.Check })
		scores := cmpopts.EquateApprox(0, 1e-9)
		if diff := cmp.Diff(one, other, sorted, debts, scores); diff != "" {
			t.Fatalf("in another order (-one +other):\n%s", diff)
		}
	})
}

// TestMovesNeverOverbook: requests are decided, forced or not, and reserved; no
// host ever gives away more memory, disk or devices than it has.
func TestMovesNeverOverbook(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts := chooseDrawHosts(t)
		for i := range hosts {
			h := &hosts[i]
			h.Groups, h.UsedMemory, h.UsedCPUs = nil, 0, 0
			h.Load = &placement.Load{}
			if h.Facts != nil && h.Facts.Memory.Total > 0 {
				h.Memory = hypervisor.Bytes(h.Facts.Memory.Capacity())
			}
		}
		x := placement.NewIndex(0, hosts...)
		for n := range 6 {
			vm := chooseDrawVM(t)
			vm.ID = hypervisor.VMID(rune('a' + n))
			r := drawRequest(t, vm, hosts)
			r.Source = ""
			d := placement.Decide(&placement.Config{}, r, x.Hosts())
			if d.Outcome == placement.Accepted && !x.Reserve(vm, d.Host) {
				t.Fatalf("the index refuses %s on %s", vm.ID, d.Host)
			}
		}
		for _, h := range x.Hosts() {
			most := h.Memory
			if h.Facts != nil && h.Facts.Memory.Total > 0 {
				most = hypervisor.Bytes(h.Facts.Memory.Gross())
			}
			if h.UsedMemory > most {
				t.Fatalf("%s gives away %v of %v", h.Name, h.UsedMemory, most)
			}
			if h.FreeDevices("gpu") < 0 {
				t.Fatalf("%s gives away devices twice", h.Name)
			}
		}
	})
}

// TestANearestMissIsTrue: with what it says is missing the host takes the VM,
// and so it does without the VM that it names.
func TestANearestMissIsTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts, vm := chooseDrawHosts(t), chooseDrawVM(t)
		r := drawRequest(t, vm, hosts)
		r.Host, r.Force = "", placement.No
		for _, m := range placement.Explain(&placement.Config{}, r, hosts).Nearest {
			if m.String() == "" {
				t.Fatal("a miss says nothing")
			}
			r.Host = m.Host
			h := find(hosts, m.Host)
			without := slices.Clone(hosts)
			if m.Moved != "" {
				held := h.Load.Held[m.Moved].VM
				*find(without, m.Host), _ = h.Without(held, false)
				if d := placement.Decide(&placement.Config{}, r, without); d.Outcome != placement.Accepted {
					t.Fatalf("%v, and without it %+v", m, d)
				}
			}
			larger := slices.Clone(hosts)
			*find(larger, m.Host) = placement.Shortage{Memory: m.Memory, CPUs: m.CPUs,
				Disk: m.Disk}.Added(h)
			d := placement.Decide(&placement.Config{}, r, larger)
			if diff := cmp.Diff(m.Unless, d.Why, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("%v (-unless +refused with more):\n%s", m, diff)
			}
			r.Host = ""
		}
	})
}

// TestALargerHostNeverRefusesForCapacity what a smaller one accepts.
func TestALargerHostNeverRefusesForCapacity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm, small := chooseDrawVM(t), chooseDrawHost(t, "n1")
		large := small.Clone()
		large.Memory += amount(t, "more memory", 3)
		large.CPUs += few(t, "more CPUs", 3)
		if small.Facts != nil {
			f := *small.Facts
			f.Memory.Total += int64(amount(t, "more total", 3))
			f.Disk.Total += int64(amount(t, "more disk", 3))
			if f.Disk.Total > 0 && small.Facts.Disk.Total == 0 {
				f.Disk.Total = 0 // to learn a size is not to grow
			}
			if small.Facts.Memory.Total == 0 {
				f.Memory.Total = 0
			}
			f.MaxVMs, f.MaxBusy = more(t, f.MaxVMs), more(t, f.MaxBusy)
			large.Facts = &f
		}
		o := placement.Options{Move: &placement.Move{}}
		had := map[string]bool{}
		for _, r := range placement.CheckAll(placement.AllFilters(), vm, &small, o) {
			had[r.Check] = true
		}
		for _, r := range placement.CheckAll(placement.AllFilters(), vm, &large, o) {
			if !had[r.Check] {
				t.Fatalf("the larger host refuses: %v", r)
			}
		}
	})
}

// more returns a limit that is no stricter; 0 is none.
func more(t *rapid.T, limit int) int {
	if limit == 0 {
		return 0
	}
	return limit + few(t, "more", 2)
}

// TestConfirmAcceptsWhatWasReserved: alone, a decision is still one under its own
// reservation.
func TestConfirmAcceptsWhatWasReserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts, vm := chooseDrawHosts(t), chooseDrawVM(t)
		r := drawRequest(t, vm, hosts)
		d := placement.Decide(&placement.Config{}, r, hosts)
		if d.Outcome != placement.Accepted {
			return // most have a host; others are other properties' business
		}
		x := placement.NewIndex(0, hosts...)
		if !x.Reserve(vm, d.Host) {
			t.Fatal("the index refuses")
		}
		h, _ := x.Get(d.Host)
		if why := placement.Confirm(&placement.Config{}, r, &h, x.Hosts()); len(why) > 0 {
			t.Fatalf("decided on %s, and under the reservation refused: %v", d.Host, why)
		}
	})
}

// TestFilterMarksAreTrue: an idle filter refuses no host, and one of facts
// answers alike for hosts that share them.
func TestFilterMarksAreTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm, a, b := chooseDrawVM(t), chooseDrawHost(t, "n1"), chooseDrawHost(t, "n2")
		b.Facts = a.Facts
		o := placement.Options{Source: "n0", Move: &placement.Move{Source: drawFacts(t),
			Rebuild: seldom(t, "rebuild")}}
		for _, f := range placement.AllFilters() {
			if f.Idle != nil && f.Idle(vm, o) && f.Refuses(vm, &a, o) {
				t.Fatalf("%s is idle and refuses", f.Name)
			}
			if f.OfFacts && f.Refuses(vm, &a, o) != f.Refuses(vm, &b, o) {
				t.Fatalf("%s does not look at facts alone", f.Name)
			}
		}
	})
}

// TestDecisionsAreStored: every word of an explanation survives a store.
func TestDecisionsAreStored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts, vm := chooseDrawHosts(t), chooseDrawVM(t)
		e := placement.Explain(&placement.Config{}, drawRequest(t, vm, hosts), hosts)
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var back placement.Explanation
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, back, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("read back (-want +got):\n%s", diff)
		}
	})
}

func TestForceIsThreeValued(t *testing.T) {
	yes, no := true, false
	for _, row := range []struct {
		flag *bool
		want placement.Force
	}{{nil, placement.Absent}, {&no, placement.No}, {&yes, placement.Yes}} {
		got := placement.ForceOf(row.flag)
		text, err := json.Marshal(got)
		var back placement.Force
		if err != nil || json.Unmarshal(text, &back) != nil || back != row.want || got != row.want {
			t.Errorf("%v is %v and reads back as %v", row.flag, got, back)
		}
	}
	if err := new(placement.Force).UnmarshalText([]byte("maybe")); err == nil {
		t.Error("maybe is a force")
	}
	d := placement.Decide(&placement.Config{}, &placement.Request{}, nil)
	if d.Outcome != placement.BadRequest {
		t.Errorf("no VM: %+v", d)
	}
	d = placement.Decide(&placement.Config{}, &placement.Request{VM: &placement.VM{}}, nil)
	if d.Outcome != placement.NoHost {
		t.Errorf("no hosts: %+v", d)
	}
}
