package explore

import (
	"fmt"
	"iter"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
)

// orders are what operators do in small scenes, to n1 or to web, which is there.
var orders = [][]string{
	{"drain n1"},
	{"drain n1", "undrain n1"},
	{"migrate web"},
	{"migrate web", "cancel web"},
	{"migrate web", "stop web"},
}

// small yields the scenes up to so many hosts and VMs, by name.
func small(hosts, vms int) iter.Seq2[string, string] {
	return func(yield func(name, text string) bool) {
		for h := 2; h <= min(hosts, maxHosts); h++ {
			for v := 1; v <= min(vms, maxVMs); v++ {
				for _, homes := range spreads(h, v) {
					for n := range 4 * len(orders) {
						s := build(homes, n%2 == 1, n/2%2 == 1)
						s.Script = orders[n/4]
						if !yield(s.name(homes), s.String()) {
							return
						}
					}
				}
			}
		}
	}
}

// spreads lists the ways to place VMs on hosts: one or more on the first, which something
// happens to, and no more on any of the others than on the one before.
func spreads(hosts, vms int) (all [][]int) {
	var rest func(homes []int, left int)
	rest = func(homes []int, left int) {
		n := len(homes)
		if n == hosts {
			if left == 0 {
				all = append(all, homes)
			}
			return
		}
		most := left
		if n > 1 {
			most = min(left, homes[n-1])
		}
		for here := most; here >= 0; here-- {
			rest(append(homes[:n:n], here), left-here)
		}
	}
	for first := vms; first >= 1; first-- {
		rest([]int{first}, vms-first)
	}
	return all
}

// build places VMs, the first of them web.
func build(homes []int, busy, tight bool) *Scene {
	s, fullest := &Scene{PostCopy: busy}, 0
	for i, here := range homes {
		host := hypervisor.HostName(fmt.Sprintf("n%d", i+1))
		s.Hosts = append(s.Hosts, Place{Name: host})
		for range here {
			name := hypervisor.VMID("web")
			if n := len(s.VMs); n > 0 {
				name = hypervisor.VMID(fmt.Sprintf("web%d", n+1))
			}
			s.VMs = append(s.VMs, SceneVM{name, host, busy})
		}
		fullest = max(fullest, here)
	}
	for i := range s.Hosts {
		if tight {
			s.Hosts[i].Room = fullest + 1
		}
	}
	return s
}

// name says where how many VMs are, what they are like, and what operators do.
func (s *Scene) name(homes []int) string {
	name := strings.ReplaceAll(strings.Trim(fmt.Sprint(homes), "[]"), " ", "+") + " VMs"
	if s.PostCopy {
		name += ", busy"
	}
	if s.Hosts[0].Room > 0 {
		name += ", little room"
	}
	return name + ", " + strings.Join(s.Script, ", ")
}
