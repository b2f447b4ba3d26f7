package controller_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

var (
	someHosts = []hypervisor.HostName{"n1", "n2", "n3", "n4"}
	someVMs   = []hypervisor.VMID{"a", "b", "c", "d", "e"}
)

func drawHost(t *rapid.T, name hypervisor.HostName) (*store.Host, bool) {
	h := &store.Host{Host: hypervisor.Host{Name: name, CPUs: rapid.IntRange(1, 16).Draw(t, "cpus"),
		Memory: hypervisor.Bytes(rapid.IntRange(1, 32).Draw(t, "memory")) * gib},
		NotReady: rapid.IntRange(0, 9).Draw(t, "lost") == 0}
	if rapid.Bool().Draw(t, "labelled") {
		h.Labels = placement.Labels{"rack": rapid.SampledFrom([]string{"r1", "r2"}).Draw(t, "rack")}
	}
	switch rapid.IntRange(0, 2).Draw(t, "facts") {
	case 1:
		h.Facts = &placement.Facts{Link: 1e9, CPUs: placement.DeviceInventory{Total: int64(h.Host.CPUs)},
			Memory: placement.DeviceInventory{Total: int64(h.Host.Memory), Ratio: 1}}
	case 2:
		zones := rapid.SampledFrom([]string{"", "z1", "z2"})
		h.Facts = &placement.Facts{Zone: zones.Draw(t, "zone"),
			MaxVMs:  rapid.IntRange(0, 4).Draw(t, "most VMs"),
			Devices: placement.Devices{{Class: "gpu", Count: rapid.IntRange(0, 2).Draw(t, "gpus")}}}
	}
	return h, rapid.IntRange(0, 9).Draw(t, "closed") == 0
}

func drawVM(t *rapid.T, id hypervisor.VMID) *placement.VM {
	size := hypervisor.Bytes(rapid.IntRange(1, 8).Draw(t, "size"))
	vm := &placement.VM{ID: id, Memory: gib * size, CPUs: rapid.IntRange(0, 4).Draw(t, "vcpus")}
	c := &vm.Constraints
	c.Tenant = rapid.SampledFrom([]string{"", "t1"}).Draw(t, "tenant")
	switch rapid.IntRange(0, 7).Draw(t, "asks for") {
	case 0:
		c.Zones = []string{"z1"}
	case 1:
		c.Devices = []placement.DeviceAsk{{Class: "gpu", Count: 1}}
	case 2:
		c.Apart = []string{"db"}
	case 3:
		c.Groups = []placement.GroupRule{{Group: "db", Policy: placement.AntiAffinity,
			Domain: "rack"}}
	case 4:
		c.Groups = []placement.GroupRule{{Group: "db", Policy: placement.SoftAntiAffinity}}
	case 5:
		c.Without = []hypervisor.VMID{"a"}
	}
	return vm
}

func drawStanding(t *rapid.T, id hypervisor.VMID) controller.Usage {
	s := controller.Usage{VM: drawVM(t, id)}
	hosts := rapid.SampledFrom(someHosts)
	if rapid.IntRange(0, 5).Draw(t, "homeless") > 0 {
		s.Home = hosts.Draw(t, "home")
	}
	if rapid.Bool().Draw(t, "moves") {
		s.Moves = []controller.Move{{ID: hypervisor.JobID(id) + "#1", Target: hosts.Draw(t, "target")}}
	}
	return s
}

// drawNext goes on from what a VM holds: its move begins, lasts longer, lands, brings it
// home, fails, or gives way to another; or it is as if the VM were another.
func drawNext(t *rapid.T, id hypervisor.VMID, s controller.Usage) controller.Usage {
	s.Moves = slices.Clone(s.Moves)
	what := rapid.IntRange(0, 5).Draw(t, "what comes next")
	hosts := rapid.SampledFrom(someHosts)
	switch {
	case s.VM == nil || what == 0:
		return drawStanding(t, id)
	case len(s.Moves) == 0:
		s.Moves = []controller.Move{{ID: hypervisor.JobID(id) + "#1", Target: hosts.Draw(t, "target")}}
	case what == 1:
		s.Moves[0].Deadline = time.Unix(rapid.Int64Range(1, 9).Draw(t, "until"), 0)
	case what == 2:
		s.Moves[0].Landed = true
	case what == 3 && s.Moves[0].Landed:
		s.Home, s.Moves = s.Moves[0].Target, nil
	case what == 4:
		s.Moves[0] = controller.Move{ID: hypervisor.JobID(id) + "#2", Target: hosts.Draw(t, "target")}
	default:
		s.Moves = nil
	}
	return s
}

