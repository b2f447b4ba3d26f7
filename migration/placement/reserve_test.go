package placement_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func reserveAmount(memory int) placement.Amount {
	return placement.Amount{Memory: hypervisor.Bytes(memory)}
}

func ledger(t *testing.T, claims ...placement.Reservation) *placement.Ledger {
	t.Helper()
	l, err := placement.NewLedger(claims...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func home(vm hypervisor.VMID, host hypervisor.HostName, memory int) placement.Reservation {
	return placement.Reservation{VM: vm, Host: host, Tenant: "shop", Amount: reserveAmount(memory)}
}

func plan(id hypervisor.JobID, vm hypervisor.VMID, target hypervisor.HostName) placement.ReservationPlan {
	return placement.ReservationPlan{ID: id, VM: vm, Target: target, Amount: reserveAmount(4), Owner: "ann", Now: noon,
		Deadline: noon.Add(time.Hour)}
}

func limits(room, quota int) placement.Limits {
	r, q := reserveAmount(room), reserveAmount(quota)
	return placement.Limits{Room: &r, Quota: &q}
}

func TestTheTwoHoldersOfAMove(t *testing.T) {
	l := ledger(t, home("vm", "n1", 3))
	entry, why := l.Accept(plan("m", "vm", "n2"), limits(4, 7))
	want := placement.LedgerEntry{At: noon, Step: placement.StepAccepted, Move: "m", VM: "vm",
		Source: "n1", Target: "n2", Owner: "ann", Amount: reserveAmount(4)}
	if diff := cmp.Diff(want, entry); diff != "" || why != nil {
		t.Fatalf("accepted: %v (-want +got):\n%s", why, diff)
	}
	moving := []placement.Reservation{
		{VM: "vm", Host: "n2", Tenant: "shop", Amount: reserveAmount(4), By: "m", Owner: "ann",
			Deadline: noon.Add(time.Hour)},
		{VM: "vm", Move: "m", Host: "n1", Tenant: "shop", Amount: reserveAmount(3), By: "m",
			Owner: "ann", Deadline: noon.Add(time.Hour)},
	}
	if diff := cmp.Diff(moving, l.Claims()); diff != "" {
		t.Fatalf("while it moves (-want +got):\n%s", diff)
	}
	if l.UsedBy("shop") != reserveAmount(7) || l.Used("n1") != reserveAmount(3) ||
		l.Used("n2") != reserveAmount(4) {
		t.Fatalf("both sides count: %v on n1, %v on n2", l.Used("n1"), l.Used("n2"))
	}
	if entry, ok := l.RollBack("m", noon); !ok || entry.Step != placement.RolledBack || entry.Owner != "ann" {
		t.Fatalf("ended with %+v, %v", entry, ok)
	}
	if _, again := l.RollBack("m", noon); again {
		t.Error("it ends twice")
	}
	settled := []placement.Reservation{home("vm", "n1", 3)}
	if diff := cmp.Diff(settled, l.Claims()); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
}

func TestAcceptRefusesWithEveryReason(t *testing.T) {
	for _, row := range []struct {
		name   string
		plan   func(*placement.ReservationPlan)
		limits placement.Limits
		want   string
	}{
		{"exactly enough room and quota", func(*placement.ReservationPlan) {}, limits(9, 12), "[]"},
		{"room that others have reserved", func(*placement.ReservationPlan) {}, limits(8, 12),
			"[room-memory needs 9B in all has 8B]"},
		{"the quota counts both sides", func(*placement.ReservationPlan) {}, limits(9, 11),
			"[quota-memory needs 12B in all has 11B]"},
		{"both, and a deadline in the past", func(p *placement.ReservationPlan) { p.Deadline = noon },
			limits(8, 11), "[deadline needs time left has none " +
				"room-memory needs 9B in all has 8B quota-memory needs 12B in all has 11B]"},
		{"a forced move is not limited", func(*placement.ReservationPlan) {}, placement.Limits{}, "[]"},
		{"the VM's own host", func(p *placement.ReservationPlan) { p.Target = "n1" }, limits(99, 99),
			"[source needs another host has the source n1]"},
		{"a VM that moves", func(p *placement.ReservationPlan) { p.VM = "other" }, limits(99, 99),
			"[vm needs no other move of it has m1 source needs another host has the source n2]"},
		{"the name of another move", func(p *placement.ReservationPlan) { p.ID = "m1" }, limits(99, 99),
			`[move needs a name that no other move has has "m1"]`},
		{"no name", func(p *placement.ReservationPlan) { p.ID = "" }, limits(99, 99),
			`[move needs a name that no other move has has ""]`},
		{"a negative size", func(p *placement.ReservationPlan) { p.Amount.CPUs = -1 }, limits(99, 99),
			"[amount needs no negative or absurd number has {4B -1 0B}]"},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := ledger(t, home("vm", "n1", 3), placement.Reservation{VM: "other", Host: "n2",
				Tenant: "shop", By: "m1", Amount: reserveAmount(5)})
			before := l.Claims()
			p := plan("m", "vm", "n2")
			row.plan(&p)
			_, why := l.Accept(p, row.limits)
			if got := fmt.Sprint(why); got != row.want {
				t.Errorf("refused with %s\nwant %s", got, row.want)
			}
			if diff := cmp.Diff(before, l.Claims()); (diff == "") != (len(why) > 0) {
				t.Errorf("%d reasons, and the reservations (-before +after):\n%s", len(why), diff)
			}
		})
	}
}

