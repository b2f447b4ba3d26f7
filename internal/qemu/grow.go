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

// Grown returns vm with the memory and CPUs that the machine has, where that is between what was, and
// what it was to become.
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
	return wanted, nil
}

// cpuPlaces are the places for CPUs that a machine has.
type cpuPlaces struct {
	taken  int
	places []HotpluggableCPU // that are free, in the order of their CPUs' numbers
}

// freeCPUs returns the places for CPUs.
func (in *Instance) freeCPUs(ctx context.Context) (cpuPlaces, error) {
	all, err := in.QueryHotpluggableCPUs(ctx)
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
