package importer

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/yamldoc"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
)

// What Nova's configuration says by default. Source: Nova 2026.1
// nova/conf/compute.py (initial_cpu_allocation_ratio, reserved_host_memory_mb).
const (
	cpuRatio       = 4
	reservedMemory = 512 * hypervisor.MiB
)

// A cloud is what was read so far.
type cloud struct {
	*inventory.Builder
	defaults inventory.Defaults
	text     []byte // of the present file
	counted  int64  // of it, up to here
	lines    int    // there are so many
	hosts    []*novaHost
	byName   map[string]*novaHost // by all names; nil for one that several have
	sizes    map[string]size      // of flavors, by name and ID
	asks     map[string]ask       // of the same
	servers  []server
	known    map[string]place // servers, by ID
	named    map[string]int   // how many servers have a name
	services []service
	groups   []serverGroup
	rules    map[string][]placement.GroupRule // of groups, by the IDs of servers

	pages  map[string]int     // by kind: lists in answers of the API
	goesOn map[string][]place // by kind: where one of them says that there is a further one
	blank  bool               // a list, of whatever, has nothing in it
}

type novaHost struct {
	*novaObject
	name     string
	memory   hypervisor.Bytes
	cpus     int
	disk     hypervisor.Bytes
	held     size // by servers that are shut off
	up, open bool
	judged   bool   // something says whether it is open
	zone     string // "" is not known
}

// A size is that of a flavor.
type size struct {
	memory hypervisor.Bytes
	cpus   int
}

type server struct {
	*novaObject
	id, name, project string
	status, host      string
	size              size
	ask               ask
}

func newCloud(name string, d inventory.Defaults) *cloud {
	return &cloud{Builder: inventory.NewBuilder(name), defaults: d,
		byName: map[string]*novaHost{}, sizes: map[string]size{}, asks: map[string]ask{}, known: map[string]place{},
		named: map[string]int{}, pages: map[string]int{}, goesOn: map[string][]place{}}
}

func (c *cloud) hypervisor(o *novaObject) {
	h := &novaHost{novaObject: o, name: o.text("Hypervisor Hostname", "hypervisor_hostname")}
	o.what = "hypervisor " + h.name
	if kind := o.text("Hypervisor Type", "hypervisor_type"); strings.EqualFold(kind, "ironic") {
		o.warn("type", "machines without a hypervisor are left out")
		return
	}
	memory, hasMemory := o.number("Memory MB", "memory_mb")
	cpus, hasCPUs := o.number("vCPUs", "vcpus")
	if !hasMemory || !hasCPUs {
		o.wrong("", "it has no memory_mb and vcpus: print the list with --long and with "+
			"--os-compute-api-version 2.87, which is the last that has them")
		return
	}
	disk, _ := o.number("Local GB", "local_gb")
	h.memory = hypervisor.Bytes(memory) * hypervisor.MiB
	h.cpus, h.disk = int(min(cpus, maxCPUs)), hypervisor.Bytes(min(disk, 1<<30))*hypervisor.GiB
	h.up = !strings.EqualFold(o.text("State", "state"), "down")
	h.judged = o.has("Status") || o.has("status")
	h.open = !strings.EqualFold(o.text("Status", "status"), "disabled")
	c.hosts = append(c.hosts, h)
	aliases := []string{h.name}
	if service, is := o.inner("service"); is {
		aliases = append(aliases, service.text("host"))
	}
	if first, _, dotted := strings.Cut(h.name, "."); dotted {
		aliases = append(aliases, first)
	}
	for i, name := range aliases {
		if other, taken := c.byName[name]; taken && other != h && i > 0 {
			c.byName[name] = nil
		} else {
			c.byName[name] = h
		}
	}
}

func (c *cloud) flavor(o *novaObject) {
	name := o.text("Name", "name")
	o.what = "flavor " + name
	s, whole := o.size()
	if !whole {
		o.wrong("", "it needs RAM and VCPUs above 0")
		return
	}
	a := o.ask(o.specs(), s.cpus)
	for _, name := range []string{name, o.text("ID", "id")} {
		if name != "" {
			c.sizes[name], c.asks[name] = s, a
		}
	}
}

// size reads a flavor's memory and CPUs, and whether both are there.
func (o *novaObject) size() (size, bool) {
	memory, _ := o.number("RAM", "ram")
	cpus, _ := o.number("VCPUs", "vcpus")
	return size{hypervisor.Bytes(memory) * hypervisor.MiB, int(min(cpus, maxCPUs))},
		memory > 0 && cpus > 0
}