// The index answers what a look at every host answers.
func TestTheFastAnswerIsTheSlowOne(t *testing.T) {
	fast := 0
	rapid.Check(t, func(t *rapid.T) {
		c := controller.ReservationsConfig{Inbound: rapid.IntRange(0, 2).Draw(t, "inbound")}
		quick := controller.NewReservations(c)
		c.Placement.Filters = placement.AllFilters()
		slow := controller.NewReservations(c)
		for _, name := range someHosts {
			h, closed := drawHost(t, name)
			quick.Host(h, closed)
			slow.Host(h, closed)
		}
		for _, id := range someVMs {
			s := drawStanding(t, id)
			quick.Say(id, s)
			slow.Say(id, s)
		}
		r := placement.Request{VM: drawVM(t, "new"),
			Source: rapid.SampledFrom(someHosts).Draw(t, "from")}
		if rapid.Bool().Draw(t, "failed before") {
			r.Avoid = []hypervisor.HostName{"n2"}
		}
		again := r
		got, want := quick.Decide(&r), slow.Decide(&again)
		if got.Outcome != want.Outcome || got.Host != want.Host {
			t.Fatalf("fast %s %q, slow %s %q for %+v", got.Outcome, got.Host, want.Outcome,
				want.Host, r.VM)
		}
		if got.Outcome == placement.Accepted {
			fast++
		}
		if rapid.Bool().Draw(t, "named") {
			r.Host, r.Force = rapid.SampledFrom(someHosts).Draw(t, "to"), placement.No
		}
		to := rapid.SampledFrom(someHosts).Draw(t, "target")
		for _, b := range []*controller.Reservations{quick, slow} {
			b.Say("new", controller.Usage{VM: r.VM, Moves: []controller.Move{{ID: "new#1", Target: to}}})
		}
		again = r
		if got, want := quick.Confirm(&r, to), slow.Confirm(&again, to); !cmp.Equal(want, got) {
			t.Fatalf("fast %v, slow %v for %+v on %s", got, want, r.VM, to)
		}
	})
	if fast == 0 {
		t.Error("no request was ever accepted")
	}
}

// About a host that was asked for, known or not, the reservations decide as if they looked at all.
func TestAHostThatWasAskedForIsDecidedAboutAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := controller.NewReservations(controller.ReservationsConfig{})
		for _, name := range someHosts {
			b.Host(drawHost(t, name))
		}
		for _, id := range someVMs {
			b.Say(id, drawStanding(t, id))
		}
		hosts := rapid.SampledFrom(append(someHosts, "nowhere"))
		r := placement.Request{VM: drawVM(t, "new"), Host: hosts.Draw(t, "to"),
			Source: hosts.Draw(t, "from"), Compat: rapid.Bool().Draw(t, "compat"),
			Force: rapid.SampledFrom([]placement.Force{placement.Absent, placement.No,
				placement.Yes}).Draw(t, "force")}
		if rapid.Bool().Draw(t, "ignores one") {
			r.Ignored = []hypervisor.HostName{hosts.Draw(t, "ignored")}
		}
		again, got := r, b.Decide(&r)
		var all []placement.Host
		for _, name := range someHosts {
			h, _ := b.Get(name)
			all = append(all, h)
		}
		config := placement.Config{Filters: placement.AllFilters()}
		if want := placement.Decide(&config, &again, all); !cmp.Equal(want, got) {
			t.Fatalf("alone %+v, among all %+v, for %+v", got, want, r)
		}
	})
}

