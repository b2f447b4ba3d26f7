package hypervisor

import (
	"fmt"
	"slices"
)

// What a VM that runs can be given.
const (
	// DIMMUnit is what the size of a memory module is a multiple of: Linux guests take memory
	// into use in blocks of that size.
	// Source: Linux arch/x86/include/asm/sparsemem.h (SECTION_SIZE_BITS of 27).
	DIMMUnit = 128 * MiB
	// MaxDIMMs is how many modules are plugged into a VM until its next start.
	MaxDIMMs = 16
)

// Grow returns v as it is when it was given, while it runs, the memory, the CPUs and the sizes of disks
// of to: memory comes as one module more. It is v when it has them already. A disk that to does not
// have, or has without a size, stays as it is. It answers [Conflict] with the reason for what only a
// start can do: for less of one of them, for more than v was started with room for, for memory that
// is no multiple of [DIMMUnit] more, when there is no slot left, and for a disk that is read only.
func (v VM) Grow(to VM) (VM, error) {
	disks, err := v.largerDisks(to)
	switch {
	case err != nil:
		return v, err
	case to.Memory == v.Memory && to.CPUs == v.CPUs && disks == nil:
		return v, nil
	case disks != nil:
		grown, err := v.growMachine(to)
		if err != nil {
			return v, err
		}
		return grown.WithDisks(disks), nil
	}
	return v.growMachine(to)
}

// largerDisks returns the disks of v as they are with the sizes of to; nil is that none grows.
func (v VM) largerDisks(to VM) ([]Disk, error) {
	if v.Hardware == nil || to.Hardware == nil {
		return nil, nil
	}
	var disks []Disk
	for i, has := range v.Hardware.Disks {
		j := slices.IndexFunc(to.Hardware.Disks, func(d Disk) bool { return d.Name == has.Name })
		if j < 0 || to.Hardware.Disks[j].Size == 0 || to.Hardware.Disks[j].Size == has.Size {
			continue
		}
		size, why := to.Hardware.Disks[j].Size, ""
		switch {
		case size < has.Size:
			why = "a disk never shrinks"
		case has.ReadOnly:
			why = "a disk that is read only keeps its size while the VM runs"
		}
		if why != "" {
			return nil, fmt.Errorf("disk %s of %v to %v: %s: %w", has.Name, has.Size, size, why, Conflict)
		}
		if disks == nil {
			disks = slices.Clone(v.Hardware.Disks)
		}
		disks[i].Size = size
	}
	return disks, nil
}

// growMachine is Grow without disks.
func (v VM) growMachine(to VM) (VM, error) {
	var h Hardware
	if v.Hardware != nil {
		h = *v.Hardware
	}
	if why := h.keepsMemory(v.Memory, to.Memory); why != "" {
		return v, fmt.Errorf("memory %v to %v: %s: %w", v.Memory, to.Memory, why, Conflict)
	}
	if why := h.keepsCPUs(v.CPUs, to.CPUs); why != "" {
		return v, fmt.Errorf("CPUs %d to %d: %s: %w", v.CPUs, to.CPUs, why, Conflict)
	}
	if to.Memory > v.Memory {
		h.DIMMs = append(slices.Clone(h.DIMMs), to.Memory-v.Memory)
	}
	if to.Hardware != nil && to.CPUs > v.CPUs {
		h.Pins = to.Hardware.Pins // there is one for each CPU
	}
	v.Memory, v.CPUs, v.Hardware = to.Memory, to.CPUs, &h
	return v, nil
}

// keepsMemory says why a VM that runs with this hardware keeps its memory; "" is that it can grow.
func (h *Hardware) keepsMemory(from, to Bytes) string {
	more := to - from
	switch {
	case more == 0:
	case more < 0:
		return "a guest that runs gives no memory back"
	case h.MaxMemory <= from-h.plugged():
		return "it was started without room for more memory"
	case to > h.MaxMemory:
		return fmt.Sprintf("it was started with room for %v", h.MaxMemory)
	case more%max(DIMMUnit, h.Hugepages) != 0:
		return fmt.Sprintf("a guest that runs takes memory in multiples of %v",
			max(DIMMUnit, h.Hugepages))
	case len(h.DIMMs) >= MaxDIMMs:
		return fmt.Sprintf("its %d slots for memory are taken", MaxDIMMs)
	}
	return ""
}

// keepsCPUs says why a VM that runs with this hardware keeps its CPUs; "" is that it can grow.
func (h *Hardware) keepsCPUs(from, to int) string {
	switch {
	case to == from:
	case to < from:
		return "a guest that runs gives no CPU back"
	case h.MaxCPUs <= from:
		return "it was started without room for more CPUs"
	case to > h.MaxCPUs:
		return fmt.Sprintf("it was started with room for %d", h.MaxCPUs)
	}
	return ""
}

// plugged returns the memory of all modules.
func (h *Hardware) plugged() Bytes {
	var sum Bytes
	for _, size := range h.DIMMs {
		sum += size
	}
	return sum
}

// BootMemory returns the memory of v that it was started with: what is not in DIMMs.
func (v VM) BootMemory() Bytes {
	if v.Hardware == nil {
		return v.Memory
	}
	return v.Memory - v.Hardware.plugged()
}

// Started returns v as it is after a start: no module was plugged in since.
func (v VM) Started() VM {
	if v.Hardware == nil || len(v.Hardware.DIMMs) == 0 {
		return v
	}
	h := *v.Hardware
	h.DIMMs = nil
	v.Hardware = &h
	return v
}
