package importer

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
)

// Defaults of Write for missing data: disks are never the limiting resource.
const (
	groupID      = "00000000-0000-0000-0000-000000000000"
	nodeDisk     = 100 << 20 // MiB
	instanceDisk = 10 << 10
	specs        = "1024,1,10240,1,1,1|1,1,1,1,1,1;1073741824,1048576,1073741824,64,64,64"
	templates    = "plain,diskless,file,sharedfile,blockdev,drbd,rbd,ext"
)

// WriteGaneti writes a fleet for htools, with every disk on shared storage. Names lose their
// namespace when it is "default". Htools are not told: conditions on hosts other than to be
// apart, over-commitment (CPUs are what VMs may use together), and everything about
// migrations. VMs that are not migratable have plain disks. [NotWritten] says what of a fleet that is.
//
// Every instance has a node: one that does not run gets the first. What the format cannot hold
// is cut to the most that it can: 1 EiB of memory, 1,048,576 CPUs.
func WriteGaneti(w io.Writer, f *inventory.Fleet) error {
	if len(f.Hosts) == 0 && len(f.VMs) > 0 {
		return fmt.Errorf("the fleet has %d VMs and no hosts: every instance of Ganeti has a node",
			len(f.VMs))
	}
	out := writer{Writer: bufio.NewWriter(w), nodes: map[hypervisor.HostName]string{},
		down: map[hypervisor.HostName]bool{}, taken: map[string]bool{}}
	fmt.Fprintf(out, "all|%s|preferred||\n\n", groupID)
	out.hosts(f)
	fmt.Fprintln(out)
	out.taken = map[string]bool{}
	for i := range f.VMs {
		out.vm(&f.VMs[i])
	}
	fmt.Fprintln(out)
	for _, group := range out.exclusive {
		fmt.Fprintf(out, "htools:iextags:%s\n", group)
	}
	fmt.Fprintf(out, "\n|%s|%s|1.0|1024.0\nall|%s|%s|1.0|1024.0\n", specs, templates, specs,
		templates)
	return out.Flush()
}

// A writer knows by which names it has written what.
type writer struct {
	*bufio.Writer
	first     string                         // node, for instances that do not run
	nodes     map[hypervisor.HostName]string // their names in the file
	down      map[hypervisor.HostName]bool
	taken     map[string]bool // names that are in the section
	exclusive []string        // groups, in the order in which they were written
}

func (out *writer) hosts(f *inventory.Fleet) {
	used := map[hypervisor.HostName]hypervisor.Bytes{}
	for i := range f.VMs {
		if v := &f.VMs[i]; v.Host != "" {
			used[v.Host] += hypervisor.MiB * hypervisor.Bytes(takes(v))
		}
	}
	for i := range f.Hosts {
		h := &f.Hosts[i]
		offline := "N"
		if h.Cordoned || h.Down || h.Memory < hypervisor.MiB || outOfService(h) {
			offline = "Y"
		}
		name := out.unique(string(h.Name))
		out.nodes[h.Name], out.down[h.Name] = name, h.Down
		out.first = cmp.Or(out.first, name)
		fmt.Fprintf(out, "%s|%d|0|%d|%d|%d|%d|%s|%s|1||N|0|0|1.0\n", name,
			min(h.Memory/hypervisor.MiB, maxAmount),
			min(max(0, (h.Memory-given(h, used))/hypervisor.MiB), maxAmount), nodeDisk,
			nodeDisk, min(h.CPUs, maxCPUs), offline, groupID)
	}
}

// outOfService reports whether a host takes no VMs although it is up.
func outOfService(h *inventory.Host) bool {
	return h.Facts != nil && (h.Facts.Disabled || h.Facts.Maintenance)
}

// given returns what running instances have of a host: none run on one that is down.
func given(h *inventory.Host, used map[hypervisor.HostName]hypervisor.Bytes) hypervisor.Bytes {
	if h.Down {
		return 0
	}
	return used[h.Name]
}

// takes returns what a VM takes of its node, in MiB.
func takes(v *inventory.VM) int64 {
	vm := inventory.PlacementVM(v)
	return min(up(vm.Demand()), maxAmount)
}

// vm writes an instance.
func (out *writer) vm(v *inventory.VM) {
	name := out.unique(strings.TrimPrefix(string(v.ID), namespace+"/"))
	status, template, node := "running", "ext", out.nodes[v.Host]
	if !v.Migratable {
		template = "plain"
	}
	switch {
	case v.Host == "":
		status, node = offline, out.first // it has nothing of any node
	case out.down[v.Host]:
		status = "ERROR_nodeoffline"
	}
	var tags []string
	for _, group := range v.Placement.Apart {
		group = word(strings.ReplaceAll(group, ",", "_"))
		if tags = append(tags, group+":1"); !slices.Contains(out.exclusive, group) {
			out.exclusive = append(out.exclusive, group)
		}
	}
	vm := inventory.PlacementVM(v)
	fmt.Fprintf(out, "%s|%d|%d|%d|%s|Y|%s||%s|%s|1|-|N\n", name, takes(v), instanceDisk,
		min(max(1, vm.DemandCPUs()), maxCPUs), status, node, template, strings.Join(tags, ","))
}

// unique returns a name that separates no fields and that no other line of the section has.
func (out *writer) unique(name string) string {
	name = word(name)
	free := name
	for n := 2; out.taken[free]; n++ {
		free = fmt.Sprintf("%s_%d", name, n)
	}
	out.taken[free] = true
	return free
}

// up returns whole MiB, rounded up.
func up(b hypervisor.Bytes) int64 {
	return int64(cmp.Or(b/hypervisor.MiB+min(1, b%hypervisor.MiB), 1))
}

// word takes out of a name what separates fields and lines.
func word(text string) string {
	return strings.Map(func(c rune) rune {
		if c == '|' || c < ' ' {
			return '_'
		}
		return c
	}, text)
}