// What is reserved follows from what was said last, whatever was said before and in
// whatever order, and the ledger holds of each host what the index counts.
func TestTheBooksFollowFromWhatWasSaidLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := controller.ReservationsConfig{}
		if rapid.Bool().Draw(t, "quotas") {
			c.Quotas = map[string]placement.Amount{"t1": {Memory: gib}}
		}
		kept := controller.NewReservations(c)
		hosts := map[hypervisor.HostName]*store.Host{}
		stands := map[hypervisor.VMID]controller.Usage{}
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			if rapid.IntRange(0, 3).Draw(t, "a host") == 0 {
				h, _ := drawHost(t, rapid.SampledFrom(someHosts).Draw(t, "host"))
				hosts[h.Host.Name] = h
				kept.Host(h, false)
				continue
			}
			id := rapid.SampledFrom(someVMs).Draw(t, "vm")
			stands[id] = drawNext(t, id, stands[id])
			kept.Say(id, stands[id])
			if m := stands[id].Moves; len(m) > 0 && rapid.Bool().Draw(t, "extended") {
				m[0].Deadline = time.Unix(rapid.Int64Range(1, 9).Draw(t, "to"), 0)
				kept.Prolong(id, m[0].ID, m[0].Deadline)
			}
		}
		fresh := controller.NewReservations(controller.ReservationsConfig{})
		for _, id := range rapid.Permutation(someVMs).Draw(t, "order") {
			fresh.Say(id, stands[id])
		}
		for _, h := range hosts {
			fresh.Host(h, false)
		}
		if diff := cmp.Diff(fresh.Claims(), kept.Claims()); diff != "" {
			t.Fatalf("claims (-fresh +kept):\n%s", diff)
		}
		for _, name := range someHosts {
			a, _ := fresh.Get(name)
			b, _ := kept.Get(name)
			a.Name, b.Name = name, name // one that no record has named
			if a.Memory == 0 {
				a.Down, b.Down = true, true
			}
			// A host that says more than its size makes the reservations keep more for good.
			a.Load, b.Load = nil, nil
			if diff := cmp.Diff(a, b); diff != "" {
				t.Fatalf("%s (-fresh +kept):\n%s", name, diff)
			}
			if home := claimed(kept, name); home != b.UsedMemory && !counted(stands) {
				t.Fatalf("%s: %v is claimed, %v is used", name, home, b.UsedMemory)
			}
		}
	})
}

// counted reports whether the index counts a VM where the ledger does not: one that moves to
// where it is, which no ledger takes, or one that has landed and is still at home elsewhere.
func counted(stands map[hypervisor.VMID]controller.Usage) bool {
	for _, s := range stands {
		if len(s.Moves) > 0 && (s.Moves[0].Target == s.Home || s.Moves[0].Landed) {
			return true
		}
	}
	return false
}

func claimed(b *controller.Reservations, host hypervisor.HostName) hypervisor.Bytes {
	sum := hypervisor.Bytes(0)
	for _, c := range b.Claims() {
		if c.Host == host {
			sum += c.Amount.Memory
		}
	}
	return sum
}

// However many ask, what is accepted fits, and so does each once more when it is
// confirmed under its own reservation.
func TestAcceptedRequestsNeverOverbook(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := controller.NewReservations(controller.ReservationsConfig{Quotas: map[string]placement.Amount{
			"t1": {Memory: 20 * gib, CPUs: 8, Disk: gib}}})
		for _, name := range someHosts {
			h, closed := drawHost(t, name)
			b.Host(h, closed)
		}
		for i := range rapid.IntRange(1, 25).Draw(t, "requests") {
			vm := drawVM(t, hypervisor.VMID(fmt.Sprint("vm", i)))
			r := placement.Request{VM: vm}
			if rapid.Bool().Draw(t, "named") {
				r.Host, r.Force = rapid.SampledFrom(someHosts).Draw(t, "to"), placement.No
			}
			d := b.Decide(&r)
			m := controller.Move{ID: hypervisor.JobID(vm.ID) + "#1", Target: d.Host}
			if d.Outcome != placement.Accepted || len(b.Exceeds(vm, m)) > 0 {
				continue
			}
			b.Say(vm.ID, controller.Usage{VM: vm, Moves: []controller.Move{m}})
			if why := b.Confirm(&r, d.Host); len(why) > 0 {
				t.Fatalf("%s was accepted by %s, which now refuses: %v", vm.ID, d.Host, why)
			}
			if rapid.Bool().Draw(t, "ends") {
				b.Say(vm.ID, controller.Usage{VM: vm, Home: d.Host})
			}
		}
		tenant := placement.Amount{}
		for _, c := range b.Claims() {
			if c.Tenant == "t1" {
				tenant.Memory += c.Amount.Memory
				tenant.CPUs += c.Amount.CPUs
			}
		}
		if tenant.Memory > 20*gib || tenant.CPUs > 8 {
			t.Fatalf("the tenant holds %+v", tenant)
		}
		for _, name := range someHosts {
			h, _ := b.Get(name)
			if h.FreeMemory() < 0 || h.FreeCPUs() < 0 || h.FreeDevices("gpu") < 0 {
				t.Fatalf("%s is overbooked: %+v", name, h)
			}
		}
	})
}

