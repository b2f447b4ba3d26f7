package bench

import (
	"fmt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
)

// Of the tight clusters.
const (
	tightClusters = 200
	tightHosts    = 4
	tightVMs      = 7
	tightMemory   = 10 // GiB of each host
)

// tight returns a small cluster with hardly any room: VMs of 2 to 5 GiB on hosts of 10 GiB. Its first
// host is to be drained.
func tight(seed uint64) *plan.Fleet {
	chance := seeded(seed)
	f := &plan.Fleet{Filters: placement.AllFilters()}
	for i := range tightHosts {
		f.Hosts = append(f.Hosts, placement.Host{Name: hypervisor.HostName(fmt.Sprintf("n%d", i)),
			Memory: tightMemory * hypervisor.GiB, CPUs: 64, Load: &placement.Load{}})
	}
	for i := range tightVMs {
		v := plan.VM{VM: placement.VM{ID: hypervisor.VMID(fmt.Sprintf("v%d", i)), CPUs: 1,
			Memory: hypervisor.Bytes(2+chance.below(4)) * hypervisor.GiB}}
		first := int(chance.below(tightHosts))
		for k := range tightHosts {
			h := &f.Hosts[(first+k)%tightHosts]
			if h.FreeMemory() < v.Memory {
				continue
			}
			*h, _ = h.With(&v.VM)
			h.Incoming, v.Home = 0, h.Name
			f.VMs = append(f.VMs, v)
			break
		}
	}
	return f
}

// tightRows measures the candidates on the tight clusters. Moves are those of the clusters that all
// three have solved, so that they compare.
func tightRows() []PlanRow {
	set := fmt.Sprintf("tight, %d clusters", tightClusters)
	rows := []PlanRow{{Set: set, Candidate: exhaustive}, {Set: set, Candidate: FirstFit},
		{Set: set, Candidate: godwit}}
	for seed := range uint64(tightClusters) {
		f := tight(seed + 1)
		hosts := []hypervisor.HostName{"n0"}
		q := &drain{plan: f, hosts: hosts}
		moves := []int{fewest(f), count(q, q.firstFit()), count(q, plan.Drain(f, hosts).Waves)}
		all := true
		for i, n := range moves {
			rows[i].Questions++
			if n >= 0 {
				rows[i].Solved++
			}
			all = all && n >= 0
		}
		for i, n := range moves {
			if all {
				rows[i].Moves += n
			}
		}
	}
	return rows
}

// count returns how many moves empty the hosts; negative is that they do not.
func count(q *drain, waves []plan.Wave) int {
	target := map[hypervisor.VMID]hypervisor.HostName{}
	for _, w := range waves {
		for _, m := range w {
			target[m.VM] = m.Target
		}
	}
	for i := range q.plan.VMs {
		v := &q.plan.VMs[i]
		if to, moves := target[v.ID]; q.on(v.Home) && (!moves || q.on(to)) {
			return -1
		}
	}
	return plan.Count(waves)
}

// fewest looks at every arrangement, those first that take the fewest moves, until the first host is
// empty. While a VM moves, it takes its memory of both hosts, and none moves to the first. It is
// negative when there is no way. It knows nothing of the planner.
func fewest(f *plan.Fleet) int {
	start, pow := 0, 1
	var memory []int
	for i := range f.VMs {
		at, _ := f.HostAt(f.VMs[i].Home)
		start, pow = start+at*pow, pow*tightHosts
		memory = append(memory, int(f.VMs[i].Memory/hypervisor.GiB))
	}
	seen := make([]bool, pow)
	seen[start] = true
	for layer, moves := []int{start}, 0; len(layer) > 0; moves++ {
		var next []int
		for _, state := range layer {
			home, free := unpack(state, memory)
			if free[0] == tightMemory {
				return moves
			}
			for vm, place := 0, 1; vm < len(memory); vm, place = vm+1, place*tightHosts {
				for to := 1; to < tightHosts; to++ {
					if to == home[vm] || free[to] < memory[vm] {
						continue
					}
					if s := state + (to-home[vm])*place; !seen[s] {
						seen[s] = true
						next = append(next, s)
					}
				}
			}
		}
		layer = next
	}
	return -1
}

// unpack returns where each VM is in a state, and how much is free on each host.
func unpack(state int, memory []int) (home []int, free [tightHosts]int) {
	for i := range free {
		free[i] = tightMemory
	}
	for _, m := range memory {
		at := state % tightHosts
		state /= tightHosts
		home = append(home, at)
		free[at] -= m
	}
	return home, free
}
