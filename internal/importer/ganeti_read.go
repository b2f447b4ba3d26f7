package importer

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
)

const (
	// maxLine is how long a line may be.
	maxLine = 1 << 20
	// maxAmount keeps sums from overflowing: 1 EiB in MiB, and more CPUs than any
	// machine has.
	maxAmount = 1 << 40
	maxCPUs   = 1 << 20
	// namespace is where all VMs are: Ganeti has none.
	namespace = "default"
	// defaultRatio is how many virtual CPUs share a CPU.
	// Source: Ganeti 3.0 lib/constants (ipolicyDefaultsVcpuRatio).
	defaultRatio = 4
)

// IsGaneti reports whether a file that starts so is in this format: its first line, if any,
// describes a group, and the line after an empty one a node.
func IsGaneti(start []byte) bool {
	first, rest, _ := strings.Cut(string(start), "\n")
	fields := strings.Split(strings.TrimSuffix(first, "\r"), "|")
	if len(fields) >= 3 && len(fields) <= 5 {
		_, known := allocations[fields[2]]
		return known
	}
	node, _, _ := strings.Cut(rest, "\n")
	return first == "" && strings.Count(node, "|") >= 8
}

// allocations are the words for whether a group takes instances.
var allocations = map[string]bool{"preferred": true, "last_resort": true, "unallocable": false}

