package evacuation_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
)

const (
	gib = hypervisor.GiB
	ten = 10 * hypervisor.Gbit
)

// rates knows what guests dirty, by name.
func rates(known map[hypervisor.VMID]hypervisor.Bandwidth) evacuation.AdaptivePolicy {
	return evacuation.AdaptivePolicy{
		DirtyRate: func(vm hypervisor.VMID) hypervisor.Bandwidth { return known[vm] }}
}

func TestTheBestNumberFollowsFromTheModel(t *testing.T) {
	idle := evacuation.AdaptivePolicy{}
	busy := func(rate hypervisor.Bandwidth) evacuation.AdaptivePolicy {
		return rates(map[hypervisor.VMID]hypervisor.Bandwidth{"v": rate})
	}
	for _, row := range []struct {
		name   string
		policy evacuation.AdaptivePolicy
		link   hypervisor.Bandwidth
		memory hypervisor.Bytes
		want   int
	}{
		{"a large VM fills the link alone", idle, ten, 128 * gib, 1},
		{"while a middling one is prepared another moves", idle, ten, 8 * gib, 2},
		{"small VMs cost more to prepare than to move", idle, ten, gib, 3},
		{"on a fast link still more", idle, 10 * ten, gib, 22},
		{"on a slow link a small VM is large", idle, ten / 10, 8 * gib, 1},
		{"where nothing is to be prepared there is no gap to fill",
			evacuation.AdaptivePolicy{Rest: time.Millisecond}, ten, gib, 1},
		{"a guest that dirties a lot pays for company", busy(ten / 8), ten, 8 * gib, 1},
		{"a guest that outruns the link goes alone", busy(2 * ten), ten, 8 * gib, 1},
		{"under a cap as many as fill the link", evacuation.AdaptivePolicy{Cap: ten / 8,
			Rest: time.Millisecond}, ten, 8 * gib, 8},
		{"an unknown link is taken for one of 10 Gbit/s", idle, 0, 8 * gib, 2},
	} {
		got := row.policy.Best(row.link, []evacuation.EvacuatingVM{{VM: "v", Memory: row.memory}})
		if got != row.want {
			t.Errorf("%s: %d at once, want %d", row.name, got, row.want)
		}
	}
}

func TestWhoNeedsTheLinkGoesFirstThenWhoTakesLongest(t *testing.T) {
	p := rates(map[hypervisor.VMID]hypervisor.Bandwidth{"hot": ten, "warm": ten / 5})
	queue := []evacuation.EvacuatingVM{{VM: "small", Memory: gib}, {VM: "warm", Memory: 8 * gib},
		{VM: "large", Memory: 9 * gib}, {VM: "failed", Memory: gib, Failed: 1},
		{VM: "hot", Memory: 2 * gib}}
	slices.SortFunc(queue, func(a, b evacuation.EvacuatingVM) int { return p.Compare(ten, a, b) })
	var got []hypervisor.VMID
	for _, l := range queue {
		got = append(got, l.VM)
	}
	want := []hypervisor.VMID{"hot", "failed", "warm", "large", "small"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the order (-want +got):\n%s", diff)
	}
}

func TestWhoNeedsTheLinkHasItAlone(t *testing.T) {
	p := rates(map[hypervisor.VMID]hypervisor.Bandwidth{"warm": ten * 3 / 10, "hot": 2 * ten})
	quiet := evacuation.EvacuatingVM{VM: "quiet", Memory: gib}
	for _, row := range []struct {
		name        string
		next, other evacuation.EvacuatingVM
		open        bool
	}{
		{"two quiet ones share", quiet, evacuation.EvacuatingVM{VM: "b", Memory: gib}, true},
		{"half the link is not enough for one that dirties 30 % of it",
			evacuation.EvacuatingVM{VM: "warm", Memory: gib}, quiet, false},
		{"nor while it is under way", quiet, evacuation.EvacuatingVM{VM: "warm", Memory: gib}, false},
		{"one that never converges disturbs no other", evacuation.EvacuatingVM{VM: "hot", Memory: gib},
			quiet, false},
		{"one that has failed tries alone", evacuation.EvacuatingVM{VM: "c", Memory: gib, Failed: 1},
			quiet, false},
	} {
		if got := p.Admit(ten, row.next, []evacuation.EvacuatingVM{row.other}); got != row.open {
			t.Errorf("%s: open %v, want %v", row.name, got, row.open)
		}
	}
}

func TestALinkThatTargetsLeaveIdleIsUsed(t *testing.T) {
	large := func(target hypervisor.Bandwidth, sharing int) evacuation.EvacuatingVM {
		return evacuation.EvacuatingVM{VM: "v", Memory: 128 * gib, Target: target, Sharing: sharing}
	}
	for _, row := range []struct {
		name   string
		others []evacuation.EvacuatingVM
		open   bool
	}{
		{"its target is its own", []evacuation.EvacuatingVM{large(ten, 1)}, false},
		{"its target is shared", []evacuation.EvacuatingVM{large(ten, 2)}, true},
		{"its target is slow", []evacuation.EvacuatingVM{large(ten/4, 1)}, true},
		{"targets are what lacks", []evacuation.EvacuatingVM{large(ten, 4), large(ten, 4)}, false},
		{"nothing is known", []evacuation.EvacuatingVM{large(0, 0)}, false},
	} {
		next := evacuation.EvacuatingVM{VM: "next", Memory: 128 * gib}
		if got := (evacuation.AdaptivePolicy{}).Admit(ten, next, row.others); got != row.open {
			t.Errorf("%s: open %v, want %v", row.name, got, row.open)
		}
	}
}

