package qemu

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A Reason is one thing that QEMU cannot or must not build.
type Reason struct {
	Check string // what was looked at: "memory", "disk root: path"
	Need  string // what it has to be
	Have  string // what it is
}

// Refused is a VM that cannot be built, with every reason. It is
// [hypervisor.Invalid]: repeating it cannot help.
type Refused struct {
	VM      hypervisor.VMID
	Reasons []Reason
}

// Error says all of why.
func (r *Refused) Error() string {
	var why []string
	for _, one := range r.Reasons {
		why = append(why, fmt.Sprintf("%s has to be %s, is %s", one.Check, one.Need, one.Have))
	}
	return fmt.Sprintf("VM %q cannot be built: %s", r.VM, strings.Join(why, "; "))
}

// Is makes errors.Is(err, hypervisor.Invalid) work.
func (r *Refused) Is(target error) bool { return target == error(hypervisor.Invalid) }

// The limits of a machine.
const (
	// maxCPUs is how many CPUs can be interrupted without an IOMMU that remaps
	// interrupts, which no machine here has.
	maxCPUs = 255
	// memoryUnit is what QEMU rounds memory to. Source: QEMU 7.2 softmmu/vl.c
	// (ram_size is aligned to 8192).
	memoryUnit = 8 * hypervisor.KiB
	minMemory  = hypervisor.MiB
	sector     = 512
	maxDisks   = 128
	// maxSocket is the length of a path in sockaddr_un, less its end.
	maxSocket = 107
	// maxInterface is the length of a network device's name on Linux, less its end.
	maxInterface = 15
	// maxCPU is the highest number of a host's CPU in an affinity mask.
	maxCPU = 1023
)

// A family is a kind of machine that PCs come in.
type family struct {
	bus   string // the first PCI bus
	power string // what implements ACPI's sleep states
}

// familyOf returns the family of a machine type.
func familyOf(machine string) (f family, known bool) {
	switch {
	case !word(machine, "._-"):
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
// *[Refused] with every reason. Whether files exist and whether this QEMU knows
// the machine type and the CPU model, QEMU says.
func Check(vm hypervisor.VM, s Settings) error {
	h := hardware(vm.Hardware)
	var c checker
	c.size(vm, h)
	c.board(vm, h, s)
	c.pins(vm, h)
	c.settings(h, s)
	c.disks(h.Disks, s)
	c.nics(h.NICs)
	if c.why == nil {
		return nil
	}
	return &Refused{VM: vm.ID, Reasons: c.why}
}

// checker collects reasons.
type checker struct{ why []Reason }

// need adds a reason unless it holds.
func (c *checker) need(holds bool, check, need string, have any) {
	if !holds {
		c.why = append(c.why, Reason{check, need, fmt.Sprint(have)})
	}
}

func (c *checker) size(vm hypervisor.VM, h hypervisor.Hardware) {
	c.need(vm.CPUs >= 1 && vm.CPUs <= maxCPUs, "CPUs", fmt.Sprintf("1 to %d", maxCPUs), vm.CPUs)
	c.need(vm.Memory >= minMemory && vm.Memory%memoryUnit == 0, "memory",
		fmt.Sprintf("a multiple of %v and at least %v", memoryUnit, minMemory),
		fmt.Sprintf("%d bytes", vm.Memory))
	if page := h.Hugepages; page != 0 {
		power := page > hypervisor.PageSize && page&(page-1) == 0
		c.need(power, "hugepages", fmt.Sprintf("a power of two above %v", hypervisor.PageSize),
			page)
		c.need(!power || vm.Memory%page == 0, "memory",
			fmt.Sprintf("a multiple of its pages of %v", page), vm.Memory)
	}
}

func (c *checker) board(vm hypervisor.VM, h hypervisor.Hardware, s Settings) {
	c.need(vm.ID != "" && text(string(vm.ID)), "name", "printable text", quote(string(vm.ID)))
	_, known := familyOf(h.Machine)
	c.need(known, "machine type", `"q35", "pc", "pc-q35-…" or "pc-i440fx-…"`, quote(h.Machine))
	cpu := s.cpu(h)
	c.need(cpu[0] != '-' && word(cpu, "._-+=,:"), "CPU model",
		"a model's name with features, after commas", quote(cpu))
	if h.Firmware != "" {
		c.path("firmware", h.Firmware)
	}
}

func (c *checker) pins(vm hypervisor.VM, h hypervisor.Hardware) {
	c.need(len(h.Pins) == 0 || len(h.Pins) == vm.CPUs, "pins",
		fmt.Sprintf("one set of CPUs for each of the %d", vm.CPUs), len(h.Pins))
	for i, set := range h.Pins {
		c.need(len(set) > 0, fmt.Sprintf("pins of CPU %d", i), "at least one CPU", "none")
		for _, cpu := range set {
			c.need(cpu >= 0 && cpu <= maxCPU, fmt.Sprintf("pins of CPU %d", i),
				fmt.Sprintf("CPUs 0 to %d", maxCPU), cpu)
		}
	}
}

func (c *checker) settings(h hypervisor.Hardware, s Settings) {
	a := s.accelerator()
	c.need(a == KVM || a == TCG, "accelerator", `"kvm" or "tcg"`, quote(a))
	c.path("run folder", s.Dir)
	for _, socket := range []string{s.QMP(), s.ConsoleSocket(), s.DebugSocket()} {
		c.need(len(socket) <= maxSocket, "path of a socket in the run folder",
			fmt.Sprintf("at most %d bytes long", maxSocket),
			fmt.Sprintf("%d: %s", len(socket), quote(socket)))
	}
	for _, arg := range s.Extra {
		c.need(!strings.Contains(arg, "\x00"), "extra argument", "without NUL", quote(arg))
	}
}

// path adds reasons unless QEMU opens exactly the file that p names.
func (c *checker) path(what, p string) {
	c.need(strings.HasPrefix(p, "/"), what, "an absolute path", quote(p))
	c.need(text(p), what, "printable text", quote(p))
}

// quote returns s as a person can read it, whatever it is.
func quote(s string) string { return fmt.Sprintf("%.150q", s) }

// word reports whether s consists of letters, digits and some more characters.
func word(s, more string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		letter := r|0x20 >= 'a' && r|0x20 <= 'z'
		return !letter && (r < '0' || r > '9') && !strings.ContainsRune(more, r)
	})
}

// text reports whether s survives the way to QEMU: valid UTF-8 without control
// characters and without the codes that no character will ever have, which QEMU's
// JSON refuses.
func text(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return r < ' ' || r == 0x7f || r&0xfffe == 0xfffe || r >= 0xfdd0 && r <= 0xfdef
	}) && len(s) < math.MaxInt16
}
