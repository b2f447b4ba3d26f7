package whatif

import (
	"fmt"
	"maps"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
)

// most is how many arrangements are looked at.
const most = 100_000

// exhausted looks at every arrangement that can be reached.
func exhausted(f *plan.Fleet, drained []hypervisor.HostName, c *plan.Certificate) error {
	first := alone(f, drained, slices.Collect(maps.Keys(occupancyOf(f).vms)))
	seen, queue := map[string]bool{key(first, f): true}, []*occupancy{first}
	for n := 0; n < len(queue); n++ {
		b, left := queue[n], 0
		for _, v := range f.VMs {
			if v = b.vms[v.ID]; slices.Contains(drained, v.Home) {
				left++
			}
			if v.Constraints.Topology != nil {
				return fmt.Errorf("%s asks for cells, which depend on the way taken", v.ID)
			}
			for h := range b.hosts {
				if next := b.moved(v, h); next != nil && !seen[key(next, f)] {
					seen[key(next, f)] = true
					queue = append(queue, next)
				}
			}
		}
		if left == 0 || len(queue) > most {
			return fmt.Errorf("%d VMs are left in arrangement %d of %d", left, n+1, len(queue))
		}
	}
	if len(queue) != c.States {
		return fmt.Errorf("%d arrangements can be reached, not %d", len(queue), c.States)
	}
	return nil
}

func key(b *occupancy, f *plan.Fleet) (k string) {
	for _, v := range f.VMs {
		k += string(b.vms[v.ID].Home) + "\n"
	}
	return k
}

// moved returns the occupancy after a move; nil when it is not possible.
func (b *occupancy) moved(v plan.VM, host int) *occupancy {
	o := b.asks(&v, v.Home)
	if v.Home == "" || v.Pinned != "" ||
		!placement.FitsAll(b.rules, &v.VM, &b.hosts[host], o) {
		return nil
	}
	next := &occupancy{b.rules, slices.Clone(b.hosts), b.at, maps.Clone(b.vms)}
	next.hosts[host], _ = b.hosts[host].With(&v.VM)
	next.hosts[host].Incoming--
	next.hosts[b.at[v.Home]], _ = b.hosts[b.at[v.Home]].Without(&v.VM, false)
	v.Home = b.hosts[host].Name
	next.vms[v.ID] = v
	return next
}
