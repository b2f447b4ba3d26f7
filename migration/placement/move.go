package placement

import (
	"github.com/godwit-vm/godwit/hypervisor"
)

// A Move is what a placement depends on that one VM and one host do not show.
// [CompareHosts] makes one. Without it the rules about groups, and those that compare
// source and target, refuse no VM.
type Move struct {
	// Rebuild: the VM is started anew. What only a live move needs is not asked.
	Rebuild bool
	// Source is what is known about the host that the VM comes from.
	Source *Facts
	// Wants is what the VM asks of aggregates, read once.
	Wants []Want
	// Members counts, for each group of the VM, its other members in the fleet.
	Members map[string]int
	// Domains counts them by failure domain.
	Domains map[Domain]int
}

// A Domain is the part of a group in one failure domain.
type Domain struct{ Group, Label, Value string }

// CompareHosts looks at a fleet for what a move of vm from source depends on. It looks
// at every host when vm is in a group; otherwise only for the source.
func CompareHosts(vm *VM, source hypervisor.HostName, hosts []Host) *Move {
	m := &Move{Wants: parseWant(vm.Constraints.Specs)}
	for i := range hosts {
		if hosts[i].Name == source && source != "" {
			m.Source = hosts[i].Facts
			break
		}
	}
	rules := vm.Constraints.Groups
	if len(rules) == 0 {
		return m
	}
	m.Members, m.Domains = map[string]int{}, map[Domain]int{}
	for i := range hosts {
		for r := range rules {
			m.count(&rules[r], &hosts[i], source, earlier(rules[:r], rules[r].Group))
		}
	}
	return m
}

func (m *Move) count(r *GroupRule, host *Host, source hypervisor.HostName, counted bool) {
	n := host.others(r.Group, source)
	if n == 0 {
		return
	}
	if !counted {
		m.Members[r.Group] += n
	}
	if value, ok := host.Labels[r.Domain]; ok && r.Domain != "" {
		d := Domain{r.Group, r.Domain, value}
		m.Domains[d] += n
	}
}

// earlier reports whether a group is named by one of rules.
func earlier(rules []GroupRule, group string) bool {
	for i := range rules {
		if rules[i].Group == group {
			return true
		}
	}
	return false
}

// others returns how many members of a group are on the host, or on their way,
// besides the VM itself, which is counted on its source.
func (h *Host) others(group string, source hypervisor.HostName) int {
	n := h.Groups[group]
	if h.Name == source && source != "" {
		n--
	}
	return max(0, n)
}

// live reports whether the VM moves while it runs, as far as is known.
func (o Options) live() bool { return o.Move == nil || !o.Move.Rebuild }

// asked returns what vm asks of aggregates.
func (o Options) asked(vm *VM) []Want {
	if o.Move != nil || len(vm.Constraints.Specs) == 0 {
		return o.Move.wants()
	}
	return parseWant(vm.Constraints.Specs)
}

func (m *Move) wants() []Want {
	if m == nil {
		return nil
	}
	return m.Wants
}

// sourceFacts returns what is known about the source; nil when nothing is.
func (o Options) sourceFacts() *Facts {
	if o.Move == nil {
		return nil
	}
	return o.Move.Source
}
