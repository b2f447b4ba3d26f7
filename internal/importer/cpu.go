package importer

import (
	"encoding/xml"
	"maps"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
)

// plainCPU stands for the processor that QEMU shows where the XML names none. Every host can.
const plainCPU = "QEMU's-own"

// asked is the part of a domain's XML that says what it asks of its host's processors and memory.
type asked struct {
	Type string `xml:"type,attr"`
	CPU  struct {
		Mode  string     `xml:"mode,attr"`
		Model string     `xml:"model"`
		Cells []struct{} `xml:"numa>cell"`
	} `xml:"cpu"`
	NUMA struct {
		Mode string `xml:"mode,attr"`
		Set  string `xml:"nodeset,attr"`
	} `xml:"numatune>memory"`
}

// migrates are the types of domains that libvirt moves live. Containers, and guests of
// hypervisors that libvirt only looks at, it does not.
// Source: libvirt src/*/*_driver.c (domainMigratePerform3Params: QEMU, libxl, Virtuozzo, test).
var migrates = []string{"kvm", "qemu", "kqemu", "hvf", "xen", "vz", "test"}

// platform returns what a domain asks of a processor. A guest that sees its host's own processor
// needs one that is no less; one that sees the processor itself, the same.
func (a *asked) platform() (p placement.Platform) {
	switch a.CPU.Mode {
	case "host-passthrough", "maximum":
		p.CPUExact = true
	case "host-model":
	default:
		if p.CPUModel = strings.TrimSpace(a.CPU.Model); p.CPUModel == "" {
			p.CPUModel = plainCPU
		}
	}
	return p
}

// layout returns the pages and CPUs of its own that a domain asks for, and what else it asks for
// that is not looked at.
func (a *asked) layout(vm *hypervisor.VM) (ask *placement.TopologyRequest, unread string) {
	h := vm.Hardware
	if h == nil {
		return nil, ""
	}
	if a.NUMA.Set != "" && (a.NUMA.Mode == "" || a.NUMA.Mode == "strict") {
		unread = "its memory is bound to the NUMA nodes " + a.NUMA.Set
	}
	ask = &placement.TopologyRequest{PageSize: h.Hugepages, Dedicated: inventory.Dedicated(h.Pins)}
	if len(h.Pins) > 0 {
		unread = "its CPUs are pinned, to which numbers"
	}
	if n := len(a.CPU.Cells); n > 1 {
		var even bool
		whole := placement.Part{CPUs: vm.CPUs, Memory: vm.Memory}
		if ask.Parts, even = placement.Even(n, whole); !even {
			unread = "its NUMA cells differ"
		}
	}
	if ask.PageSize == 0 && !ask.Dedicated {
		return nil, unread
	}
	return ask, unread
}

// processor is what virsh capabilities say of a host's processor.
type processor struct {
	Arch     string `xml:"arch"`
	Model    string `xml:"model"`
	Vendor   string `xml:"vendor"`
	Features []struct {
		Name string `xml:"name,attr"`
	} `xml:"feature"`
}

// facts returns what is known of the processor. The features that are listed are those beyond
// the model's own, so that the model stands among them.
func (p *processor) facts() *placement.CPU {
	c := &placement.CPU{Arch: p.Arch, Vendor: p.Vendor}
	if p.Model != "" {
		c.Features = append(c.Features, "all-of-"+p.Model)
	}
	for _, f := range p.Features {
		c.Features = append(c.Features, f.Name)
	}
	slices.Sort(c.Features)
	c.Features = slices.Compact(c.Features)
	return c
}

// cell is a NUMA node of virsh capabilities.
type cell struct {
	Memory struct {
		Unit  string `xml:"unit,attr"`
		Value string `xml:",chardata"`
	} `xml:"memory"`
	Pages []struct {
		Unit  string `xml:"unit,attr"`
		Size  string `xml:"size,attr"`
		Count string `xml:",chardata"`
	} `xml:"pages"`
	CPUs struct {
		Num string `xml:"num,attr"`
		All []struct {
			ID       string `xml:"id,attr"`
			Siblings string `xml:"siblings,attr"`
		} `xml:"cpu"`
	} `xml:"cpus"`
}

// layout reads the cores and pages of a cell; false when not all CPUs are listed.
func (r *reader) layout(id int, c *cell, memory hypervisor.Bytes, cpus int) (placement.Cell, bool) {
	at := placement.Cell{ID: id, Memory: memory}
	seen := map[string]bool{}
	for _, cpu := range c.CPUs.All {
		text := cpu.Siblings
		if text == "" {
			text = cpu.ID
		}
		if set, err := placement.ParseCPUSet(text); err != nil {
			r.wrong("capabilities cpu", "%v", err)
		} else if !seen[text] {
			seen[text] = true
			at.Cores = append(at.Cores, set)
		}
	}
	for _, p := range c.Pages {
		size := hypervisor.KiB * hypervisor.Bytes(r.number("pages size", p.Size, mostMemory>>10))
		n := r.number("pages", p.Count, mostMemory>>12)
		if size <= 4*hypervisor.KiB || n == 0 || size > mostMemory/hypervisor.Bytes(n) {
			continue
		}
		at.Pages = append(at.Pages, placement.Pool{Size: size, Pages: n})
		at.Memory = max(0, at.Memory-size*hypervisor.Bytes(n))
	}
	return at, len(c.CPUs.All) == cpus && cpus <= placement.MaxCPU
}

// models reads which models a host can show: virsh domcapabilities.
func (r *reader) models(h *host, data []byte) {
	var c struct {
		Modes []struct {
			Name   string `xml:"name,attr"`
			Models []struct {
				Usable string `xml:"usable,attr"`
				Name   string `xml:",chardata"`
			} `xml:"model"`
		} `xml:"cpu>mode"`
	}
	if err := xml.Unmarshal(data, &c); err != nil {
		r.Errorf(lineOf(data), "domainCapabilities", "%v", err)
		return
	}
	h.models = []string{plainCPU}
	for _, m := range c.Modes {
		for _, model := range m.Models {
			if m.Name == "custom" && model.Usable == "yes" {
				h.models = append(h.models, strings.TrimSpace(model.Name))
			}
		}
	}
}

// know gives hosts whose models are not known all that are asked for, and
// leaves out layouts where a host's cells are not known.
func (r *reader) know() {
	wanted := map[string]bool{plainCPU: true}
	named, huge := false, false
	for _, d := range r.domains {
		if model := d.platform.CPUModel; model != "" {
			wanted[model] = true
			named = named || model != plainCPU
		}
		huge = huge || d.layout != nil
	}
	unknown, cells := false, true
	for _, h := range r.hosts {
		cells = cells && (len(h.cells) > 0 || !h.sized)
		if h.models == nil {
			h.models, unknown = slices.Sorted(maps.Keys(wanted)), true
		}
	}
	if named && unknown {
		r.Warnf(0, "", "which CPU models a host can show is not known, and refuses none: put the "+
			"output of virsh domcapabilities beside its domains")
	}
	if !huge || cells {
		return
	}
	r.Warnf(0, "", "the CPUs and pages of NUMA nodes are not in all capabilities: huge pages and "+
		"pinned CPUs are not looked at")
	for _, d := range r.domains {
		d.layout = nil
	}
}
