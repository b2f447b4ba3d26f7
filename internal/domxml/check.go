package domxml

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Refused is a VM or a disk that no XML is made for, with every reason. It is
// [hypervisor.Invalid]: repeating it cannot help.
type Refused struct {
	VM      hypervisor.VMID // "" for a disk of a domain
	Reasons []hypervisor.Reason
}

// Error says all of why.
func (r *Refused) Error() string {
	var why []string
	for _, one := range r.Reasons {
		why = append(why, fmt.Sprintf("%s has to be %s, is %s", one.Check, one.Need, one.Have))
	}
	what := ""
	if r.VM != "" {
		what = fmt.Sprintf("VM %q ", r.VM)
	}
	return what + "cannot be built: " + strings.Join(why, "; ")
}

// Is makes errors.Is(err, hypervisor.Invalid) work.
func (r *Refused) Is(target error) bool { return target == error(hypervisor.Invalid) }

// The limits of a machine.
const (
	// maxCPUs is how many CPUs can be interrupted without an IOMMU that remaps
	// interrupts, which no machine here has.
	maxCPUs = 255
	// memoryUnit is what libvirt rounds memory up to when it starts a domain.
	// Source: libvirt qemu_domain.c (qemuDomainGetMemorySizeAlignment).
	memoryUnit = hypervisor.MiB
	sector     = 512
	maxDisks   = 128
	maxNICs    = 16
	// maxName is how long a disk's name may be.
	maxName = 63
	// maxSocket is the length of a path in sockaddr_un, less its end.
	maxSocket = 107
	// maxInterface is the length of a network device's name on Linux, less its end.
	maxInterface = 15
	// maxCPU is the highest number of a host's CPU in an affinity mask.
	maxCPU = 1023
)

// machineKnown reports whether machine is a PC, and of a family that exists.
func machineKnown(machine string) bool {
	return word(machine, "._-") && Family(machine) != ""
}

// Family returns the machine type that stands for the newest of its kind;
// "" if machine is no PC.
func Family(machine string) string {
	switch {
	case machine == "", machine == "q35", strings.HasPrefix(machine, "pc-q35-"):
		return "q35"
	case machine == "pc", strings.HasPrefix(machine, "pc-i440fx-"):
		return "pc"
	}
	return ""
}

// A Checker collects reasons. Its zero value has none.
type Checker struct{ why []hypervisor.Reason }

// Check returns why vm cannot be built as the domain name with these settings.
func Check(vm hypervisor.VM, name string, s Settings) error {
	h := Hardware(vm.Hardware)
	var c Checker
	c.Size(vm, h)
	c.board(vm, h, name)
	c.Pins(vm.CPUs, h.Pins)
	c.Settings(s)
	c.disks(h.Disks, name, s)
	c.nics(h.NICs)
	return c.Refused(vm.ID)
}

// Refused returns a *[Refused] with the reasons so far; nil if there is none.
func (c *Checker) Refused(vm hypervisor.VMID) error {
	if c.why == nil {
		return nil
	}
	return &Refused{VM: vm, Reasons: c.why}
}

// need adds a reason unless it holds.
func (c *Checker) need(holds bool, check, need string, have any) {
	if !holds {
		c.why = append(c.why, hypervisor.Reason{Check: check, Need: need,
			Have: fmt.Sprint(have)})
	}
}

// Size adds reasons unless a VM can have this memory and these CPUs.
func (c *Checker) Size(vm hypervisor.VM, h hypervisor.Hardware) {
	c.need(vm.CPUs >= 1 && vm.CPUs <= maxCPUs, "CPUs", fmt.Sprintf("1 to %d", maxCPUs), vm.CPUs)
	c.need(vm.Memory >= memoryUnit && vm.Memory%memoryUnit == 0, "memory",
		fmt.Sprintf("a multiple of %v and at least that", memoryUnit),
		fmt.Sprintf("%d bytes", vm.Memory))
	if page := h.Hugepages; page != 0 {
		power := page > hypervisor.PageSize && page&(page-1) == 0
		c.need(power, "hugepages", fmt.Sprintf("a power of two above %v", hypervisor.PageSize),
			page)
		c.need(!power || vm.Memory%page == 0, "memory",
			fmt.Sprintf("a multiple of its pages of %v", page), vm.Memory)
	}
}

func (c *Checker) board(vm hypervisor.VM, h hypervisor.Hardware, name string) {
	c.need(text(string(vm.ID)) && name != "." && name != "..", "name",
		"printable text, not a folder", Quote(string(vm.ID)))
	c.need(machineKnown(h.Machine), "machine type", `"q35", "pc", "pc-q35-…" or "pc-i440fx-…"`,
		Quote(h.Machine))
	_, err := ParseCPU(h.CPUModel)
	c.need(err == nil, "CPU model", "a model's name, with features as +name or -name after commas",
		Quote(h.CPUModel))
	if h.Firmware != "" {
		c.Path("firmware", h.Firmware)
	}
}

// Pins adds reasons unless there is a set for each CPU, or none at all.
func (c *Checker) Pins(cpus int, pins [][]int) {
	c.need(len(pins) == 0 || len(pins) == cpus, "pins",
		fmt.Sprintf("one set of CPUs for each of the %d", cpus), len(pins))
	for i, set := range pins {
		c.Set(fmt.Sprintf("pins of CPU %d", i), "CPU", set)
	}
}

// Set adds reasons unless set names one or more CPUs or NUMA nodes.
func (c *Checker) Set(what, unit string, set []int) {
	c.need(len(set) > 0, what, "at least one "+unit, "none")
	for _, n := range set {
		c.need(n >= 0 && n <= maxCPU, what, fmt.Sprintf("%ss 0 to %d", unit, maxCPU), n)
	}
}

