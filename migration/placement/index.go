package placement

import (
	"cmp"
	"maps"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
)

// An Index holds hosts in order of preference, most free memory first, and
// counts what is reserved on them. Finding a host and changing one
// cost O(log n) typically; a VM that hosts with enough room refuse for another
// reason costs O(log n) for each of them. An Index belongs to one caller: it
// has no lock. [NewIndex] makes one.
type Index struct {
	inbound int
	filters []Filter
	at      map[hypervisor.HostName]int
	tree    tree
	search  search
	changes int
}

// NewIndex returns an index of hosts that applies [AllFilters]. Not more than inbound migrations are on
// their way to one host at once; 0 is no limit. Hosts that are down, closed or
// at that limit are kept aside, so that no search sees them. Of two hosts with
// one name the later counts.
func NewIndex(inbound int, hosts ...Host) *Index {
	x := &Index{inbound: inbound, at: make(map[hypervisor.HostName]int, len(hosts))}
	x.Use(everything...)
	for _, h := range hosts {
		x.Update(h)
	}
	return x
}

// Use makes the index apply the [Basic] conditions and these filters, in this
// order, instead of what it applied before. Filters that are among the basic
// ones are not applied twice.
func (x *Index) Use(all ...Filter) {
	x.filters = Basic()
	for _, f := range all {
		known := func(g Filter) bool { return g.Name == f.Name }
		if !slices.ContainsFunc(x.filters, known) {
			x.filters = append(x.filters, f)
		}
	}
	x.search.filters = x.filters
}

// Hosts returns all hosts with their present reservations, in no particular order.
// They are shared: they are not to be changed, and hold until the next entry.
func (x *Index) Hosts() []Host { return x.tree.hosts }

// Only returns the host of a name alone, as Hosts does; none when it is not known.
func (x *Index) Only(name hypervisor.HostName) []Host {
	i, ok := x.at[name]
	if !ok {
		return nil
	}
	return x.tree.hosts[i : i+1 : i+1]
}

// CompareHosts is [CompareHosts] for the hosts of the index.
func (x *Index) CompareHosts(vm *VM, source hypervisor.HostName) *Move {
	if len(vm.Constraints.Groups) > 0 {
		return CompareHosts(vm, source, x.tree.hosts)
	}
	m := CompareHosts(vm, "", nil)
	if i, ok := x.at[source]; ok {
		m.Source = x.tree.hosts[i].Facts
	}
	return m
}

// Update adds a host, or replaces all that is known about it: host says what is
// used and reserved, and later changes apply to that. A group that counts
// no VM is dropped.
func (x *Index) Update(host Host) {
	groups := maps.Clone(host.Groups)
	maps.DeleteFunc(groups, func(_ string, n int) bool { return n <= 0 })
	if host.Groups = groups; len(groups) == 0 {
		host.Groups = nil
	}
	host.Load = host.Load.clone()
	i, ok := x.at[host.Name]
	if !ok {
		i = x.tree.add(host)
		x.at[host.Name] = i
	}
	x.tree.hosts[i] = host
	x.settle(i)
}

// Get returns a host with its present reservations. Its labels and taints are
// shared and are not to be changed.
func (x *Index) Get(name hypervisor.HostName) (Host, bool) {
	i, ok := x.at[name]
	if !ok {
		return Host{}, false
	}
	return x.tree.hosts[i].Clone(), true
}

// Changes returns how often the reservations have changed.
func (x *Index) Changes() int { return x.changes }

// Len returns how many hosts there are.
func (x *Index) Len() int { return len(x.tree.hosts) }

// Best returns the host that takes vm and has the most free memory, and among
// equals the one with the smallest name. It reserves nothing. Of o.Inbound and
// the index's own limit the stricter counts.
func (x *Index) Best(vm *VM, o Options) (hypervisor.HostName, bool) {
	i := x.search.best(&x.tree, vm, x.strict(o))
	if i == none {
		return "", false
	}
	return x.tree.hosts[i].Name, true
}

// Check returns every reason why the named host cannot take vm; none means it
// can. A host that the index does not know is one reason.
func (x *Index) Check(vm *VM, host hypervisor.HostName, o Options) []Reason {
	i, ok := x.at[host]
	if !ok {
		return []Reason{{Check: "unknown", Need: "a known host", Have: string(host)}}
	}
	return CheckAll(x.filters, vm, &x.tree.hosts[i], x.strict(o))
}

// A Refusal is a host that cannot take a VM, and every reason why.
type Refusal struct {
	Host hypervisor.HostName
	Why  []Reason
}

// Refusals explains every host that cannot take vm, ordered by name. It looks
// at all hosts: it is for people, not for each decision.
func (x *Index) Refusals(vm *VM, o Options) []Refusal {
	var all []Refusal
	for i := range x.tree.hosts {
		host := &x.tree.hosts[i]
		if why := CheckAll(x.filters, vm, host, x.strict(o)); len(why) > 0 {
			all = append(all, Refusal{Host: host.Name, Why: why})
		}
	}
	slices.SortFunc(all, func(a, b Refusal) int { return cmp.Compare(a.Host, b.Host) })
	return all
}

// A Count says how many hosts one check refused.
type Count struct {
	Check string
	Hosts int
}

// CountRefusals counts the hosts that each filter refuses, the most frequent first, then by
// name. A host with several reasons is counted for each. It writes no explanations and so costs
// far less than [Index.Refusals].
func CountRefusals(all []Filter, vm *VM, hosts []Host, o Options) []Count {
	counts := make([]Count, len(all))
	for i := range all {
		counts[i].Check = all[i].Name
		for j := range hosts {
			if all[i].Refuses(vm, &hosts[j], o) {
				counts[i].Hosts++
			}
		}
	}
	counts = slices.DeleteFunc(counts, func(c Count) bool { return c.Hosts == 0 })
	slices.SortFunc(counts, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Hosts, a.Hosts), cmp.Compare(a.Check, b.Check))
	})
	return counts
}

// strict gives o the stricter of both inbound limits.
func (x *Index) strict(o Options) Options {
	if x.inbound > 0 && (o.Inbound <= 0 || x.inbound < o.Inbound) {
		o.Inbound = x.inbound
	}
	return o
}

// settle carries host i's present state into the tree. A host that refuses
// every VM takes no part.
func (x *Index) settle(i int) {
	x.changes++
	host, o := &x.tree.hosts[i], Options{Inbound: x.inbound}
	refuses := hostDown(nil, host, o) || hostCordoned(nil, host, o) || inboundFull(nil, host, o)
	x.tree.set(i, !refuses)
}
