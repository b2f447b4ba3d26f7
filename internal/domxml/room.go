package domxml

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/beevik/etree"
	lx "libvirt.org/go/libvirtxml"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Room is what the XML of a domain says of how it can grow while it runs, and of the memory modules
// that it has. [Reconcile] takes it for a VM that was asked to have room; one that another client has
// made keeps it, and is not known for it.
type Room struct {
	MaxMemory hypervisor.Bytes   // 0: no slots, or modules that are no plain memory
	MaxCPUs   int                // 0: as many as it has
	DIMMs     []hypervisor.Bytes // without those that are no plain memory
}

// Modules are plugged into the guest's first NUMA node. libvirt plugs none into a guest without.
// Source: libvirt 9.0 qemu_domain.c (qemuDomainDefValidateMemoryHotplug: "At least one numa node has
// to be configured when enabling memory hotplug").
const firstNode = 0

// maxMemory is the room for memory of a VM that starts; nil is none.
func maxMemory(vm hypervisor.VM, h hypervisor.Hardware) *lx.DomainMaxMemory {
	if h.MaxMemory <= vm.Memory {
		return nil
	}
	return &lx.DomainMaxMemory{Value: kib(h.MaxMemory), Unit: "KiB", Slots: hypervisor.MaxDIMMs}
}

// vcpus are the CPUs of a VM that starts, with room for more.
func vcpus(vm hypervisor.VM, h hypervisor.Hardware) *lx.DomainVCPU {
	if h.MaxCPUs <= vm.CPUs {
		return &lx.DomainVCPU{Value: uint(vm.CPUs)}
	}
	return &lx.DomainVCPU{Current: uint(vm.CPUs), Value: uint(h.MaxCPUs)}
}

// numa is the one NUMA node of a VM that starts with room for memory; nil is none.
func numa(vm hypervisor.VM, h hypervisor.Hardware) *lx.DomainNuma {
	if h.MaxMemory <= vm.Memory {
		return nil
	}
	node := uint(firstNode)
	return &lx.DomainNuma{Cell: []lx.DomainCell{{ID: &node, CPUs: below(max(vm.CPUs, h.MaxCPUs)),
		Memory: kib(vm.Memory), Unit: "KiB"}}}
}

// below writes the set of numbers that are less than n.
func below(n int) string {
	if n == 1 {
		return "0"
	}
	return fmt.Sprintf("0-%d", n-1)
}

// ModuleXML returns the device that virDomainAttachDevice takes, to plug a memory module in.
func ModuleXML(size hypervisor.Bytes) (string, error) {
	return (&lx.DomainMemorydev{Model: "dimm", Target: &lx.DomainMemorydevTarget{
		Size: &lx.DomainMemorydevTargetSize{Value: kib(size), Unit: "KiB"},
		Node: &lx.DomainMemorydevTargetNode{Value: firstNode}}}).Marshal()
}

// readRoom returns what the XML says of room to grow.
func readRoom(domain *etree.Element, cpus int) Room {
	var r Room
	if n, err := strconv.ParseUint(textIn(child(domain, "vcpu")), 10, 16); err == nil && int(n) > cpus {
		r.MaxCPUs = int(n)
	}
	for _, e := range modules(domain) {
		if size, is := plain(e); is {
			r.DIMMs = append(r.DIMMs, size)
		}
	}
	if most, err := amount(child(domain, "maxMemory")); err == nil && len(r.DIMMs) == len(modules(domain)) {
		r.MaxMemory = most
	}
	return r
}

// modules returns the memory devices of a domain.
func modules(domain *etree.Element) []*etree.Element {
	return children(child(domain, "devices"), "memory")
}

// plain returns the size of a memory device that is ordinary memory, with nothing about it that its
// author alone would know where to put otherwise.
func plain(module *etree.Element) (hypervisor.Bytes, bool) {
	size, err := amount(child(module, "target", "size"))
	return size, err == nil && Attr(module, "model") == "dimm" && child(module, "source") == nil
}