// Settings adds reasons unless a host can have these settings.
func (c *Checker) Settings(s Settings) {
	c.need(s.Kind() == KVM || s.Kind() == QEMU, "type of domain", `"kvm" or "qemu"`, Quote(s.Type))
	for _, file := range []struct{ what, path string }{{"emulator", s.Emulator},
		{"folder of disks", s.DiskDir}, {"console log", s.ConsoleLog},
		{"socket of the debug port", s.DebugSocket}} {
		if file.path != "" {
			c.Path(file.what, file.path)
		}
	}
	c.need(len(s.DebugSocket) <= maxSocket, "socket of the debug port",
		fmt.Sprintf("at most %d bytes long", maxSocket), len(s.DebugSocket))
}

func (c *Checker) disks(all []hypervisor.Disk, domain string, s Settings) {
	c.need(len(all) <= maxDisks, "disks", fmt.Sprintf("at most %d", maxDisks), len(all))
	names, taken, images := map[string]bool{}, map[Place]string{}, map[string]hypervisor.Disk{}
	for i, at := range Places(all) {
		d := all[i]
		c.Disk(d, domain, s)
		what := "disk " + Quote(d.Name)
		c.need(!names[d.Name], what+": name", "unique in the VM", "that of another disk, too")
		other, collides := taken[at]
		c.need(!collides || names[d.Name], what+": name",
			fmt.Sprintf("one whose hash differs from that of %q", other), "one with the same")
		image := s.ImageOf(domain, d)
		if twin, shared := images[image]; shared && image != "" {
			c.need(d.ReadOnly && twin.ReadOnly, what+": image", "its own, since it is written to",
				fmt.Sprintf("that of disk %q, too", twin.Name))
		}
		names[d.Name], taken[at], images[image] = true, d.Name, d
	}
}

// Disk adds reasons unless the domain can have the disk d.
func (c *Checker) Disk(d hypervisor.Disk, domain string, s Settings) {
	what := "disk " + Quote(d.Name)
	c.need(DiskName(d.Name), what+": name",
		fmt.Sprintf(`1 to %d lower-case letters, digits and "-"`, maxName), Quote(d.Name))
	c.need(d.Format == "" || d.Format == "raw" || d.Format == "qcow2", what+": format",
		`"raw" or "qcow2"`, Quote(d.Format))
	c.need(d.Size >= 0 && d.Size%sector == 0, what+": size",
		fmt.Sprintf("a multiple of %d bytes", sector), fmt.Sprintf("%d bytes", d.Size))
	if d.Local() && s.DiskDir == "" {
		c.need(false, what+": image", "shared", "local, and this host has no place for local disks")
		return
	}
	c.Path(what+": image", s.ImageOf(domain, d))
}

// DiskName reports whether name can be that of a disk.
func DiskName(name string) bool {
	return name != "" && len(name) <= maxName && name == strings.ToLower(name) && word(name, "-")
}

func (c *Checker) nics(all []hypervisor.NIC) {
	c.need(len(all) <= maxNICs, "network cards", fmt.Sprintf("at most %d", maxNICs), len(all))
	macs, taps := map[string]bool{}, map[string]bool{}
	for i, n := range all {
		what := fmt.Sprintf("network card %d", i)
		mac := strings.ToLower(n.MAC)
		c.need(unicast(mac), what+": MAC", `the address of one card, like "52:54:00:12:34:56"`,
			Quote(n.MAC))
		c.need(!macs[mac], what+": MAC", "unique in the VM", Quote(n.MAC))
		macs[mac] = true
		if n.Tap == "" {
			continue
		}
		c.need(text(n.Tap) && len(n.Tap) <= maxInterface && !strings.ContainsAny(n.Tap, "/: %") &&
			n.Tap != "." && n.Tap != "..", what+": tap", "the name of a network device",
			Quote(n.Tap))
		c.need(!taps[n.Tap], what+": tap", "its own", "that of another card, too")
		taps[n.Tap] = true
	}
}

// unicast reports whether mac is the lower-case address of a single card.
func unicast(mac string) bool {
	parts := strings.Split(mac, ":")
	if len(parts) != 6 || mac == "00:00:00:00:00:00" {
		return false
	}
	for _, p := range parts {
		if len(p) != 2 || strings.Trim(p, "0123456789abcdef") != "" {
			return false
		}
	}
	return strings.ContainsRune("02468ace", rune(parts[0][1]))
}

// Path adds reasons unless QEMU opens exactly the file that p names.
func (c *Checker) Path(what, p string) {
	c.need(strings.HasPrefix(p, "/"), what, "an absolute path", Quote(p))
	c.need(text(p), what, "printable text", Quote(p))
}

// Quote returns s as a person can read it, whatever it is.
func Quote(s string) string { return fmt.Sprintf("%.150q", s) }

// word reports whether s consists of letters, digits and some more characters.
func word(s, more string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		letter := r|0x20 >= 'a' && r|0x20 <= 'z'
		return !letter && (r < '0' || r > '9') && !strings.ContainsRune(more, r)
	})
}

// text reports whether s survives the way through libvirt to QEMU: valid UTF-8
// without control characters and without the codes that no character will ever
// have, which XML or QEMU's JSON refuse.
func text(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return r < ' ' || r == 0x7f || r&0xfffe == 0xfffe || r >= 0xfdd0 && r <= 0xfdef
	}) && len(s) < math.MaxInt16
}