func TestStepsMayBeRepeated(t *testing.T) {
	l := ledger(t, home("vm", "n1", 3))
	first, _ := l.Accept(plan("m", "vm", "n2"), limits(4, 7))
	before := l.Claims()
	again, why := l.Accept(plan("m", "vm", "n2"), limits(4, 7))
	if diff := cmp.Diff(first, again); diff != "" || why != nil {
		t.Errorf("accepted again: %v (-first +second):\n%s", why, diff)
	}
	if diff := cmp.Diff(before, l.Claims()); diff != "" {
		t.Errorf("accepted again, the reservations (-before +after):\n%s", diff)
	}
	if _, ok := l.Settle(home("vm", "n3", 1), noon); ok {
		t.Error("a VM is settled while it moves")
	}
}

func TestNewRefusesClaimsThatCannotBeTogether(t *testing.T) {
	held := placement.Reservation{VM: "vm", Host: "n2", By: "m"}
	moving := placement.Reservation{VM: "vm", Host: "n1", Move: "m", By: "m"}
	for name, claims := range map[string][]placement.Reservation{
		"one VM at home twice":    {home("vm", "n1", 1), home("vm", "n2", 1)},
		"a move twice":            {held, moving, moving},
		"a move without a target": {moving},
		"a move of another VM":    {moving, {VM: "other", Host: "n2", By: "m"}},
		"two VMs by one move":     {held, {VM: "other", Host: "n2", By: "m"}},
		"a negative amount":       {home("vm", "n1", -1)},
		"an amount beyond reason": {home("vm", "n1", 1<<60)},
		"a move that moves no VM": {moving, home("vm", "n2", 1)},
	} {
		if _, err := placement.NewLedger(claims...); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestOfCountsTheOverhead(t *testing.T) {
	vm := &placement.VM{Memory: 10, Overhead: 2, Balloon: 4, CPUs: 3, Disk: 5}
	if got := placement.AmountOf(vm); got != (placement.Amount{Memory: 8, CPUs: 3, Disk: 5}) {
		t.Errorf("Of = %v", got)
	}
}

// reserveWorld is a ledger and what must hold of it, kept the simple way.
type reserveWorld struct {
	l     *placement.Ledger
	rooms map[hypervisor.HostName]int
}

// TestNoInterleavingLeaks: moves begin, end, end again, are forgotten and read
// back in any order. Every host and tenant holds what its claims add up to, no
// host is overbooked, and in the end only the VMs' homes are left.
func TestNoInterleavingLeaks(t *testing.T) {
	vms := rapid.SampledFrom([]hypervisor.VMID{"v1", "v2", "v3"})
	hosts := rapid.SampledFrom([]hypervisor.HostName{"n1", "n2", "n3"})
	ids := rapid.SampledFrom([]hypervisor.JobID{"m1", "m2", "m3", ""})
	rapid.Check(t, func(t *rapid.T) {
		l, _ := placement.NewLedger()
		w := &reserveWorld{l: l, rooms: map[hypervisor.HostName]int{"n1": 8, "n2": 4, "n3": 2}}
		size := rapid.IntRange(0, 4)
		t.Repeat(map[string]func(*rapid.T){
			"a move is accepted": func(t *rapid.T) {
				p := placement.ReservationPlan{ID: ids.Draw(t, "id"), VM: vms.Draw(t, "vm"),
					Target: hosts.Draw(t, "target"), Now: noon,
					Amount: reserveAmount(size.Draw(t, "size"))}
				room := reserveAmount(w.rooms[p.Target])
				w.l.Accept(p, placement.Limits{Room: &room})
			},
			"a move rolls back": func(t *rapid.T) { w.rollBack(t, ids.Draw(t, "id")) },
			"a VM is gone": func(t *rapid.T) {
				w.l.Drop(vms.Draw(t, "vm"), noon)
			},
			"the ledger is made again": func(t *rapid.T) {
				text, err := json.Marshal(w.l.Claims())
				var claims []placement.Reservation
				if err != nil || json.Unmarshal(text, &claims) != nil {
					t.Fatal("the claims cannot be stored")
				}
				again, err := placement.NewLedger(claims...)
				if err != nil {
					t.Fatal(err)
				}
				w.l = again
			},
			"": w.check,
		})
	})
}

func (w *reserveWorld) rollBack(t *rapid.T, id hypervisor.JobID) {
	open := false
	for _, c := range w.l.Claims() {
		open = open || c.By == id && id != ""
	}
	if _, ok := w.l.RollBack(id, noon); ok != open {
		t.Fatalf("the end of %q: %v, want %v", id, ok, open)
	}
	for _, c := range w.l.Claims() {
		if c.By == id && id != "" {
			t.Fatalf("%q has ended and holds %v", id, c)
		}
	}
}

func (w *reserveWorld) check(t *rapid.T) {
	sums, held, all := map[hypervisor.HostName]placement.Amount{}, map[hypervisor.VMID]int{}, 0
	for _, c := range w.l.Claims() {
		a := sums[c.Host]
		a.Memory += c.Amount.Memory
		sums[c.Host] = a
		all += int(c.Amount.Memory)
		if c.Move == "" {
			held[c.VM]++
		}
	}
	for host, room := range w.rooms {
		if w.l.Used(host) != sums[host] {
			t.Fatalf("%s holds %v, its claims are %v", host, w.l.Used(host), sums[host])
		}
		if int(sums[host].Memory) > room {
			t.Fatalf("%s is overbooked: %v of %d", host, sums[host], room)
		}
	}
	for vm, n := range held {
		if n > 1 {
			t.Fatalf("%s is held %d times", vm, n)
		}
	}
	if int(w.l.UsedBy("").Memory) != all {
		t.Fatalf("the tenant holds %v, all claims are %d", w.l.UsedBy(""), all)
	}
}
