package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/importer"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/sim"
)

// A TraceSpec adds VMs of a trace to the fleet, with loads that change as they did there.
// Short: trace: FILE.
type TraceSpec struct {
	// File is a file or a folder beside the scenario's own, of any format of traces that godwit reads.
	File string `yaml:"file"`
	VMs  int    `yaml:"vms,omitempty"` // the first so many; default: 1000
	// Hosts are dealt the VMs in turn, as long as they have room; default: all.
	Hosts  string `yaml:"hosts,omitempty"`
	Memory string `yaml:"memory,omitempty"` // of VMs whose trace does not say; default: 4GiB
	From   string `yaml:"from,omitempty"`   // where the part begins that is used; default: 0s
	For    string `yaml:"for,omitempty"`    // how long it is; default: 24h
	// Scale multiplies all loads; default: 1.
	Scale float64 `yaml:"scale,omitempty"`
	// DirtyPerCPU is what a CPU that is busy writes; default: 40MiB/s. See [importer.Proxy].
	DirtyPerCPU string `yaml:"dirtyPerCPU,omitempty"`
	Class       string `yaml:"class,omitempty"` // says the size of the hot set; default: web
}

// UnmarshalYAML reads a file's name, or all fields, which are no error as a name, only empty.
func (s *TraceSpec) UnmarshalYAML(decode func(any) error) error {
	if err := decode(&s.File); err == nil && s.File != "" {
		return nil
	}
	type plain TraceSpec
	return decode((*plain)(s))
}

// namespaceOfTraces is that of VMs which come from a trace.
const namespaceOfTraces = "trace"

// trace adds the VMs of a trace to the fleet, and their loads to the events.
func (r *reader) trace(s *Scenario) {
	spec := r.spec.Trace
	if spec == nil {
		return
	}
	if spec.File == "" {
		r.wrong("trace.file", "it is missing: name a file or a folder")
		return
	}
	options, proxy, hosts := r.traceOptions(spec, s.Fleet)
	if len(r.problems) > 0 {
		return
	}
	path := r.beside(spec.File)
	r.files = append(r.files, importer.Files(path)...)
	t, err := importer.ReadTrace(path, options)
	if problems, are := errors.AsType[inventory.Problems](err); are {
		r.problems = append(r.problems, problems...)
		return
	} else if err != nil {
		r.wrong("trace", "%v", err)
		return
	}
	s.Fleet.Warnings = append(s.Fleet.Warnings, t.Warnings...)
	room, left := newRoom(s.Fleet, hosts), 0
	for i := range t.VMs {
		v := &t.VMs[i]
		host, fits := room.next(v)
		if !fits {
			left++
			continue
		}
		r.play(s, fleetVM(v, i+1, host), v, proxy)
	}
	if left > 0 {
		s.Fleet.Warnings = append(s.Fleet.Warnings, inventory.Problem{File: r.name,
			Line: r.line.Of("trace"), Field: "trace", Message: fmt.Sprintf("%d of %d VMs are left "+
				"out: the hosts have no room for them", left, len(t.VMs))})
	}
	slices.SortFunc(s.Fleet.VMs, func(a, b inventory.VM) int { return cmp.Compare(a.ID, b.ID) })
}

