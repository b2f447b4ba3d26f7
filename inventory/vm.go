package inventory

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// VMAttributes reads what a file says about the VMs at a path such as "vms[3]", in a
// namespace, and adds it to vm, whose memory and CPUs are known. It returns what
// the VM is made of, or nil when the file does not say.
func (r *attributeReader) VM(at string, s *VMAttributes, namespace string, vm *placement.VM) *hypervisor.Hardware {
	vm.Overhead = r.bytes(at+".overhead", s.Overhead)
	if vm.Balloon = r.bytes(at+".balloon", s.Balloon); vm.Balloon > vm.Memory {
		balloon, memory := hypervisor.Apart(vm.Balloon, vm.Memory)
		r.wrong(at+".balloon", "%s is more than the memory, %s", balloon, memory)
		vm.Balloon = 0
	}
	if vm.Memory > math.MaxInt64-vm.Overhead {
		r.wrong(at+".overhead", "with the memory it is 8 EiB or more")
		vm.Overhead = 0
	}
	vm.CPURequest = r.count(at+".cpuRequest", s.CPURequest)
	c := &vm.Constraints
	c.Zones = r.words(at+".zones", s.Zones)
	for key, text := range s.Specs {
		r.word(at+".specs", key)
		r.text(at+".specs."+key, text)
	}
	c.Specs = s.Specs
	c.Groups = named(r, at+".groups", "group", s.Groups, r.groups)
	c.With = r.vms(at+".with", namespace, s.With)
	c.Without = r.vms(at+".without", namespace, s.Without)
	c.Devices = r.devices(at+".devices", s.Devices)
	c.Networks = r.words(at+".networks", s.Networks)
	c.Tenant = s.Tenant
	r.label(at+".tenant", s.Tenant)
	r.platform(at+".platform", &s.Platform, &c.Platform)
	if s.Topology != nil {
		c.Topology = r.layout(at+".topology", s.Topology, vm.Whole())
	}
	if s.Hardware == nil {
		return nil
	}
	h := r.hardware(at+".hardware", s.Hardware)
	r.demand(at+".hardware", h, vm)
	return h
}

// vms reads names of VMs; without a namespace they are in the VM's own.
func (r *attributeReader) vms(at, namespace string, names Words) []hypervisor.VMID {
	var all []hypervisor.VMID
	for _, name := range r.words(at, names) {
		if !strings.Contains(name, "/") {
			name = namespace + "/" + name
		}
		all = append(all, hypervisor.VMID(name))
	}
	return all
}

func (r *attributeReader) devices(at string, specs []Device) []placement.DeviceAsk {
	var all []placement.DeviceAsk
	for i, s := range specs {
		at := fmt.Sprintf("%s[%d]", at, i)
		r.word(at+".class", s.Class)
		d := placement.DeviceAsk{Class: s.Class, Count: 1, Stays: s.Stays}
		if s.Count != nil {
			if d.Count = r.count(at+".count", *s.Count); d.Count == 0 {
				r.wrong(at+".count", "needs 1 or more")
			}
		}
		all = append(all, d)
	}
	return all
}

func (r *attributeReader) platform(at string, s *Platform, p *placement.Platform) {
	r.label(at+".arch", s.Arch)
	r.label(at+".machine", s.Machine)
	r.label(at+".cpuModel", s.CPUModel)
	software := r.software(at+".hypervisor", s.Hypervisor)
	*p = placement.Platform{Arch: s.Arch, Machine: s.Machine, CPUModel: s.CPUModel,
		CPUFeatures: r.words(at+".cpuFeatures", s.CPUFeatures), CPUExact: s.CPUExact,
		Hypervisor: software.Kind, MinVersion: software.Version}
}

// layout reads a layout, or reports why it is none for a VM of this size.
func (r *attributeReader) layout(at string, s *Topology, whole placement.Part) *placement.TopologyRequest {
	a := &placement.TopologyRequest{Dedicated: s.Dedicated, Threads: placement.Threads(s.Threads),
		PageSize: r.bytes(at+".pageSize", s.PageSize)}
	if !slices.Contains([]string{"", "prefer", "isolate", "require"}, s.Threads) {
		r.wrong(at+".threads", "unknown policy %.100q; use prefer, isolate or require", s.Threads)
		return nil
	}
	switch {
	case s.Cells < 0 || s.Cells > placement.MaxCells || len(s.Parts) > placement.MaxCells:
		r.wrong(at, "a VM has at most %d cells", placement.MaxCells)
		return nil
	case s.Cells > 0 && len(s.Parts) > 0:
		r.wrong(at+".cells", "parts say it, too: use one of the two")
		return nil
	case s.Cells > 0:
		var even bool
		if a.Parts, even = placement.Even(s.Cells, whole); !even {
			r.wrong(at+".cells", "%d CPUs and %v cannot be divided into %d equal parts: list them "+
				"as parts", whole.CPUs, whole.Memory, s.Cells)
			return nil
		}
	}
	for i, p := range s.Parts {
		at := fmt.Sprintf("%s.parts[%d]", at, i)
		a.Parts = append(a.Parts, placement.Part{CPUs: r.count(at+".cpus", p.CPUs),
			Memory: r.bytes(at+".memory", p.Memory)})
	}
	return r.valid(at, a, whole)
}

func (r *attributeReader) valid(at string, a *placement.TopologyRequest, whole placement.Part) *placement.TopologyRequest {
	if whole.Memory > 0 && whole.CPUs > 0 && !a.Valid(whole) {
		r.wrong(at, "the parts must add up to %d CPUs and %v, each in whole pages", whole.CPUs,
			whole.Memory)
		return nil
	}
	return a
}
