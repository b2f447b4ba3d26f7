package plan

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// TestTheLadderKnowsWhatASearchFinds, whatever has moved, or moved back, since it was built.
func TestTheLadderKnowsWhatASearchFinds(t *testing.T) {
	known := 0
	rapid.Check(t, func(t *rapid.T) {
		f := motley(t)
		p := begin(f, Some(t, f))
		w := work{planner: p, s: p.start.Clone(),
			prefer:   rapid.SampledFrom([]preference{spread, tight}).Draw(t, "preference"),
			arriving: make([]hypervisor.Bytes, len(f.Hosts))}
		mark, moves := w.s.Mark(), 0
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) {},
			"one moves": func(t *rapid.T) {
				vm := rapid.IntRange(0, len(f.VMs)-1).Draw(t, "VM")
				not := rapid.IntRange(nowhere, len(f.Hosts)-1).Draw(t, "not")
				best, is := w.climb(vm, not)
				if want := w.search(vm, not); is && best != want {
					t.Fatalf("%s goes to %d, not %d", f.VMs[vm].ID, best, want)
				} else if is {
					known++
					best = want
				}
				if best != nowhere && rapid.Bool().Draw(t, "it goes") {
					w.move(vm, best)
				}
			},
			"others go back": func(t *rapid.T) {
				if moves <= len(w.moves) {
					w.undo(mark, moves)
				}
				mark, moves = w.s.Mark(), len(w.moves)
			},
		})
	})
	t.Logf("%d known", known)
	if known == 0 {
		t.Error("it never knew")
	}
}

// motley draws a fleet of many hosts with VMs of two sizes, some of which ask for more than room.
func motley(t *rapid.T) *Fleet {
	f := &Fleet{Filters: placement.AllFilters()}
	if rapid.SampledFrom([]bool{2: true}).Draw(t, "conditions are few") {
		few, err := placement.SelectFilters([]string{"source", "memory"})
		if err != nil {
			t.Fatal(err)
		}
		f.Filters = few
	}
	tainted := rapid.SampledFrom([]int{0, 3, 100}).Draw(t, "tainted")
	for i := range rapid.SampledFrom([]int{3, 10, 100}).Draw(t, "hosts") {
		h := placement.Host{Name: hypervisor.HostName(fmt.Sprintf("n%03d", i)), CPUs: 8,
			Memory: hypervisor.Bytes(8+i%3) * hypervisor.GiB, Load: &placement.Load{},
			Down: i%7 == 6}
		if i < tainted {
			h.Taints = []placement.Taint{{Key: "a", Effect: placement.NoSchedule}}
		}
		f.Hosts = append(f.Hosts, h)
	}
	for i := range rapid.IntRange(2, 30).Draw(t, "VMs") {
		home := rapid.IntRange(0, len(f.Hosts)-1).Draw(t, "home")
		v := VM{Home: f.Hosts[home].Name, VM: placement.VM{CPUs: 1,
			ID: hypervisor.VMID(fmt.Sprintf("v%02d", i)), Memory: 2 * hypervisor.GiB}}
		if rapid.SampledFrom([]bool{false, false, true}).Draw(t, "large") {
			v.Memory = 5 * hypervisor.GiB
		}
		if rapid.SampledFrom([]bool{4: true}).Draw(t, "asks") {
			v.Constraints.Apart = []string{"group"}
		}
		f.VMs = append(f.VMs, v)
	}
	return Settled(f)
}