// traceOptions reads the fields of a spec.
func (r *reader) traceOptions(spec *TraceSpec, fleet *inventory.Fleet) (
	importer.TraceOptions, importer.Proxy, []hypervisor.HostName,
) {
	o := importer.TraceOptions{VMs: spec.VMs}
	p := importer.Proxy{Scale: spec.Scale, Load: inventory.Load{Class: spec.Class}}
	check := func(field string, err error) {
		if err != nil {
			r.wrong("trace."+field, "%v", err)
		}
	}
	var err error
	if spec.Memory != "" {
		o.Memory, err = inventory.ParseBytes(spec.Memory)
		check("memory", err)
	}
	if spec.From != "" {
		o.From, err = readDuration(spec.From)
		check("from", err)
	}
	if spec.For != "" {
		o.For, err = readDuration(spec.For)
		check("for", err)
	}
	if spec.DirtyPerCPU != "" {
		p.PerCPU, err = inventory.ParseBandwidth(spec.DirtyPerCPU)
		check("dirtyPerCPU", err)
	}
	if spec.VMs < 0 || spec.VMs > importer.MaxVMs {
		r.wrong("trace.vms", "needs 1 to %d, has %d", importer.MaxVMs, spec.VMs)
	}
	if !(spec.Scale >= 0 && spec.Scale <= 1000) {
		r.wrong("trace.scale", "needs a number above 0 and at most 1000, has %v", spec.Scale)
	}
	check("class", p.Load.Validate())
	var hosts []hypervisor.HostName
	if spec.Hosts == "" {
		for _, h := range fleet.Hosts {
			hosts = append(hosts, h.Name)
		}
		return o, p, hosts
	}
	names, err := inventory.ExpandNames(spec.Hosts, max(1, len(fleet.Hosts)))
	check("hosts", err)
	for _, name := range names {
		known := func(h inventory.Host) bool { return string(h.Name) == name }
		if !slices.ContainsFunc(fleet.Hosts, known) {
			r.wrong("trace.hosts", "there is no host %q", name)
		}
		hosts = append(hosts, hypervisor.HostName(name))
	}
	return o, p, hosts
}

// play adds a VM to the fleet, and what its load does to the events.
func (r *reader) play(s *Scenario, vm inventory.VM, v *importer.TraceVM, proxy importer.Proxy) {
	vm.Workload = proxy.Workload(v, v.Load[0].CPU)
	s.Fleet.VMs = append(s.Fleet.VMs, vm)
	for _, p := range v.Load[1:] {
		load := proxy.Workload(v, p.CPU)
		s.Events = append(s.Events, Scheduled{At: p.At,
			Text: fmt.Sprintf("load %s rate=%v hot=%v", vm.ID, load.Rate, load.Hot),
			What: sim.Load{VM: vm.ID, Load: load}})
	}
}

// fleetVM is the n-th VM of a trace. A name that would not do as one is replaced.
func fleetVM(v *importer.TraceVM, n int, host hypervisor.HostName) inventory.VM {
	name := v.ID
	if len(name) > inventory.MaxName || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz"+
		"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") != "" {
		name = fmt.Sprintf("vm%d", n)
	}
	return inventory.VM{VM: hypervisor.VM{ID: hypervisor.VMID(namespaceOfTraces + "/" + name),
		Memory: v.Memory, CPUs: v.CPUs}, Host: host, Namespace: namespaceOfTraces,
		Migratable: true}
}

// A room deals VMs out to hosts in turn.
type room struct {
	hosts []hypervisor.HostName
	free  map[hypervisor.HostName]taken
	turn  int
}

func newRoom(fleet *inventory.Fleet, hosts []hypervisor.HostName) *room {
	r := &room{hosts: hosts, free: map[hypervisor.HostName]taken{}}
	for _, h := range fleet.Hosts {
		r.free[h.Name] = taken{h.Memory, h.CPUs}
	}
	for i := range fleet.VMs {
		v := &fleet.VMs[i]
		f := r.free[v.Host]
		r.free[v.Host] = taken{f.memory - v.Memory, f.cpus - v.CPUs}
	}
	return r
}

// next returns the next host in turn with room for a VM.
func (r *room) next(v *importer.TraceVM) (hypervisor.HostName, bool) {
	for i := range r.hosts {
		host := r.hosts[(r.turn+i)%len(r.hosts)]
		f := r.free[host]
		if f.memory < v.Memory || f.cpus < v.CPUs {
			continue
		}
		r.free[host] = taken{f.memory - v.Memory, f.cpus - v.CPUs}
		r.turn += i + 1
		return host, true
	}
	return "", false
}
