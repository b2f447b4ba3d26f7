package qemu

import (
	"fmt"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// memoryUnit is what QEMU rounds memory to. Source: QEMU 7.2 softmmu/vl.c (ram_size is aligned
// to 8192).
const (
	memoryUnit = 8 * hypervisor.KiB
	minMemory  = hypervisor.MiB
)

// A family is a kind of machine that PCs come in.
type family struct {
	bus   string // the first PCI bus
	power string // what implements ACPI's sleep states
}

// familyOf returns the family of a machine type.
func familyOf(machine string) (f family, known bool) {
	switch {
	case !backend.Word(machine, "._-"):
	case machine == "", machine == "q35", strings.HasPrefix(machine, "pc-q35-"):
		return family{bus: "pcie.0", power: "ICH9-LPC"}, true
	case machine == "pc", strings.HasPrefix(machine, "pc-i440fx-"):
		return family{bus: "pci.0", power: "PIIX4_PM"}, true
	}
	return family{}, false
}

func machineType(h hypervisor.Hardware) string {
	if h.Machine == "" {
		return "q35"
	}
	return h.Machine
}

// Check returns why vm cannot be built on the host with these settings: nil, or a
// *[backend.Refused] with every reason. Whether files exist and whether this QEMU knows
// the machine type and the CPU model, QEMU says.
func Check(vm hypervisor.VM, s Settings) error {
	h := hardware(vm.Hardware)
	var c checker
	c.size(vm, h)
	c.board(vm, h, s)
	c.Pins(vm.CPUs, h.Pins)
	c.settings(h, s)
	backend.Disks(&c.Checker, h.Disks, places(h.Disks), s.image)
	c.NICs(h.NICs)
	return c.Refused(vm.ID)
}

// checker collects reasons.
type checker struct{ backend.Checker }

func (c *checker) size(vm hypervisor.VM, h hypervisor.Hardware) {
	c.CPUs(vm.CPUs)
	c.Need(vm.Memory >= minMemory && vm.Memory%memoryUnit == 0, "memory",
		fmt.Sprintf("a multiple of %v and at least %v", memoryUnit, minMemory),
		fmt.Sprintf("%d bytes", vm.Memory))
	c.Hugepages(h.Hugepages, vm.Memory)
	c.Room(vm, h)
}

func (c *checker) board(vm hypervisor.VM, h hypervisor.Hardware, s Settings) {
	c.Need(vm.ID != "" && backend.Printable(string(vm.ID)), "name", "printable text", backend.Quote(string(vm.ID)))
	_, known := familyOf(h.Machine)
	c.Need(known, "machine type", `"q35", "pc", "pc-q35-…" or "pc-i440fx-…"`, backend.Quote(h.Machine))
	cpu := s.cpu(h)
	c.Need(cpu[0] != '-' && backend.Word(cpu, "._-+=,:"), "CPU model",
		"a model's name with features, after commas", backend.Quote(cpu))
	if h.Firmware != "" {
		c.Path("firmware", h.Firmware)
	}
}

func (c *checker) settings(h hypervisor.Hardware, s Settings) {
	a := s.accelerator()
	c.Need(a == KVM || a == TCG, "accelerator", `"kvm" or "tcg"`, backend.Quote(a))
	c.Path("run folder", s.Dir)
	for _, socket := range []string{s.QMP(), s.ConsoleSocket(), s.DebugSocket()} {
		c.Need(len(socket) <= backend.MaxSocket, "path of a socket in the run folder",
			fmt.Sprintf("at most %d bytes long", backend.MaxSocket),
			fmt.Sprintf("%d: %s", len(socket), backend.Quote(socket)))
	}
	for _, arg := range s.Extra {
		c.Need(!strings.Contains(arg, "\x00"), "extra argument", "without NUL", backend.Quote(arg))
	}
}
