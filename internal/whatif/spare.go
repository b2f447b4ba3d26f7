package whatif

import (
	"fmt"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/plan"
)

// A Spare is hosts that would let more VMs leave.
type Spare struct {
	Hosts int `json:"hosts"`
	// Like is the host that each of them is like: the drained one with the most memory.
	Like hypervisor.HostName `json:"like"`
	Left int                 `json:"left"` // VMs that stay even then
}

// mostSpare is how many more hosts are tried.
const mostSpare = 3

// spare plans the drain again with one empty host more, and then a few. It returns the fewest with which
// the fewest VMs stay; nil where all leave as it is, or none helps.
func spare(s *config.Scenario, hosts []hypervisor.HostName, params evacuation.Params, left int) *Spare {
	like := largest(s.Fleet, hosts)
	if left == 0 || like == nil {
		return nil
	}
	var best *Spare
	fleet := *s.Fleet
	fleet.Hosts = append([]inventory.Host{}, s.Fleet.Hosts...)
	for n := 1; n <= mostSpare; n++ {
		more := *like
		more.Name, more.Cordoned = hypervisor.HostName(fmt.Sprintf("~spare-%d", n)), false // after all others
		fleet.Hosts = append(fleet.Hosts, more)
		d := plan.DrainFleet(&fleet, hosts, params)
		a := plan.Drain(d.Fleet, hosts)
		stay := len(d.Groups.Each(a.Left))
		if stay < left {
			best, left = &Spare{Hosts: n, Like: like.Name, Left: stay}, stay
		}
		if stay == 0 {
			break
		}
	}
	return best
}

// largest returns that of some hosts with the most memory.
func largest(f *inventory.Fleet, hosts []hypervisor.HostName) (most *inventory.Host) {
	for i := range f.Hosts {
		h := &f.Hosts[i]
		for _, name := range hosts {
			if h.Name == name && !h.Down && (most == nil || h.Memory > most.Memory) {
				most = h
			}
		}
	}
	return most
}
