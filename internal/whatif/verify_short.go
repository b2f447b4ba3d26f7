package whatif

import (
	"fmt"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
)

// enforcing names the conditions that make a resource run out.
var enforcing = map[plan.Resource][]string{plan.Memory: {"memory"}, plan.CPUs: {"cpus"},
	plan.Places: {"apart", "group-anti-affinity"}}

// short checks that the VMs can be on the named hosts only, and adds up. A host holds
// at most what it has room for with no VM there that can move, or what it holds now: a
// host that is over-committed stays so as long as no VM enters.
func short(f *plan.Fleet, drained []hypervisor.HostName, c *plan.Certificate) error {
	b := alone(f, drained, nil)
	for _, name := range enforcing[c.Resource] {
		if !slices.ContainsFunc(b.rules, func(r placement.Filter) bool { return r.Name == name }) {
			return fmt.Errorf("no condition of the fleet is called %s", name)
		}
	}
	named, emptied, counted := set(c.Hosts), set(drained), map[hypervisor.VMID]bool{}
	var others []int // neither named nor to be emptied: none of the VMs may be there
	for h := range b.hosts {
		if name := b.hosts[h].Name; !named[name] && !emptied[name] {
			others = append(others, h)
		}
	}
	now := make([]int64, len(b.hosts))
	var need, have int64
	for _, id := range c.VMs {
		v := b.vms[id]
		amount, ok := c.Amount(&v.VM)
		if !ok || v.Pinned != "" || counted[id] {
			return fmt.Errorf("%s does not count", id)
		}
		counted[id] = true
		need += amount
		if at, runs := b.at[v.Home]; runs {
			now[at] += amount
		}
		for _, h := range others {
			if name := b.hosts[h].Name; name == v.Home || !b.refused(v, h, nil) {
				return fmt.Errorf("%s could be on %s", id, name)
			}
		}
	}
	for h := range b.hosts {
		if name := b.hosts[h].Name; named[name] && !emptied[name] {
			have += max(now[h], c.Room(&b.hosts[h], f))
		}
	}
	if need != c.Need || have != c.Have || need <= have {
		return fmt.Errorf("they need %d, there are %d", need, have)
	}
	return nil
}