// reconcileRoom returns the hardware with the room that was asked for, where the XML still agrees with
// that, and as the XML says where not. There is none in the XML where it would not be more than there
// is.
func reconcileRoom(h, want hypervisor.Hardware, memory hypervisor.Bytes, cpus int, found Room,
) hypervisor.Hardware {
	h.MaxMemory, h.DIMMs = 0, nil
	if want.MaxMemory != 0 {
		h.MaxMemory, h.DIMMs = found.MaxMemory, found.DIMMs
	}
	if found.MaxMemory == 0 && want.MaxMemory <= memory {
		h.MaxMemory = want.MaxMemory
	}
	h.MaxCPUs = 0
	if want.MaxCPUs != 0 {
		h.MaxCPUs = found.MaxCPUs
	}
	if found.MaxCPUs == 0 && want.MaxCPUs <= cpus {
		h.MaxCPUs = want.MaxCPUs
	}
	return h
}

// setMemory gives a domain that is shut off its memory, all in one, and the room for more of it. Room
// that was not asked for is its author's, and stays.
func setMemory(domain *etree.Element, memory, most hypervisor.Bytes) error {
	if err := undivided(domain, "memory"); err != nil {
		return err
	}
	for _, e := range modules(domain) {
		remove(e)
	}
	for _, tag := range []string{"memory", "currentMemory"} {
		if child(domain, tag) == nil && tag == "currentMemory" {
			continue // it is as much as the memory
		}
		setKiB(ensure(domain, tag), memory)
	}
	if cell := child(domain, "cpu", "numa", "cell"); cell != nil {
		Set(cell, "memory", strconv.FormatUint(uint64(kib(memory)), 10))
		Set(cell, "unit", "KiB")
	}
	had, _ := amount(child(domain, "maxMemory"))
	if most == 0 {
		most = had
	}
	if most <= memory {
		if e := child(domain, "maxMemory"); e != nil {
			remove(e)
		}
		return nil
	}
	e := ensure(domain, "maxMemory")
	setKiB(e, most)
	if Attr(e, "slots") == "" {
		Set(e, "slots", strconv.Itoa(hypervisor.MaxDIMMs))
	}
	return ensureNode(domain, memory)
}

// ensureNode puts a domain without NUMA nodes into one.
func ensureNode(domain *etree.Element, memory hypervisor.Bytes) error {
	if child(domain, "cpu", "numa") != nil {
		return nil
	}
	limit, err := strconv.Atoi(textIn(child(domain, "vcpu")))
	if err != nil {
		limit = 1 // libvirt's default
	}
	add(ensure(ensure(domain, "cpu"), "numa"), New("cell", "id", strconv.Itoa(firstNode), "cpus", below(limit),
		"memory", strconv.FormatUint(uint64(kib(memory)), 10), "unit", "KiB"))
	return nil
}

func setKiB(e *etree.Element, size hypervisor.Bytes) {
	Set(e, "unit", "KiB")
	e.SetText(strconv.FormatUint(uint64(kib(size)), 10))
}

// setCPUs gives a domain that is shut off its CPUs, and places for more: as many as it has, where
// nothing was asked for and that is enough.
func setCPUs(domain *etree.Element, cpus, most int) error {
	e := child(domain, "vcpu")
	limit, _ := strconv.Atoi(textIn(e))
	if most == 0 && Attr(e, "current") != "" {
		most = limit
	}
	if most = max(cpus, most); most != limit {
		if err := undivided(domain, "CPUs", "cpu/topology"); err != nil {
			return err
		}
	}
	e = ensure(domain, "vcpu")
	e.SetText(strconv.Itoa(most))
	e.RemoveAttr("current")
	if most > cpus {
		Set(e, "current", strconv.Itoa(cpus))
	}
	if each := child(domain, "vcpus"); each != nil {
		remove(each) // which of them are plugged in
	}
	if cell := child(domain, "cpu", "numa", "cell"); most != limit && Attr(cell, "cpus") != "" {
		Set(cell, "cpus", below(most))
	}
	return nil
}

// undivided fails if the domain has several NUMA nodes, modules that are no plain memory, or one of
// the elements at these paths.
func undivided(domain *etree.Element, what string, paths ...string) error {
	where := ""
	for _, path := range paths {
		if child(domain, strings.Split(path, "/")...) != nil {
			where = path
		}
	}
	switch {
	case len(children(child(domain, "cpu", "numa"), "cell")) > 1:
		where = "cpu/numa"
	case len(readRoom(domain, 0).DIMMs) < len(modules(domain)):
		where = "devices/memory"
	}
	if where == "" {
		return nil
	}
	return fmt.Errorf("domain %s: the %s cannot be changed, because its XML divides them "+
		"in /domain/%s: change both with 'virsh edit': %w", nameIn(domain), what, where, hypervisor.Conflict)
}
