package config

import (
	"bytes"
	"errors"
	"io/fs"
	"os"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/importer"
	"github.com/godwit-vm/godwit/internal/yamldoc"
	"github.com/godwit-vm/godwit/inventory"
)

// fleet reads the fleet in place, or from the inventory. A fleet in place whose
// author says nothing about evictions wants its VMs moved.
func (r *reader) fleet() (*inventory.Fleet, error) {
	if r.spec.Inventory == "" {
		if r.spec.EvictionStrategy == "" {
			r.spec.EvictionStrategy = evacuation.LiveMigrate.String()
		}
		return r.spec.Spec.Fleet(r.name, r.line)
	}
	if r.inPlace(); len(r.problems) > 0 {
		return nil, r.problems
	}
	d, err := r.spec.ReadDefaults(r.name, r.line)
	if err != nil {
		return nil, err
	}
	path := r.beside(r.spec.Inventory)
	r.files = append(r.files, importer.Files(path)...)
	fleet, err := importer.Read(path, d)
	if _, unread := errors.AsType[*fs.PathError](err); unread {
		r.wrong("inventory", "%v", err)
		return nil, r.problems
	}
	if fleet != nil {
		fleet.Network = d.Network
	}
	return fleet, err
}

// workloads lays measured workloads over the fleet.
func (r *reader) workloads(fleet *inventory.Fleet) {
	if r.spec.Workloads == "" {
		return
	}
	path := r.beside(r.spec.Workloads)
	f, err := os.Open(path)
	if err != nil {
		r.wrong("workloads", "%v", err)
		return
	}
	defer f.Close()
	r.files = append(r.files, path)
	data, err := yamldoc.ReadAll(path, f, yamldoc.MaxSize)
	if err != nil {
		r.wrong("workloads", "%v", err)
		return
	}
	err = fleet.LayWorkloads(path, bytes.NewReader(data))
	if problems, are := errors.AsType[inventory.Problems](err); are {
		r.problems = append(r.problems, problems...)
	}
}

// inPlace complains of what is written in place although an inventory says it.
func (r *reader) inPlace() {
	s := &r.spec.Spec
	if len(s.Hosts)+len(s.VMs) > 0 {
		r.wrong("inventory", "the fleet is written in place, too: use one of the two")
	}
	for _, f := range []struct {
		name    string
		written bool
	}{
		{"policies", len(s.Policies) > 0},
		{"config", s.Config != inventory.ConfigSpec{}},
		{"evictionStrategy", s.EvictionStrategy != ""},
		{"namespaces", len(s.Namespaces) > 0},
		{"aggregates", len(s.Aggregates) > 0},
		{"groups", len(s.Groups) > 0},
		{"racks", len(s.Racks) > 0},
	} {
		if f.written {
			r.wrong(f.name, "the inventory says this: write it there")
		}
	}
}

// A world adds up amounts; these stay far from where sums overflow.
const (
	maxMemory = 1 << 60 // bytes, 1 EiB
	maxCPUs   = 1 << 30
)

// sizes refuses hosts, and VMs together, that are too large to be added up.
func (r *reader) sizes(fleet *inventory.Fleet) {
	for i := range fleet.Hosts {
		if h := &fleet.Hosts[i]; h.Memory > maxMemory || h.CPUs > maxCPUs {
			r.wrong("hosts", "host %s is too large: %v of memory, %d CPUs", h.Name, h.Memory,
				h.CPUs)
		}
	}
	var memory hypervisor.Bytes
	cpus := 0
	for i := range fleet.VMs {
		v := &fleet.VMs[i]
		memory, cpus = memory+min(v.Memory, maxMemory+1), cpus+min(v.CPUs, maxCPUs+1)
		if memory > maxMemory || cpus > maxCPUs {
			r.wrong("vms", "together they are too large: %v of memory, %d CPUs", memory, cpus)
			return
		}
	}
}
