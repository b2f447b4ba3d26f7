//go:build linux

package qemu

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Grow plugs in what vm has and the machine does not: memory modules, in order, and CPUs, those with
// the lowest numbers first. What is there already is left alone, so that it may be repeated. A module
// that QEMU refuses leaves nothing behind; what was plugged in before stays.
func (in *Instance) Grow(ctx context.Context, vm hypervisor.VM) error {
	have, err := in.QueryMemoryDevices(ctx)
	if err != nil {
		return err
	}
	h := hardware(vm.Hardware)
	for i := range h.DIMMs {
		there := func(d MemoryDevice) bool { return d.Data.ID == dimmID(i) }
		if slices.ContainsFunc(have, there) {
			continue
		}
		if err := in.plugMemory(ctx, h, i); err != nil {
			return err
		}
	}
	free, err := in.freeCPUs(ctx)
	if err != nil {
		return err
	}
	n := vm.CPUs - free.taken
	if n > len(free.places) {
		return Refuse(hypervisor.Conflict, "it has places for %d CPUs", free.taken+len(free.places))
	}
	for i := range max(0, n) {
		if err := in.DeviceAdd(ctx, cpuDevice(free.places[i], free.taken+i)); err != nil {
			return err
		}
	}
	return nil
}

// Growable refuses disks that the machine has larger already: none of them shrinks.
func (in *Instance) Growable(ctx context.Context, disks []hypervisor.Disk) error {
	if len(disks) == 0 {
		return nil
	}
	has, _, err := in.diskSizes(ctx, disks)
	if err != nil {
		return Observing(err)
	}
	for _, d := range disks {
		if had := has[d.Name]; had > d.Size {
			return Refuse(hypervisor.Invalid, "disk %s: it has %v already, and never shrinks", d.Name, had)
		}
	}
	return nil
}

// GrowDisks gives disks their sizes, those that are not as large. Its guest is told. One that QEMU
// refuses stays as it is, as does a device of the host that is smaller.
func (in *Instance) GrowDisks(ctx context.Context, disks []hypervisor.Disk) error {
	if len(disks) == 0 {
		return nil
	}
	has, node, err := in.diskSizes(ctx, disks)
	if err != nil {
		return err
	}
	for _, d := range disks {
		had := has[d.Name]
		if had >= d.Size {
			continue
		}
		err := in.BlockResize(ctx, node[d.Name], int64(d.Size))
		if _, refused := errors.AsType[*Error](err); refused {
			return Refuse(hypervisor.Conflict, "disk %s of %v to %v: %w", d.Name, had, d.Size, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// diskSizes returns how large the guest sees disks, and their nodes, by their names.
func (in *Instance) diskSizes(ctx context.Context, disks []hypervisor.Disk) (
	sizes map[string]hypervisor.Bytes, nodes map[string]string, err error) {
	all, err := in.QueryNamedNodes(ctx)
	sizes, nodes = map[string]hypervisor.Bytes{}, map[string]string{}
	for _, d := range disks {
		nodes[d.Name] = nodeOf(all, d.Name)
		for _, n := range all {
			if n.Name == nodes[d.Name] {
				sizes[d.Name] = n.Image.Size
			}
		}
	}
	return sizes, nodes, err
}

// plugMemory plugs in module i.
func (in *Instance) plugMemory(ctx context.Context, h hypervisor.Hardware, i int) error {
	_ = in.ObjectDel(ctx, dimmMemory(i)) // of an attempt that we did not survive
	if err := in.ObjectAdd(ctx, dimmBackend(h, i)); err != nil {
		if _, refused := errors.AsType[*Error](err); refused {
			return Refuse(hypervisor.NoRoom, "memory for %v more: %w", h.DIMMs[i], err)
		}
		return err
	}
	err := in.DeviceAdd(ctx, dimmDevice(i))
	if _, refused := errors.AsType[*Error](err); refused {
		return errors.Join(err, in.ObjectDel(ctx, dimmMemory(i)))
	}
	return err
}

// Grown returns vm with the memory, the CPUs and the sizes of disks that the machine has, where that is
// between what was, and what it was to become.
func (in *Instance) Grown(ctx context.Context, was, wanted hypervisor.VM) (hypervisor.VM, error) {
	have, err := in.QueryMemoryDevices(ctx)
	if err != nil {
		return was, err
	}
	free, err := in.freeCPUs(ctx)
	if err != nil {
		return was, err
	}
	h := hardware(wanted.Hardware)
	before := len(hardware(was.Hardware).DIMMs)
	plugged := len(slices.DeleteFunc(have, func(d MemoryDevice) bool { return d.Type != "dimm" }))
	h.DIMMs = h.DIMMs[:min(max(plugged, before), len(h.DIMMs))]
	wanted.Memory = was.Memory
	for _, size := range h.DIMMs[before:] {
		wanted.Memory += size
	}
	wanted.CPUs = min(max(free.taken, was.CPUs), wanted.CPUs)
	if wanted.CPUs == was.CPUs {
		h.Pins = hardware(was.Hardware).Pins
	}
	wanted.Hardware = &h
	return in.grownDisks(ctx, was, wanted)
}

// grownDisks returns wanted with the sizes that disks had which are not as large as they were to
// become.
func (in *Instance) grownDisks(ctx context.Context, was, wanted hypervisor.VM) (hypervisor.VM, error) {
	had := hardware(was.Hardware).Disks
	disks := slices.Clone(hardware(wanted.Hardware).Disks)
	if slices.Equal(had, disks) {
		return wanted, nil
	}
	has, _, err := in.diskSizes(ctx, disks)
	if err != nil {
		return was, err
	}
	for i, d := range disks {
		if i < len(had) && has[d.Name] < d.Size {
			disks[i].Size = had[i].Size
		}
	}
	return wanted.WithDisks(disks), nil
}

// cpuPlaces are the places for CPUs that a machine has.
type cpuPlaces struct {
	taken  int
	places []HotpluggableCPU // that are free, in the order of their CPUs' numbers
}

// freeCPUs returns the places for CPUs.
func (in *Instance) freeCPUs(ctx context.Context) (cpuPlaces, error) {
	all, err := in.queryHotpluggableCPUs(ctx)
	var p cpuPlaces
	for _, c := range all {
		if c.Path != "" {
			p.taken++
		} else {
			p.places = append(p.places, c)
		}
	}
	slices.SortFunc(p.places, func(a, b HotpluggableCPU) int {
		return slices.Compare(cpuPlace(a), cpuPlace(b))
	})
	return p, err
}

// cpuPlace is what the number of a CPU follows from, the most significant part first.
// Source: QEMU 7.2 include/hw/i386/topology.h (x86_topo_ids_from_idx).
func cpuPlace(c HotpluggableCPU) []int {
	return []int{c.Props["socket-id"], c.Props["die-id"], c.Props["cluster-id"], c.Props["core-id"],
		c.Props["thread-id"]}
}

// cpuDevice is what is plugged in as the CPU of a number.
func cpuDevice(at HotpluggableCPU, number int) map[string]any {
	device := map[string]any{"driver": at.Type, "id": fmt.Sprintf("cpu%d", number)}
	for _, key := range slices.Sorted(maps.Keys(at.Props)) {
		if strings.HasSuffix(key, "-id") {
			device[key] = at.Props[key]
		}
	}
	return device
}
