package client

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/yamldoc"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// NewVM describes a VM by the flags of a command line.
type NewVM struct {
	// Name is the VM's; without Memory it is that of a file with VMs.
	Name   string
	Memory string // "4GiB"
	CPUs   int
	// MaxMemory and MaxCPUs are what it can grow to while it runs. Default: not at all.
	MaxMemory string
	MaxCPUs   int
	Host      string // default: the controller chooses one
	Firmware  string // a file on the hosts
	Machine   string
	Disk      string // a file on all hosts: PATH, or PATH,format=FORMAT
	Strategy  string
}

// diskFormats are the formats that the image of a disk may have.
var diskFormats = []string{"raw", "qcow2"}

// Add adds a VM, or those of a file. It answers those that were added.
func (d *Client) Add(ctx context.Context, v NewVM) ([]*store.VM, error) {
	var list []*store.VM
	var err error
	if v.Memory == "" {
		list, err = d.readFile(ctx, v.Name)
	} else {
		var one *store.VM
		one, err = v.record()
		list = append(list, one)
	}
	if err != nil {
		return nil, err
	}
	life, err := store.NewLife(ctx, d.Store, "") // one look at the store is enough for all
	if err != nil {
		return nil, err
	}
	var added []*store.VM
	for _, vm := range list {
		stored, err := d.addVM(ctx, vm, *life)
		if err != nil {
			return added, err
		}
		added = append(added, stored)
	}
	return added, nil
}

// record returns what is stored of the VM at first.
func (v NewVM) record() (*store.VM, error) {
	memory, err := inventory.ParseBytes(v.Memory)
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	strategy, err := evacuation.ParseStrategy(v.Strategy)
	if err != nil {
		return nil, err
	}
	id := ID(v.Name)
	namespace, _ := divide(id)
	r := &store.VM{VM: hypervisor.VM{ID: id, Memory: memory, CPUs: v.CPUs}, Namespace: namespace,
		Strategy: strategy, Migratable: true, Host: hypervisor.HostName(v.Host)}
	if v.Firmware+v.Machine+v.Disk+v.MaxMemory != "" || v.MaxCPUs != 0 {
		h := &hypervisor.Hardware{Machine: v.Machine, Firmware: v.Firmware, MaxCPUs: v.MaxCPUs}
		if v.MaxMemory != "" {
			if h.MaxMemory, err = inventory.ParseBytes(v.MaxMemory); err != nil {
				return nil, fmt.Errorf("max-memory: %w", err)
			}
		}
		if err := room(h.MaxMemory, h.MaxCPUs); err != nil {
			return nil, err
		}
		if v.Disk != "" {
			path, format, declared := strings.Cut(v.Disk, ",format=")
			if declared && !slices.Contains(diskFormats, format) {
				return nil, fmt.Errorf("disk: unknown format %.100q: write format=%s", format,
					strings.Join(diskFormats, " or format="))
			}
			h.Disks = []hypervisor.Disk{{Name: "root", Path: path, Format: format}}
		}
		r.VM.Hardware = h
	}
	return r, nil
}

func divide(id hypervisor.VMID) (namespace, name string) {
	for i := range len(id) {
		if id[i] == '/' {
			return string(id[:i]), string(id[i+1:])
		}
	}
	return "", string(id)
}

// vmFile is a file with VMs. What their constraints name is in it, too.
type vmFile struct {
	inventory.Spec `yaml:",inline"`
}

// readFile reads VMs. The hosts that they may name are those that are stored.
func (d *Client) readFile(ctx context.Context, path string) ([]*store.VM, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: give a file with VMs, or a name and --memory", err)
	}
	defer f.Close()
	data, err := yamldoc.ReadAll(path, f, yamldoc.MaxSize)
	if err != nil {
		return nil, err
	}
	hosts, err := list[*store.Host](ctx, d.Store)
	if err != nil {
		return nil, err
	}
	return ReadVMs(path, data, hosts)
}

// ReadVMs reads VMs from a text; the name is the file's, for problems. Hosts are those that
// they may be on.
func ReadVMs(name string, data []byte, hosts []*store.Host) ([]*store.VM, error) {
	doc, err := yamldoc.Parse(name, 1, data)
	if err != nil {
		return nil, err
	}
	var file vmFile
	if err := doc.Decode(&file); err != nil {
		return nil, err
	}
	if len(file.Hosts) > 0 {
		return nil, yamldoc.Problem{File: name, Line: doc.Line("hosts"), Field: "hosts",
			Message: "hosts add themselves when their agents start: leave them out"}
	}
	if len(file.VMs) == 0 {
		return nil, yamldoc.Problem{File: name, Line: 1, Field: "vms",
			Message: "there are none: write vms: [{name: web, memory: 4GiB}]"}
	}
	for _, h := range hosts {
		file.Hosts = append(file.Hosts, inventory.HostSpec{Name: string(h.Host.Name),
			Memory: max(h.Host.Memory, 1).String(), CPUs: max(h.Host.CPUs, 1)})
	}
	fleet, err := file.Spec.Fleet(name, doc.Line)
	if err != nil {
		return nil, err
	}
	// What the hardware needs of a host is for its hypervisor to say: agents do not tell what
	// their hosts know, so only what is asked for in so many words is a condition.
	for i := range file.VMs {
		file.VMs[i].Hardware = nil
	}
	asked, err := file.Spec.Fleet(name, doc.Line)
	if err != nil {
		return nil, err
	}
	var all []*store.VM
	for i := range fleet.VMs {
		v := &fleet.VMs[i]
		v.Placement = asked.VMs[i].Placement
		all = append(all, ofFleet(v))
	}
	return all, nil
}

func ofFleet(v *inventory.VM) *store.VM {
	r := &store.VM{VM: v.VM, Namespace: v.Namespace, Labels: migration.Labels(v.Labels),
		Strategy: v.Strategy, Migratable: v.Migratable, NotMigratableReason: v.NotMigratableReason, EvacuateFrom: v.EvacuateFrom, Pause: v.Pause,
		Host: v.Host, Overhead: v.Overhead, Balloon: v.Balloon,
		CPURequest: v.CPURequest}
	p := v.Placement
	if placement.Asks(&p) {
		r.Placement = &p
	}
	return r
}