// ReadGaneti reads a fleet. The name is the file's, for problems; d is what Ganeti does not
// know. An error is [inventory.Problems], unless r fails or d is invalid.
func ReadGaneti(name string, r io.Reader, d inventory.Defaults) (*inventory.Fleet, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	c := &cluster{Builder: inventory.NewBuilder(name), defaults: d,
		groups: map[string]*group{}, names: map[string]*group{}, nodes: map[string]*node{},
		known: map[string]int{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	section := 0
	for lines.Scan() && !c.Full() {
		c.line++
		text := strings.TrimSuffix(lines.Text(), "\r")
		if text == "" {
			section++
			continue
		}
		if section >= len(sections) {
			c.wrong("", "there is a sixth section: groups, nodes, instances, tags and "+
				"policies are separated by exactly one empty line")
			break
		}
		sections[section](c, strings.Split(text, "|"))
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		c.Errorf(c.line+1, "", "the line is longer than %d KiB", maxLine>>10)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case section < 3:
		c.wrong("", "it ends in section %d of 4 at least: is it cut off?", section+1)
	}
	c.EvictBy(evacuation.LiveMigrate) // as an evacuation of a node does
	c.finish()
	return c.Fleet()
}

// sections are how the lines of each section are read.
var sections = [...]func(*cluster, []string){
	(*cluster).group, (*cluster).node, (*cluster).instance, (*cluster).tag, (*cluster).policy,
}

// A cluster is what was read so far. Hosts and VMs are added at the end: they depend on
// tags and policies, which come last.
type cluster struct {
	*inventory.Builder
	defaults  inventory.Defaults
	line      int
	groups    map[string]*group // by UUID
	names     map[string]*group // by name
	nodes     map[string]*node
	known     map[string]int // lines of instances, by name
	order     []*node
	instances []instance
	tags      []string
	ratio     float64 // the cluster's; 0: not said
}

type group struct {
	name   string
	closed bool
	ratio  float64 // 0: the cluster's
}

type node struct {
	line               int
	name               string
	total, own, free   hypervisor.Bytes
	cpus, reservedCPUs int
	offline            bool
	group              *group
	tags               []string
	running            hypervisor.Bytes // memory of its running instances
	virtual, instances int              // CPUs of these, and how many there are
	held               size             // by instances that are stopped
}

type instance struct {
	line               int
	name               string
	memory             hypervisor.Bytes
	cpus               int
	running            bool
	primary, secondary string
	template           string
	tags               []string
}

// wrong reports a problem of the present line.
func (c *cluster) wrong(field, format string, args ...any) {
	c.Errorf(c.line, field, format, args...)
}

// short reports a line that has fewer fields than it needs.
func (c *cluster) short(what string, fields []string, least int) bool {
	if len(fields) < least {
		c.wrong(what+" "+fields[0], "needs %d fields separated by |, has %d", least, len(fields))
		return true
	}
	return false
}

func (c *cluster) group(f []string) {
	if c.short("group", f, 3) {
		return
	}
	open, known := allocations[f[2]]
	if !known {
		c.wrong("group "+f[0]+" alloc_policy",
			"unknown word %q; use preferred, last_resort or unallocable", f[2])
	}
	g := &group{name: f[0], closed: !open}
	if c.groups[f[1]] != nil || c.names[f[0]] != nil {
		c.wrong("group "+f[0], "there is already a group of this name or UUID")
	}
	c.groups[f[1]], c.names[f[0]] = g, g
}

func (c *cluster) node(f []string) {
	if c.short("node", f, 8) {
		return
	}
	at := "node " + f[0]
	n := &node{line: c.line, name: f[0], group: &group{}}
	n.offline = f[7] == "Y"
	if !strings.Contains("YNM", f[7]) || len(f[7]) != 1 {
		c.wrong(at+" offline", "unknown word %q; use Y, N or M", f[7])
	}
	for _, text := range f[1:7] {
		n.offline = n.offline || text == "?"
	}
	n.total, n.own = c.amount(at+" t_mem", f[1]), c.amount(at+" n_mem", f[2])
	n.free, n.cpus = c.amount(at+" f_mem", f[3]), c.count(at+" pcpus", f[6])
	if len(f) > 8 {
		if n.group = c.groups[f[8]]; n.group == nil {
			c.wrong(at+" group", "there is no group with the UUID %q", f[8])
			return
		}
	}
	if len(f) > 10 {
		n.tags = words(f[10])
	}
	if len(f) > 13 {
		n.reservedCPUs = c.count(at+" os_vcpus", f[13])
	}
	if c.nodes[n.name] == nil {
		c.nodes[n.name] = n
	}
	if len(f) > 11 && f[11] == "Y" {
		c.Warnf(c.line, at+" excl_stor", "exclusive storage and spindles are not looked at")
	}
	c.order = append(c.order, n)
}

func (c *cluster) instance(f []string) {
	if c.short("instance", f, 8) {
		return
	}
	at := "instance " + f[0]
	running, known := states[f[4]]
	if !known {
		c.wrong(at+" status", "unknown word %q; use running, ADMIN_down or another of Ganeti's",
			f[4])
	}
	i := instance{line: c.line, name: f[0], memory: c.amount(at+" mem", f[1]),
		cpus: c.count(at+" vcpus", f[3]), running: running, primary: f[6], secondary: f[7]}
	if len(f) > 8 {
		i.template = f[8]
	}
	if len(f) > 9 {
		i.tags = words(f[9])
	}
	on := c.nodes[i.primary]
	if on == nil {
		c.wrong(at+" primary", "there is no node %q", i.primary)
		return
	}
	switch {
	case i.running:
		on.running += i.memory
		on.virtual, on.instances = min(on.virtual+max(1, i.cpus), maxCPUs), on.instances+1
	case f[4] != offline:
		on.held = size{on.held.memory + i.memory, min(on.held.cpus+max(1, i.cpus), maxCPUs)}
	}
	if i.template == "drbd" && i.secondary == i.primary {
		c.wrong(at+" secondary", "it is the primary, too")
	}
	c.unread(at, &i, f)
	if first, twice := c.known[i.name]; twice {
		c.wrong(at, "line %d has an instance of this name. Htools keep both and find the last by "+
			"name; here a name stands for one VM: rename one of them", first)
		return
	}
	c.known[i.name] = i.line
	c.instances = append(c.instances, i)
}

// unread warns of what is not looked at and may change an answer.
func (c *cluster) unread(at string, i *instance, f []string) {
	if f[4] == "ERROR_wrongnode" {
		c.Warnf(c.line, at+" status", "ERROR_wrongnode: it runs on another node than its primary, "+
			"which is not said; it counts on %s", i.primary)
	}
	for _, tag := range i.tags {
		if strings.HasPrefix(tag, "htools:desiredlocation:") {
			c.Warnf(c.line, at+" tags", "desired locations are not looked at")
		}
	}
}

// offline is the state of an instance that is not to be started: it has no memory and no CPUs. All others may be
// started at any time, on their primary node.
// Source: Ganeti 2.x HTools/Instance.hs (instanceDown, notOffline).
const offline = "ADMIN_offline"

// states are Ganeti's words for what an instance does, and whether that is to run.
var states = map[string]bool{
	"running": true, "ERROR_up": true, "ERROR_wrongnode": true,
	"ADMIN_down": false, offline: false, "USER_down": false, "ERROR_down": false,
	"ERROR_nodedown": false, "ERROR_nodeoffline": false,
}

func (c *cluster) tag(f []string) { c.tags = append(c.tags, strings.Join(f, "|")) }

func (c *cluster) policy(f []string) {
	if c.short("policy", f, 6) {
		return
	}
	at := "policy " + f[0]
	ratio, err := strconv.ParseFloat(f[4], 64)
	if err != nil || !(ratio > 0 && ratio <= 1000) {
		c.wrong(at+" vcpu_ratio", "needs a number above 0 and at most 1000, has %q", f[4])
		return
	}
	if g := c.names[f[0]]; g != nil {
		g.ratio = ratio
		return
	}
	c.ratio = ratio // the cluster's policy bears the cluster's name
}

// amount reads MiB. A node that is offline has question marks.
func (c *cluster) amount(field, text string) hypervisor.Bytes {
	return hypervisor.Bytes(c.number(field, text, maxAmount)) * hypervisor.MiB
}

func (c *cluster) count(field, text string) int { return int(c.number(field, text, maxCPUs)) }

func (c *cluster) number(field, text string, most int64) int64 {
	if text == "?" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > most {
		c.wrong(field, "needs a whole number from 0 to %d, has %q", most, text)
		return 0
	}
	return n
}

// words splits a list of tags.
func words(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}