// drawLeaving draws a VM that leaves; the dirty rates are those of drawPolicy.
func drawLeaving(t *rapid.T) evacuation.EvacuatingVM {
	return evacuation.EvacuatingVM{
		VM:      hypervisor.VMID(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "vm")),
		Memory:  hypervisor.Bytes(rapid.IntRange(-1, 4).Draw(t, "memory")) * gib,
		Failed:  rapid.IntRange(0, 1).Draw(t, "failed"),
		Target:  hypervisor.Bandwidth(rapid.IntRange(-1, 3).Draw(t, "target")) * ten,
		Sharing: rapid.IntRange(-1, 3).Draw(t, "sharing")}
}

func drawPolicy(t *rapid.T) evacuation.AdaptivePolicy {
	known := map[hypervisor.VMID]hypervisor.Bandwidth{}
	for _, vm := range []hypervisor.VMID{"a", "b", "c"} {
		known[vm] = hypervisor.Bandwidth(rapid.Int64Range(-1, 2*int64(ten)).Draw(t, "rate"))
	}
	p := rates(known)
	p.Cap = hypervisor.Bandwidth(rapid.IntRange(-1, 2).Draw(t, "cap")) * ten / 2
	p.Rest = time.Duration(rapid.IntRange(-1, 5).Draw(t, "rest")) * time.Second
	return p
}

func TestNoVMWaitsWhileNoneIsUnderWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		link := hypervisor.Bandwidth(rapid.IntRange(-1, 2).Draw(t, "link")) * ten
		if !drawPolicy(t).Admit(link, drawLeaving(t), nil) {
			t.Fatal("a host that no VM leaves is shut")
		}
	})
}

func TestTheOrderIsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, link := drawPolicy(t), hypervisor.Bandwidth(rapid.IntRange(0, 2).Draw(t, "link"))*ten
		a, b, c := drawLeaving(t), drawLeaving(t), drawLeaving(t)
		if p.Compare(link, a, b) != -p.Compare(link, b, a) {
			t.Fatalf("%+v and %+v: each before the other", a, b)
		}
		if p.Compare(link, a, b) <= 0 && p.Compare(link, b, c) <= 0 && p.Compare(link, a, c) > 0 {
			t.Fatalf("a circle of %+v, %+v and %+v", a, b, c)
		}
	})
}

func TestOpenLooksAtNoOrderAndWritesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, next := drawPolicy(t), drawLeaving(t)
		others := rapid.SliceOfN(rapid.Custom(drawLeaving), 1, 5).Draw(t, "others")
		spare := append(slices.Clone(others), evacuation.EvacuatingVM{VM: "beyond"})
		back := slices.Clone(others)
		slices.Reverse(back)
		if p.Admit(ten, next, spare[:len(others)]) != p.Admit(ten, next, back) {
			t.Fatal("the order of those under way matters")
		}
		if spare[len(others)].VM != "beyond" {
			t.Fatal("it wrote into the caller's slice")
		}
	})
}

func TestLimitsThatAreNotSetAreLifted(t *testing.T) {
	five, zero := 5, 0
	got := evacuation.AdaptiveLimits(&five, nil, &zero)
	want := migration.Limits{PerCluster: 5, PerSource: migration.Unlimited, PerTarget: 0}
	if got != want {
		t.Errorf("limits %+v, want %+v", got, want)
	}
}

func TestATargetWithAnIdleLinkIsPreferredThenOneWithRoom(t *testing.T) {
	links := map[hypervisor.HostName]hypervisor.Bandwidth{"roomy": ten, "idle": ten,
		"idle and roomy": ten, "slow": ten / 10}
	hosts := []placement.Host{
		{Name: "roomy", Memory: 512 * gib, Incoming: 1}, {Name: "idle", Memory: 64 * gib},
		{Name: "idle and roomy", Memory: 128 * gib}, {Name: "slow", Memory: 256 * gib}}
	ws := evacuation.AdaptiveWeighers(func(h hypervisor.HostName) hypervisor.Bandwidth { return links[h] })
	ranked := placement.Rank(ws, &placement.VM{ID: "v", Memory: gib}, hosts, []int{0, 1, 2, 3},
		placement.Options{})
	var got []hypervisor.HostName
	for _, r := range ranked {
		got = append(got, r.Host)
	}
	want := []hypervisor.HostName{"idle and roomy", "idle", "roomy", "slow"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the preference (-want +got):\n%s", diff)
	}
}
