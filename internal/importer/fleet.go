package importer

import (
	"math"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
)

// The labels of hosts.
const (
	groupLabel = "group"
	hostLabel  = "host"
	// acceptsLabel and a migration tag say that the host takes VMs from hosts with it.
	acceptsLabel = "accepts/"
)

// finish adds hosts and VMs to the fleet.
func (c *cluster) finish() {
	for _, n := range c.order {
		if n.offline && n.instances > 0 {
			c.Warnf(n.line, "node "+n.name, "it is offline, and %d of its instances run: it counts "+
				"as drained, not as dead", n.instances)
		}
		c.AddHost(n.line, c.host(n))
	}
	for _, i := range c.instances {
		c.AddVM(i.line, c.vm(&i))
	}
}

func (c *cluster) host(n *node) inventory.Host {
	ratio := n.group.ratio
	if ratio == 0 {
		ratio = c.ratio
	}
	if ratio == 0 {
		ratio = defaultRatio
	}
	if n.total == 0 && !n.offline {
		c.Errorf(n.line, "node "+n.name+" t_mem", "a node that is not offline has memory")
	}
	// A node that is offline and whose instances run is drained: its numbers may be missing.
	n.total, n.cpus = max(n.total, n.running), max(n.cpus, n.needs(ratio))
	held := n.holds()
	usable := max(n.running, min(n.total-n.own, n.free+n.running)-held.memory)
	facts := &placement.Facts{
		Memory: placement.DeviceInventory{Total: int64(n.total), Reserved: int64(n.total - usable)},
		CPUs:   placement.DeviceInventory{Total: int64(n.cpus), Ratio: ratio},
	}
	labels := placement.Labels{groupLabel: n.group.name, hostLabel: n.name}
	for _, tag := range n.tags {
		if prefix := longest(tag, c.under("htools:nlocation:")); prefix != "" {
			labels[prefix] = strings.TrimPrefix(tag, prefix+":")
		}
	}
	for _, tag := range c.accepted(n) {
		labels[acceptsLabel+tag] = "yes"
	}
	h := inventory.Host{Labels: labels, Cordoned: n.offline || n.group.closed,
		Down:  n.offline && n.instances == 0,
		Facts: facts}
	h.Host = hypervisor.Host{Name: hypervisor.HostName(n.name),
		Memory: hypervisor.Bytes(facts.Memory.Capacity()),
		// What the node itself uses is counted like virtual CPUs.
		// Source: Ganeti 3.0 HTools/Node.hs (create: uCpu begins with cpu_n; hiCpu is the ratio
		// times all of them).
		CPUs: max(0, int(facts.CPUs.Capacity())-n.reservedCPUs-held.cpus),
		Link: c.defaults.LinkOf(labels)}
	return h
}

// holds returns what a node keeps for instances that are stopped: they start where they are.
// Source: Ganeti 2.x HTools/Loader.hs (checkData: the memory of instances that are down is taken off what is
// free). That of 3.0 counts their CPUs, and no memory: its nodes may have none left when they start.
func (n *node) holds() size {
	if n.offline {
		return size{} // nothing starts there
	}
	return n.held
}

func (c *cluster) vm(i *instance) inventory.VM {
	v := inventory.VM{Namespace: namespace, Migratable: true}
	v.ID = hypervisor.VMID(namespace + "/" + i.name)
	v.Memory, v.CPUs = i.memory, max(1, i.cpus)
	v.Workload = c.defaults.LoadOf(nil).Workload(i.memory)
	if i.running {
		v.Host = hypervisor.HostName(i.primary)
	}
	on := c.nodes[i.primary]
	v.Placement.Selector = placement.Labels{}
	if len(c.groups) > 1 {
		v.Placement.Selector[groupLabel] = on.group.name
	}
	for _, tag := range c.migrationTags(on) {
		v.Placement.Selector[acceptsLabel+tag] = "yes"
	}
	for _, tag := range i.tags {
		if longest(tag, c.under("htools:iextags:")) != "" {
			v.Placement.Apart = append(v.Placement.Apart, tag)
		}
	}
	switch i.template {
	case "plain", "file":
		v.Migratable, v.NotMigratableReason = false, "its disks are on its node: "+i.template
		v.Placement.Affinity = onOneOf(i.primary) // it does not start elsewhere, either
	case "drbd":
		v.Placement.Affinity = onOneOf(i.primary, i.secondary) // a migration swaps them
		if c.nodes[i.secondary] == nil {
			c.Errorf(i.line, "instance "+i.name+" secondary", "there is no node %q", i.secondary)
		}
	}
	return v
}

// onOneOf is the condition to be on one of some nodes.
func onOneOf(nodes ...string) [][]placement.Requirement {
	return [][]placement.Requirement{{{Key: hostLabel, Operator: placement.In, Values: nodes}}}
}

// needs returns the CPUs that a node has at least, as its running instances say.
func (n *node) needs(ratio float64) int {
	if !n.offline || n.virtual == 0 {
		return 0
	}
	return int(math.Ceil(float64(n.virtual+n.reservedCPUs) / ratio))
}

// under returns what the cluster's tags with a prefix say.
func (c *cluster) under(prefix string) []string {
	var all []string
	for _, tag := range c.tags {
		if word, found := strings.CutPrefix(tag, prefix); found {
			all = append(all, word)
		}
	}
	return all
}

// migrationTags are those tags of a node that a target must accept.
func (c *cluster) migrationTags(n *node) []string {
	known := c.under("htools:migration:")
	return slices.DeleteFunc(slices.Clone(n.tags), func(tag string) bool {
		return longest(tag, known) == ""
	})
}

// accepted are the tags that a node accepts of a source: its own, and those from which one
// of its own may be reached. Source: Ganeti 3.0 HTools/Tags.hs (getRecvMigRestrictions).
func (c *cluster) accepted(n *node) []string {
	own := c.migrationTags(n)
	all := slices.Clone(own)
	for _, rule := range c.under("htools:allowmigration:") {
		from, to, _ := strings.Cut(rule, "::")
		if slices.Contains(own, to) {
			all = append(all, from)
		}
	}
	return all
}

// longest returns the longest prefix that a tag is under: "power" of "power:a".
func longest(tag string, prefixes []string) string {
	best := ""
	for _, p := range prefixes {
		if len(p) > len(best) && strings.HasPrefix(tag, p+":") {
			best = p
		}
	}
	return best
}
