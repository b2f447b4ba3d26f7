package importer

import (
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
)

// A service is nova-compute on a host: whether Nova places servers there, and the host's zone.
type service struct {
	*novaObject
	host string
}

// A group is a server group.
type serverGroup struct {
	*novaObject
	id, name string
	policy   placement.GroupPolicy
	most     int      // of its members that may be on one host
	members  []string // IDs of servers
}

// service reads a service; those of other programs place no servers.
func (c *cloud) service(o *novaObject) {
	if binary := o.text("Binary", "binary"); binary != "nova-compute" {
		return
	}
	s := service{novaObject: o, host: o.text("Host", "host")}
	o.what = "service of " + s.host
	c.services = append(c.services, s)
}

// tell says what the services say of hypervisors: their status, their state, and their zone.
func (c *cloud) tell() {
	for _, s := range c.services {
		h := c.byName[s.host]
		if h == nil {
			s.warn("", "there is no hypervisor of this host, or there are several: it is left out")
			continue
		}
		h.judged = h.judged || s.has("Status") || s.has("status")
		h.open = h.open && !strings.EqualFold(s.text("Status", "status"), "disabled")
		h.up = h.up && !strings.EqualFold(s.text("State", "state"), "down")
		h.zone = s.text("Zone", "zone")
	}
	unknown := 0
	for _, h := range c.hosts {
		if !h.judged {
			unknown++
		}
	}
	if unknown > 0 {
		c.Warnf(0, "", "whether %s disabled is not known, and each counts as a target: add the output of openstack compute "+
			"service list -f json", areOf(unknown, "hypervisor"))
	}
}

// areOf writes "1 hypervisor is" or "2 hypervisors are".
func areOf(n int, what string) string {
	if n == 1 {
		return humanize.Count(n, what) + " is"
	}
	return humanize.Count(n, what) + " are"
}

// serverGroup reads a server group.
func (c *cloud) serverGroup(o *novaObject) {
	g := serverGroup{novaObject: o, id: o.text("ID", "Id", "id"), name: o.text("Name", "name"),
		members: o.words("Members", "members")}
	o.what = "server group " + g.name
	policies := o.words("Policy", "policy", "Policies", "policies")
	for _, known := range []placement.GroupPolicy{placement.Affinity, placement.AntiAffinity, placement.SoftAffinity,
		placement.SoftAntiAffinity} {
		if slices.Contains(policies, string(known)) {
			g.policy = known
		}
	}
	if g.policy == "" {
		o.warn("policy", "%q is not known: the group is not looked at", strings.Join(policies, ", "))
		return
	}
	for _, field := range []string{"Rules", "rules"} {
		if rules, is := o.inner(field); is {
			most, _ := rules.number("max_server_per_host")
			g.most = int(min(most, maxCPUs))
		}
	}
	if text := o.text("Rules", "rules"); text != "" && text != "{}" {
		o.warn("rules", "%q is not read: one member on a host is taken", text)
	}
	c.groups = append(c.groups, g)
}

// words returns the words of the first of several fields that is there: a list, or a text with commas.
func (o *novaObject) words(names ...string) (all []string) {
	for _, name := range names {
		switch v := o.fields[name].(type) {
		case string:
			for word := range strings.SplitSeq(v, ",") {
				all = append(all, strings.TrimSpace(word))
			}
		case []any:
			for _, item := range v {
				if word, is := item.(string); is {
					all = append(all, word)
				}
			}
		}
		if len(all) > 0 {
			return all
		}
	}
	return nil
}

// grouped returns the rules of the groups, by the IDs of their members.
func (c *cloud) grouped() map[string][]placement.GroupRule {
	named := map[string]int{}
	for i := range c.groups {
		named[c.groups[i].name]++
	}
	all := map[string][]placement.GroupRule{}
	for i := range c.groups {
		g := &c.groups[i]
		r := placement.GroupRule{Group: g.name, Policy: g.policy, Max: g.most}
		if g.name == "" || named[g.name] > 1 {
			r.Group = g.id
		}
		for _, id := range g.members {
			all[id] = append(all[id], r)
		}
	}
	return all
}

// zone returns the zone that a server is in, and the one that it is bound to: "" is none.
func (s *server) zone() (in, bound string) {
	return s.text("Availability Zone", "OS-EXT-AZ:availability_zone"),
		s.text("Pinned Availability Zone", "pinned_availability_zone")
}

// findZones notes the zones of hosts of which no service tells: those of their servers.
func (c *cloud) findZones() {
	zones, bound, told := map[string]bool{}, false, false
	for i := range c.servers {
		s := &c.servers[i]
		in, pinned := s.zone()
		bound, told = bound || pinned != "", told || s.tellsPinned()
		if h := c.byName[s.host]; h != nil && h.zone == "" {
			h.zone = in
		}
	}
	unknown := 0
	for _, h := range c.hosts {
		if h.zone == "" {
			unknown++
		}
		if h.zone != "" {
			zones[h.zone] = true
		}
	}
	switch {
	case bound && unknown > 0:
		c.Warnf(0, "", "the zone of %s not known, and no server that is bound to a zone goes there: add the output of openstack "+
			"compute service list -f json", areOf(unknown, "hypervisor"))
	case len(zones) > 1 && !told && len(c.servers) > 0:
		c.Warnf(0, "", "there are several availability zones, and which servers are bound to theirs is not known: none is kept in "+
			"its zone; print the servers with --os-compute-api-version 2.96 or later")
	}
}

// tellsPinned reports whether a server says if it is bound to a zone.
func (s *server) tellsPinned() bool {
	for _, name := range []string{"Pinned Availability Zone", "pinned_availability_zone"} {
		if _, is := s.fields[name]; is {
			return true
		}
	}
	return false
}

// bind adds what a server's zone and groups ask of hosts.
func (s *server) bind(v *inventory.VM, rules map[string][]placement.GroupRule) {
	if _, bound := s.zone(); bound != "" {
		v.Placement.Zones = []string{bound}
	}
	v.Placement.Groups = rules[s.id]
}

// unread warns of rules of Nova that are not looked at.
func (c *cloud) unread() {
	groups := ""
	if len(c.groups) == 0 && c.pages[serverGroups] == 0 {
		groups = "server groups (add the output of openstack server group list --all-projects --long -f json), "
	}
	c.Warnf(0, "", "not looked at: %saggregates, and what properties of images ask of hosts", groups)
}