func (c *cloud) server(o *novaObject) {
	s := server{novaObject: o, id: o.text("ID", "id"), name: o.text("Name", "name"),
		project: cmp.Or(o.text("Project ID", "tenant_id"), "default"),
		status:  strings.ToUpper(o.text("Status", "status"))}
	o.what = "server " + cmp.Or(s.name, s.id)
	if s.status == "DELETED" {
		return // it has nothing any more
	}
	s.host = o.text("Host", "OS-EXT-SRV-ATTR:hypervisor_hostname", "OS-EXT-SRV-ATTR:host",
		"hypervisor_hostname")
	switch first, twice := c.known[s.id]; {
	case s.id == "":
		o.wrong("ID", "it has none")
		return
	case twice:
		o.wrong("ID", "there is already a server with it, in line %d of %s", first.line, first.file)
		return
	}
	c.known[s.id] = o.place
	c.named[s.project+"/"+s.name]++
	c.servers = append(c.servers, s)
}

// finish adds everything to the fleet. Servers come first: those that are shut off hold
// a part of their host.
func (c *cloud) finish() {
	if len(c.hosts) == 0 {
		c.Errorf(0, "", "there are no hypervisors: add the output of openstack hypervisor list "+
			"--long -f json")
		return
	}
	c.complete()
	c.tell()
	c.findZones()
	c.rules = c.grouped()
	for i := range c.servers {
		c.addServer(&c.servers[i])
	}
	c.Warnf(0, "", "Nova's configuration is not known: %d virtual CPUs for each CPU and %v that "+
		"are reserved on each host, its defaults, are taken", cpuRatio, reservedMemory)
	c.unread()
	for _, h := range c.hosts {
		if c.byName[h.name] != h {
			h.wrong("", "there are several hypervisors of this name")
			continue
		}
		c.addHost(h)
	}
}

// complete refuses lists that are not whole: what is not in them would be no VM, and its room
// free.
func (c *cloud) complete() {
	switch {
	case len(c.servers)+c.pages[servers] > 0:
	case c.blank:
		c.Warnf(0, "", "a list is empty: it is taken as that of the servers: there are none")
	default:
		c.hosts[0].wrong("", "no list of servers comes with it: add the output of openstack "+
			"server list --all-projects --long --limit -1 -f json")
	}
	for _, kind := range []string{hypervisors, servers, flavors} {
		if next := c.goesOn[kind]; len(next) > 0 && len(next) >= c.pages[kind] {
			o := novaObject{place: next[len(next)-1], cloud: c, what: kind}
			o.wrong("", "the list goes on in another answer: add that one, too")
		}
	}
}

func (c *cloud) addHost(h *novaHost) {
	facts := &placement.Facts{
		Memory: placement.DeviceInventory{Total: int64(h.memory),
			Reserved: int64(min(h.memory, reservedMemory+h.held.memory))},
		CPUs: placement.DeviceInventory{Total: int64(h.cpus), Ratio: cpuRatio},
		Disk: placement.DeviceInventory{Total: int64(h.disk)},
		Zone: h.zone,
	}
	r := inventory.Host{Facts: facts, Down: !h.up, Cordoned: !h.up || !h.open}
	r.Host = hypervisor.Host{Name: hypervisor.HostName(h.name),
		Memory: hypervisor.Bytes(facts.Memory.Capacity()),
		CPUs:   max(0, int(facts.CPUs.Capacity())-h.held.cpus), Link: c.defaults.LinkOf(nil)}
	file := c.File
	c.File = h.file
	c.AddHost(h.line, r)
	c.File = file
}

// The states in which a server moves live, and those in which its guest does not run when the
// power state does not say.
// Source: Nova 2026.1 nova/compute/api.py (live_migrate); nova/compute/power_state.py;
// nova/api/openstack/common.py (_STATE_MAP).
var (
	moves = map[string]bool{"ACTIVE": true, "PAUSED": true}
	off   = map[string]bool{"SHUTOFF": true, "STOPPED": true, "SUSPENDED": true, "SHELVED": true,
		"SHELVED_OFFLOADED": true, "SOFT_DELETED": true}
)

// powers are the power states, as the API numbers and openstack names them: whether a guest is
// in memory. NOSTATE says nothing.
var powers = map[string]bool{"1": true, "RUNNING": true, "3": true, "PAUSED": true,
	"4": false, "SHUTDOWN": false, "6": false, "CRASHED": false, "7": false, "SUSPENDED": false}

