package evacuation_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
)

const mb = hypervisor.Bandwidth(1_000_000)

// leaves is a VM of which others are told by name.
func leaves(vm hypervisor.VMID, most hypervisor.Bandwidth, failed int) evacuation.EvacuatingVM {
	return evacuation.EvacuatingVM{VM: vm, Memory: gib, Most: most, Failed: failed}
}

func TestWhoSharesALink(t *testing.T) {
	p := rates(map[hypervisor.VMID]hypervisor.Bandwidth{"busy": 40 * mb, "hot": 90 * mb})
	idle, busy, hot := leaves("idle", 0, 0), leaves("busy", 0, 0), leaves("hot", 0, 0)
	all := func(l ...evacuation.EvacuatingVM) []evacuation.EvacuatingVM { return l }
	for _, test := range []struct {
		name   string
		link   hypervisor.Bandwidth
		next   evacuation.EvacuatingVM
		others []evacuation.EvacuatingVM
		want   bool
	}{
		{"idle guests share any link", 100 * mb, idle, all(idle, idle, idle), true},
		{"no VM shares an empty one", 100 * mb, hot, nil, true},
		{"a busy guest converges on half of 160 MB/s", 160 * mb, busy, all(idle), true},
		{"not on less", 159 * mb, busy, all(idle), false},
		{"nor if the other comes later", 159 * mb, idle, all(busy), false},
		{"a third is too many", 160 * mb, idle, all(busy, idle), false},
		{"one that another link slows down leaves the rest", 160 * mb, idle,
			all(busy, leaves("slow", 10*mb, 0)), false},
		{"which is enough here", 170 * mb, idle, all(busy, leaves("slow", 10*mb, 0)), true},
		{"one that gets all that its other link gives loses nothing", 1000 * mb, idle,
			all(leaves("hot", 100*mb, 0)), true},
		{"one that failed goes alone", 1000 * mb, leaves("x", 0, 1), all(idle), false},
		{"an unknown link is no limit", 0, hot, all(hot), true},
	} {
		if got := p.Shares(test.link, test.next, test.others); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// A gibibyte in 150 s needs 7.2 MB/s, and a little more to be sure: 8.9 MB/s.
func TestASharedLinkLeavesEachItsBudget(t *testing.T) {
	p := evacuation.AdaptivePolicy{PerGiB: 150 * time.Second}
	a, b := leaves("a", 0, 0), leaves("b", 0, 0)
	for link, want := range map[hypervisor.Bandwidth]bool{17 * mb: false, 18 * mb: true} {
		if got := p.Shares(link, a, []evacuation.EvacuatingVM{b}); got != want {
			t.Errorf("%v: %v", link, got)
		}
	}
}

func TestAPeakCountsMoreThanTheMean(t *testing.T) {
	p := evacuation.AdaptivePolicy{
		DirtyRate: func(hypervisor.VMID) hypervisor.Bandwidth { return 10 * mb },
		Peak:      func(hypervisor.VMID) hypervisor.Bandwidth { return 60 * mb }}
	if p.Shares(100*mb, leaves("a", 0, 0), []evacuation.EvacuatingVM{leaves("b", 0, 0)}) {
		t.Error("neither converges on 50 MB/s")
	}
}

// A migration that may share a link may share a faster one, and with fewer.
func TestSharingIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dirty := map[hypervisor.VMID]hypervisor.Bandwidth{}
		var all []evacuation.EvacuatingVM
		for i := range rapid.IntRange(2, 8).Draw(t, "VMs") {
			vm := hypervisor.VMID(rune('a' + i))
			dirty[vm] = hypervisor.Bandwidth(rapid.IntRange(0, 60).Draw(t, "dirty")) * mb
			all = append(all, leaves(vm, hypervisor.Bandwidth(
				rapid.SampledFrom([]int{0, 12, 60, 125, 1250}).Draw(t, "most"))*mb, 0))
		}
		p := rates(dirty)
		link := hypervisor.Bandwidth(rapid.IntRange(1, 1000).Draw(t, "link")) * mb
		next, others := all[0], all[1:]
		if !p.Shares(link, next, others) {
			return
		}
		if !p.Shares(link, next, others[1:]) {
			t.Errorf("not with fewer: %+v", all)
		}
	})
}
