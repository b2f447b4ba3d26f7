package domxml

import (
	"fmt"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// memoryUnit is what libvirt rounds memory up to when it starts a domain.
// Source: libvirt qemu_domain.c (qemuDomainGetMemorySizeAlignment).
const memoryUnit = hypervisor.MiB

// machineKnown reports whether machine is a PC, and of a family that exists.
func machineKnown(machine string) bool {
	return backend.Word(machine, "._-") && family(machine) != ""
}

// family returns the machine type that stands for the newest of its kind;
// "" if machine is no PC.
func family(machine string) string {
	switch {
	case machine == "", machine == "q35", strings.HasPrefix(machine, "pc-q35-"):
		return "q35"
	case machine == "pc", strings.HasPrefix(machine, "pc-i440fx-"):
		return "pc"
	}
	return ""
}

// A checker collects reasons.
type checker struct{ backend.Checker }

// Check returns why vm cannot be built as the domain name with these settings.
func Check(vm hypervisor.VM, name string, s Settings) error {
	h := Hardware(vm.Hardware)
	var c checker
	c.size(vm, h)
	c.board(vm, h, name)
	c.Pins(vm.CPUs, h.Pins)
	c.settings(s)
	backend.Disks(&c.Checker, h.Disks, places(h.Disks), s.image(name))
	c.NICs(h.NICs)
	return c.Refused(vm.ID)
}

// size adds reasons unless a VM can have this memory and these CPUs.
func (c *checker) size(vm hypervisor.VM, h hypervisor.Hardware) {
	c.CPUs(vm.CPUs)
	c.Need(vm.Memory >= memoryUnit && vm.Memory%memoryUnit == 0, "memory",
		fmt.Sprintf("a multiple of %v and at least that", memoryUnit),
		fmt.Sprintf("%d bytes", vm.Memory))
	c.Hugepages(h.Hugepages, vm.Memory)
	c.Room(vm, h)
}

func (c *checker) board(vm hypervisor.VM, h hypervisor.Hardware, name string) {
	c.Need(backend.Printable(string(vm.ID)) && name != "." && name != "..", "name",
		"printable text, not a folder", backend.Quote(string(vm.ID)))
	c.Need(machineKnown(h.Machine), "machine type", `"q35", "pc", "pc-q35-…" or "pc-i440fx-…"`,
		backend.Quote(h.Machine))
	_, err := parseCPU(h.CPUModel)
	c.Need(err == nil, "CPU model", "a model's name, with features as +name or -name after commas",
		backend.Quote(h.CPUModel))
	if h.Firmware != "" {
		c.Path("firmware", h.Firmware)
	}
}

// settings adds reasons unless a host can have these settings.
func (c *checker) settings(s Settings) {
	c.Need(s.kind() == KVM || s.kind() == QEMU, "type of domain", `"kvm" or "qemu"`, backend.Quote(s.Type))
	for _, file := range []struct{ what, path string }{{"emulator", s.Emulator},
		{"folder of disks", s.DiskDir}, {"console log", s.ConsoleLog},
		{"socket of the debug port", s.DebugSocket}} {
		if file.path != "" {
			c.Path(file.what, file.path)
		}
	}
	c.Need(len(s.DebugSocket) <= backend.MaxSocket, "socket of the debug port",
		fmt.Sprintf("at most %d bytes long", backend.MaxSocket), len(s.DebugSocket))
}

// image returns where the images of a domain's disks are.
func (s Settings) image(domain string) backend.Image {
	return func(d hypervisor.Disk) string {
		if d.Local() && s.DiskDir == "" {
			return ""
		}
		return s.ImageOf(domain, d)
	}
}
