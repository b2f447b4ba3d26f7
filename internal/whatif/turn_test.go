package whatif_test

import (
	"slices"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/whatif"
)

const twoHosts = `
hosts:
- {name: "n[1-4]", memory: 64GiB, cpus: 32, link: 10Gbit/s}
vms:
- {name: b, host: n1, memory: 4GiB, class: idle}
- {name: a, host: n1, memory: 16GiB, class: idle}
- {name: c, host: n1, memory: 8GiB, class: idle}
- {name: d, host: n2, memory: 12GiB, class: idle}
`

// Hosts are emptied in their turn where one migration runs at a time, and each has its own time.
func TestHostsAreEmptiedInTurn(t *testing.T) {
	for _, hosts := range [][]hypervisor.HostName{{"n1", "n2"}, {"n2", "n1"}} {
		s := parse(t, twoHosts)
		s.Controller.Cluster.ParallelMigrationsPerCluster = 1
		f, err := whatif.Ask(t.Context(), s, whatif.Question{Hosts: hosts, Samples: 1, InTurn: true})
		if err != nil {
			t.Fatal(err)
		}
		first, last := f.Samples.Hosts[hosts[0]].P50, f.Samples.Hosts[hosts[1]].P50
		if first == nil || last == nil || *first >= *last || *last != *f.Samples.Seconds.P50 {
			t.Errorf("%v: %v, %v of %v", hosts, first, last, f.Samples.Seconds.P50)
		}
	}
}

func TestMovesGoInTheOrderAskedFor(t *testing.T) {
	for order, want := range map[whatif.Order][]hypervisor.VMID{
		"":                   {"default/a", "default/c", "default/b"},
		whatif.LargestFirst:  {"default/a", "default/c", "default/b"},
		whatif.LongestFirst:  {"default/a", "default/c", "default/b"},
		whatif.SmallestFirst: {"default/b", "default/c", "default/a"},
		whatif.ByName:        {"default/a", "default/b", "default/c"},
	} {
		s := parse(t, twoHosts)
		s.Controller.Cluster.ParallelOutboundMigrationsPerNode = 1
		f, err := whatif.Ask(t.Context(), s, whatif.Question{Hosts: []hypervisor.HostName{"n1"}, Order: order})
		if err != nil {
			t.Fatal(err)
		}
		moves := slices.Concat(f.Waves...)
		slices.SortFunc(moves, func(a, b whatif.Step) int {
			return int((*a.BeginsSeconds - *b.BeginsSeconds) * float64(time.Millisecond))
		})
		var got []hypervisor.VMID
		for _, m := range moves {
			got = append(got, m.VM)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v begin, want %v", order, got, want)
		}
	}
}
