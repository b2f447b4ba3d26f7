package domxml

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/beevik/etree"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// Changes are what differs at the target of a migration. The guest sees none of it.
// A nil field leaves the XML as it is.
type Changes struct {
	// Disks are the images of disks by name, absolute.
	Disks map[string]string
	// Pins are the host CPUs of each virtual CPU; empty unpins them all. Where the
	// emulator and its I/O threads run is not changed.
	Pins [][]int
	// Nodes are the host's NUMA nodes that memory comes from; empty is all of them.
	Nodes []int
}

// Change returns the domain's XML with the changes. All else comes out as it went
// in, byte for byte. It fails with a *[backend.Refused], with [hypervisor.NotFound] for a
// disk that the domain does not have, with [hypervisor.Unsupported] for one that is
// no file and no block device, and with [hypervisor.Invalid] for XML that is no
// domain.
func Change(xml string, c Changes) (string, error) {
	d, err := parse(xml, Domain)
	if err != nil {
		return "", err
	}
	var check checker
	for _, name := range slices.Sorted(maps.Keys(c.Disks)) {
		check.Path("disk "+backend.Quote(name)+": image", c.Disks[name])
	}
	if c.Pins != nil {
		cpus, err := cpusOf(d.Root)
		if err != nil {
			return "", err
		}
		check.Pins(cpus, c.Pins)
	}
	if len(c.Nodes) > 0 {
		check.Set("NUMA nodes", "node", c.Nodes)
	}
	if err := check.Refused(""); err != nil {
		return "", err
	}
	for _, name := range slices.Sorted(maps.Keys(c.Disks)) {
		if err := setImage(d.Root, name, c.Disks[name]); err != nil {
			return "", err
		}
	}
	if c.Pins != nil {
		setPins(d.Root, c.Pins)
	}
	if c.Nodes != nil {
		setNodes(d.Root, c.Nodes)
	}
	return d.String(), nil
}

func setImage(domain *etree.Element, name, path string) error {
	e, err := findDisk(domain, name)
	if err != nil {
		return err
	}
	old, known := imageOf(e)
	switch {
	case !known:
		return fmt.Errorf("disk %s of domain %s is of the type %s, neither a file nor a block "+
			"device: it is where it is on every host: %w", backend.Quote(name),
			nameIn(domain), backend.Quote(Attr(e, "type")), hypervisor.Unsupported)
	case old == path:
		return nil
	}
	kind, source := Attr(e, "type"), child(e, "source")
	if block(path) != block(old) {
		kind = map[bool]string{true: "block", false: "file"}[block(path)]
	} // else it is what it was: a link outside of /dev may lead to a device
	key := map[string]string{"block": "dev", "file": "file"}[kind]
	if Attr(e, "type") != kind {
		Set(e, "type", kind)
		for i, a := range source.Attr {
			if a.Space == "" && (a.Key == "file" || a.Key == "dev") {
				source.Attr[i].Key = key
			}
		}
	}
	Set(source, key, path)
	return nil
}

// findDisk returns the disk of that name.
func findDisk(domain *etree.Element, name string) (*etree.Element, error) {
	all := namedDisks(domain)
	for _, d := range all {
		if d.name == name {
			return d.element, nil
		}
	}
	var names []string
	for _, d := range all {
		names = append(names, d.name)
	}
	return nil, fmt.Errorf("domain %s has no disk %s, it has %q: %w",
		nameIn(domain), backend.Quote(name), names, hypervisor.NotFound)
}

// nameIn returns the name of a domain, for errors.
func nameIn(domain *etree.Element) string { return backend.Quote(domainName(domain)) }

func setPins(domain *etree.Element, pins [][]int) {
	tune := child(domain, "cputune")
	for _, old := range children(tune, "vcpupin") {
		n, err := strconv.ParseUint(Attr(old, "vcpu"), 10, 16)
		if err != nil || int(n) >= len(pins) {
			remove(old)
			continue
		}
		Set(old, "cpuset", formatSet(pins[n]))
	}
	if tune == nil && len(pins) > 0 {
		tune = ensure(domain, "cputune")
	}
	for i, cpus := range pins {
		pinned := func(e *etree.Element) bool { return Attr(e, "vcpu") == strconv.Itoa(i) }
		if !slices.ContainsFunc(children(tune, "vcpupin"), pinned) {
			add(tune, New("vcpupin", "vcpu", strconv.Itoa(i), "cpuset", formatSet(cpus)))
		}
	}
}

// setNodes binds memory to the host's NUMA nodes. A guest with nodes of its own may
// have bound each of them; all are bound to the new ones, since the old ones need
// not exist.
func setNodes(domain *etree.Element, nodes []int) {
	tune := child(domain, "numatune")
	if len(nodes) == 0 {
		if tune != nil {
			remove(tune)
		}
		return
	}
	tune = ensure(domain, "numatune")
	memory := child(tune, "memory")
	if memory == nil {
		memory = New("memory", "mode", "strict")
		add(tune, memory)
	}
	memory.RemoveAttr("placement") // "auto" lets numad choose
	for _, e := range append(children(tune, "memnode"), memory) {
		Set(e, "nodeset", formatSet(nodes))
	}
}

// Resize returns the domain's XML with the memory and the CPUs of vm, with the room to grow and the
// pins that it asks for, and without memory modules: what they had is ordinary memory. It is for a
// domain that is shut off. The mark stays; see [SetMark].
//
// It fails with a *[backend.Refused] for a size that no VM has, with [hypervisor.Conflict]
// where the XML divides the present size into parts, sockets or NUMA nodes or
// modules that are no plain memory, so that only its author can say how to divide another one, and with
// [hypervisor.Invalid] for XML that is no domain.
func Resize(xml string, vm hypervisor.VM) (string, error) {
	d, err := parse(xml, Domain)
	if err != nil {
		return "", err
	}
	h := Hardware(vm.Hardware)
	var c checker
	c.size(vm, h)
	c.Pins(vm.CPUs, h.Pins)
	if err := c.Refused(vm.ID); err != nil {
		return "", err
	}
	memory, _ := amount(child(d.Root, "memory"))
	cpus, _ := cpusOf(d.Root)
	current, _ := amount(child(d.Root, "currentMemory"))
	is := reconcileRoom(h, h, vm.Memory, vm.CPUs, readRoom(d.Root, cpus))
	if cpus != vm.CPUs || is.MaxCPUs != h.MaxCPUs {
		if err := setCPUs(d.Root, vm.CPUs, h.MaxCPUs); err != nil {
			return "", err
		}
	}
	if memory != vm.Memory || current != 0 && current != vm.Memory || is.MaxMemory != h.MaxMemory ||
		is.DIMMs != nil {
		if err := setMemory(d.Root, vm.Memory, h.MaxMemory); err != nil {
			return "", err
		}
	}
	if present, err := readPins(d.Root, vm.CPUs); err != nil ||
		!slices.EqualFunc(present, h.Pins, sameSet) || h.Pins == nil {
		setPins(d.Root, h.Pins)
	}
	return d.String(), nil
}
