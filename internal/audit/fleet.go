package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// see takes in a record as it was read. A VM that had no host yet is seen when it has one.
func (c *timeline) see(r store.Record) {
	known := c.fleet[r.Key()]
	v, is := known.(*store.VM)
	if known == nil || is && v.Host == "" {
		c.fleet[r.Key()] = r
	}
}

// add writes a host or a VM into the scenario.
func (c *timeline) add(r store.Record) {
	switch r := r.(type) {
	case *store.Host:
		c.spec.Hosts = append(c.spec.Hosts, c.hostSpec(r))
	case *store.VM:
		if r.Host == "" {
			c.homeless++
			delete(c.fleet, r.Key())
			return
		}
		c.spec.VMs = append(c.spec.VMs, c.vmSpec(r))
	}
}

// hostSpec writes a host. That it is drained, closed or lost are events.
func (c *timeline) hostSpec(h *store.Host) inventory.HostSpec {
	s := inventory.HostSpec{Name: string(h.Host.Name), Memory: amount(h.Host.Memory),
		CPUs: h.Host.CPUs, Labels: h.Labels}
	if h.Host.Link > 0 {
		s.Link = speed(h.Host.Link)
	}
	for _, t := range h.Taints {
		if t.Key != c.drain {
			s.Taints = append(s.Taints, taint(t))
		}
	}
	if f := h.Facts; f != nil && f.Rack != "" {
		if s.Rack = f.Rack; f.Uplink > 0 {
			s.Uplink = speed(f.Uplink)
		}
	}
	return s
}

func taint(t placement.Taint) string {
	text := t.Key
	if t.Value != "" {
		text += "=" + t.Value
	}
	return text + ":" + string(t.Effect)
}

// speed writes a speed to the byte.
func speed(b hypervisor.Bandwidth) string {
	if b%hypervisor.Gbit == 0 {
		return fmt.Sprintf("%dGbit/s", b/hypervisor.Gbit)
	}
	return fmt.Sprintf("%dB/s", int64(b))
}

func (c *timeline) vmSpec(v *store.VM) inventory.VMSpec {
	namespace, name, found := strings.Cut(string(v.VM.ID), "/")
	if !found {
		namespace, name = "", namespace
	}
	vm := v.Now()
	can, why := v.CanMigrate()
	s := inventory.VMSpec{Name: name, Namespace: namespace, Host: string(v.Host),
		Memory: amount(vm.Memory), CPUs: vm.CPUs, Labels: placement.Labels(v.Labels),
		Strategy: v.Strategy.String(), WhyNot: why, Marked: v.EvacuateFrom != "" && v.EvacuateFrom == v.Host,
		Paused: v.Pause}
	s.CPURequest = v.CPURequest
	if v.Overhead > 0 {
		s.Overhead = amount(v.Overhead)
	}
	if v.Balloon > 0 {
		s.Balloon = amount(v.Balloon)
	}
	if disk := v.LocalSize(); disk > 0 { // as one: what it takes to copy is the same
		s.Hardware = &inventory.Hardware{Disks: []inventory.Disk{{Name: "local", Size: amount(disk)}}}
	}
	if namespace == "default" {
		s.Namespace = ""
	}
	if !can {
		no := false
		s.Migratable = &no
	}
	if p := v.Placement; p != nil {
		s.NodeSelector, s.Affinity, s.Apart = p.Selector, p.Affinity, p.Apart
		s.Tenant = p.Tenant
		for _, t := range p.Tolerations {
			s.Tolerations = append(s.Tolerations, toleration(t))
		}
		s.With, s.Without, s.Groups = names(p.With), names(p.Without), c.groups(p.Groups)
	}
	return s
}

// groups writes the rules of groups into the scenario, and returns their names.
func (c *timeline) groups(rules []placement.GroupRule) (list inventory.Words) {
	for _, r := range rules {
		if c.spec.Groups == nil {
			c.spec.Groups = map[string]inventory.Group{}
		}
		name := strings.Join(strings.Fields(r.Group), "-") // a scenario has no spaces in names
		if c.spec.Groups[name] = (inventory.Group{Policy: r.Policy, Max: r.Max, Domain: r.Domain}); !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

func names(ids []hypervisor.VMID) (list inventory.Words) {
	for _, id := range ids {
		list = append(list, string(id))
	}
	return list
}

// toleration writes a toleration as scenarios do.
func toleration(t placement.Toleration) string {
	text := t.Key
	if text == "" {
		text = "*"
	}
	if !t.Exists {
		text += "=" + t.Value
	}
	if t.Effect != "" && t.Key != "" {
		text += ":" + string(t.Effect)
	}
	return text
}

// amount writes an amount of memory to the byte.
func amount(b hypervisor.Bytes) string {
	switch {
	case b%hypervisor.GiB == 0:
		return fmt.Sprintf("%dGiB", b/hypervisor.GiB)
	case b%hypervisor.MiB == 0:
		return fmt.Sprintf("%dMiB", b/hypervisor.MiB)
	}
	return fmt.Sprintf("%dB", int64(b))
}