// running reports whether the guest of a server is in its host's memory. One of which it is not
// known counts as there: its room is not free.
func (s *server) running() bool {
	power := strings.ToUpper(s.text("Power State", "OS-EXT-STS:power_state", "power_state"))
	if is, known := powers[power]; known {
		return is
	}
	return !off[s.status]
}

// whyNot returns why a server does not move live; "" is that it does.
func (s *server) whyNot() string {
	switch {
	case !moves[s.status]:
		return fmt.Sprintf("its status is %s; ACTIVE and PAUSED servers move", s.status)
	case !s.running():
		return fmt.Sprintf("its power state is %s, though its status is %s",
			s.text("Power State", "OS-EXT-STS:power_state", "power_state"), s.status)
	}
	return s.ask.whyNot
}

func (c *cloud) addServer(s *server) {
	var known bool
	if inner, is := s.inner("flavor"); is && inner.has("vcpus") {
		if s.size, known = inner.size(); inner.has("extra_specs") {
			s.ask = s.novaObject.ask(inner.specs(), s.size.cpus)
		} else if flavor, listed := c.asks[inner.text("original_name")]; listed {
			s.ask = flavor
		}
	} else {
		id := ""
		if is {
			id = inner.text("id")
		}
		for _, name := range []string{s.text("Flavor ID"), s.text("Flavor Name", "Flavor"), id} {
			if !known {
				s.size, known = c.sizes[name]
				s.ask = c.asks[name]
			}
		}
	}
	if !known {
		s.wrong("flavor", "its size is not known: add the output of openstack flavor list --all "+
			"--long -f json")
		return
	}
	on := c.byName[s.host]
	if on == nil && s.host != "" {
		s.wrong("host", "there is no hypervisor %q, or there are several", s.host)
		return
	}
	if on == nil && !homeless[s.status] {
		s.wrong("host", "it has none, though its status is %s: print the list with --long, as an "+
			"administrator", s.status)
		return
	}
	name := s.name
	if name == "" || c.named[s.project+"/"+name] > 1 || len(name) > inventory.MaxName ||
		strings.ContainsFunc(name, yamldoc.Unprintable) {
		name = s.id
	}
	v := inventory.VM{Namespace: s.project, Labels: placement.Labels{"id": s.id}}
	v.ID = hypervisor.VMID(s.project + "/" + name)
	v.Memory, v.CPUs = s.size.memory, s.size.cpus
	v.Workload = c.defaults.LoadOf(nil).Workload(v.Memory)
	s.demand(&v)
	s.bind(&v, c.rules)
	switch {
	case on == nil:
	case s.running():
		v.Host = hypervisor.HostName(on.name)
	default:
		on.held.memory += s.size.memory
		on.held.cpus = min(maxCPUs, on.held.cpus+cmp.Or(v.CPURequest, v.CPUs))
	}
	v.NotMigratableReason = s.whyNot()
	v.Migratable = v.NotMigratableReason == ""
	s.busy(on)
	c.addVM(s, v)
}

// homeless are the states in which a server may have no host.
var homeless = map[string]bool{"SHELVED_OFFLOADED": true, "BUILD": true, "ERROR": true,
	"SOFT_DELETED": true}

// demand adds what the flavor's extra specs ask of a host. A dedicated CPU takes a whole one,
// of which others share what the ratio allows.
func (s *server) demand(v *inventory.VM) {
	v.Placement.Devices = s.ask.devices
	if own := min(s.ask.own, maxCPUs); own > 0 {
		v.CPURequest = own*cpuRatio + max(0, v.CPUs-own)
	}
}

// busy warns of what keeps a server, or room for it, for a while.
func (s *server) busy(on *novaHost) {
	if task := s.text("Task State", "OS-EXT-STS:task_state"); task != "" && task != "None" &&
		moves[s.status] {
		s.warn("task state", "%s is under way: it does not move before that has ended", task)
	}
	if s.status == "VERIFY_RESIZE" || s.status == "RESIZE" {
		s.warn("status", "%s: its other host keeps room for it, too, which is not counted", s.status)
	}
	if on == nil && s.status == "ERROR" {
		s.warn("status", "ERROR, and it has no host: it takes no room")
	}
}

// addVM adds a VM; the line of a problem is its server's.
func (c *cloud) addVM(s *server, v inventory.VM) {
	file := c.File
	c.File = s.file
	c.AddVM(s.line, v)
	c.File = file
}