// Two that were given the same room at the same time are both refused under their
// reservations; without the other each is confirmed.
func TestARoomThatWasGivenAwayTwiceIsNotConfirmed(t *testing.T) {
	b := controller.NewReservations(controller.ReservationsConfig{})
	b.Host(&store.Host{Host: hypervisor.Host{Name: "n1", Memory: 10 * gib, CPUs: 8}}, false)
	requests := map[hypervisor.VMID]placement.Request{}
	for _, id := range []hypervisor.VMID{"a", "b"} {
		vm := &placement.VM{ID: id, Memory: 6 * gib, CPUs: 1}
		requests[id] = placement.Request{VM: vm, Source: "n0"}
		b.Say(id, controller.Usage{VM: vm, Home: "n0", Moves: []controller.Move{{
			ID: hypervisor.JobID(id), Target: "n1"}}})
	}
	for id, r := range requests {
		if why := b.Confirm(&r, "n1"); len(why) != 1 || why[0].Check != "memory" {
			t.Errorf("%s: %v", id, why)
		}
	}
	b.Say("b", controller.Usage{})
	r := requests["a"]
	if why := b.Confirm(&r, "n1"); len(why) > 0 {
		t.Errorf("a alone: %v", why)
	}
	if why := b.Confirm(&r, "n9"); len(why) == 0 {
		t.Error("a host that is not known is confirmed")
	}
}

// An operator's own preferences, and what groups prefer, are not lost to the index.
func TestPreferencesAreAsked(t *testing.T) {
	hosts := func(c controller.ReservationsConfig) *controller.Reservations {
		b := controller.NewReservations(c)
		b.Host(&store.Host{Host: hypervisor.Host{Name: "n1", Memory: 8 * gib, CPUs: 8}}, false)
		b.Host(&store.Host{Host: hypervisor.Host{Name: "n2", Memory: 9 * gib, CPUs: 8}}, false)
		return b
	}
	apart := placement.Constraints{Groups: []placement.GroupRule{{Group: "db",
		Policy: placement.SoftAntiAffinity}}}
	for _, r := range []struct {
		name        string
		config      controller.ReservationsConfig
		constraints placement.Constraints
		want        hypervisor.HostName
	}{
		{"most free memory", controller.ReservationsConfig{}, placement.Constraints{}, "n2"},
		{"least is preferred", controller.ReservationsConfig{Placement: placement.Config{Weighers: placement.Pack()}},
			placement.Constraints{}, "n1"},
		{"a member of the group is there", controller.ReservationsConfig{}, apart, "n1"},
	} {
		t.Run(r.name, func(t *testing.T) {
			b := hosts(r.config)
			b.Say("x", controller.Usage{Home: "n2", VM: &placement.VM{ID: "x", Constraints: apart}})
			got := b.Decide(&placement.Request{VM: &placement.VM{ID: "a", Memory: gib, CPUs: 1,
				Constraints: r.constraints}})
			if got.Host != r.want {
				t.Errorf("%s is chosen, want %s", got.Host, r.want)
			}
		})
	}
}

// A request that was not forced, and that makes no sense, says so on both ways.
func TestBadRequestsHaveReasons(t *testing.T) {
	b := controller.NewReservations(controller.ReservationsConfig{})
	b.Host(&store.Host{Host: hypervisor.Host{Name: "n1", Memory: 8 * gib, CPUs: 8}}, false)
	ok := &placement.VM{ID: "a", Memory: gib}
	torn := &placement.VM{ID: "a", Memory: gib, Constraints: placement.Constraints{
		With: []hypervisor.VMID{"b"}, Without: []hypervisor.VMID{"b"}}}
	for name, r := range map[string]placement.Request{
		"unknown host": {VM: ok, Host: "n9"}, "force without a host": {VM: ok, Force: placement.Yes},
		"contradiction": {VM: torn}, "no VM": {},
	} {
		d := b.Decide(&r)
		if d.Outcome != placement.BadRequest || len(d.Why) == 0 || d.Code != placement.BadInput {
			t.Errorf("%s: %+v", name, d)
		}
	}
	refusals := b.Refusals(&placement.Request{VM: ok, Source: "n1"})
	if !slices.ContainsFunc(refusals, func(r placement.Refusal) bool { return r.Host == "n1" }) {
		t.Errorf("refusals: %v", refusals)
	}
}
