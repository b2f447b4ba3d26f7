package backend

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/godwit-vm/godwit/hypervisor"
)

// The limits of a machine.
const (
	// MaxCPUs is how many CPUs can be interrupted without an IOMMU that remaps
	// interrupts, which no machine here has.
	MaxCPUs = 255
	// Sector is the unit of a disk's size, in bytes.
	Sector   = 512
	maxDisks = 128
	maxNICs  = 16
	// maxName is how long a disk's name may be.
	maxName = 63
	// MaxSocket is the length of a path in sockaddr_un, less its end.
	MaxSocket = 107
	// maxInterface is the length of a network device's name on Linux, less its end.
	maxInterface = 15
	// MaxCPU is the highest number of a host's CPU in an affinity mask.
	MaxCPU = 1023
)

// Refused is a VM or a disk that cannot be built, with every reason. It is
// [hypervisor.Invalid]: repeating it cannot help.
type Refused struct {
	VM      hypervisor.VMID // "" for a disk of a VM
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

// A Checker collects reasons. Its zero value has none.
type Checker struct{ why []hypervisor.Reason }

// Refused returns a *[Refused] with the reasons so far; nil if there is none.
func (c *Checker) Refused(vm hypervisor.VMID) error {
	if c.why == nil {
		return nil
	}
	return &Refused{VM: vm, Reasons: c.why}
}

// Need adds a reason unless it holds.
func (c *Checker) Need(holds bool, check, need string, have any) {
	if !holds {
		c.why = append(c.why, hypervisor.Reason{Check: check, Need: need,
			Have: fmt.Sprint(have)})
	}
}

// CPUs adds a reason unless a VM can have so many.
func (c *Checker) CPUs(n int) {
	c.Need(n >= 1 && n <= MaxCPUs, "CPUs", fmt.Sprintf("1 to %d", MaxCPUs), n)
}

// Room adds reasons unless a VM can have the room to grow, and the memory modules, of its hardware.
func (c *Checker) Room(vm hypervisor.VM, h hypervisor.Hardware) {
	c.Need(h.MaxMemory >= 0 && h.MaxMemory%hypervisor.DIMMUnit == 0, "most memory",
		fmt.Sprintf("a multiple of %v", hypervisor.DIMMUnit), h.MaxMemory)
	c.Need(h.MaxCPUs >= 0 && h.MaxCPUs <= MaxCPUs, "most CPUs", fmt.Sprintf("up to %d", MaxCPUs), h.MaxCPUs)
	c.Need(len(h.DIMMs) <= hypervisor.MaxDIMMs, "memory modules",
		fmt.Sprintf("up to %d", hypervisor.MaxDIMMs), len(h.DIMMs))
	left := vm.Memory
	for _, size := range h.DIMMs {
		c.Need(size > 0 && size%hypervisor.DIMMUnit == 0, "memory module",
			fmt.Sprintf("a multiple of %v", hypervisor.DIMMUnit), size)
		left -= max(0, min(size, left))
	}
	c.Need(len(h.DIMMs) == 0 || left > 0 && vm.Memory <= h.MaxMemory, "memory modules",
		fmt.Sprintf("less than its memory of %v, which is within its most", vm.Memory), h.MaxMemory)
}

// Hugepages adds reasons unless memory can be made of these pages; 0 is the usual ones.
func (c *Checker) Hugepages(page, memory hypervisor.Bytes) {
	if page == 0 {
		return
	}
	power := page > hypervisor.PageSize && page&(page-1) == 0
	c.Need(power, "hugepages", fmt.Sprintf("a power of two above %v", hypervisor.PageSize), page)
	c.Need(!power || memory%page == 0, "memory",
		fmt.Sprintf("a multiple of its pages of %v", page), memory)
}

// Pins adds reasons unless there is a set for each CPU, or none at all.
func (c *Checker) Pins(cpus int, pins [][]int) {
	c.Need(len(pins) == 0 || len(pins) == cpus, "pins",
		fmt.Sprintf("one set of CPUs for each of the %d", cpus), len(pins))
	for i, set := range pins {
		c.Set(fmt.Sprintf("pins of CPU %d", i), "CPU", set)
	}
}

// Set adds reasons unless set names one or more CPUs or NUMA nodes.
func (c *Checker) Set(what, unit string, set []int) {
	c.Need(len(set) > 0, what, "at least one "+unit, "none")
	for _, n := range set {
		c.Need(n >= 0 && n <= MaxCPU, what, fmt.Sprintf("%ss 0 to %d", unit, MaxCPU), n)
	}
}

// An Image returns the path of a disk's image; "" for a local one on a host without a folder
// for local disks.
type Image func(hypervisor.Disk) string

// Disks adds reasons unless a VM can have all of these disks, where at is the address of each on
// its controller.
func Disks[P comparable](c *Checker, all []hypervisor.Disk, at []P, image Image) {
	c.Need(len(all) <= maxDisks, "disks", fmt.Sprintf("at most %d", maxDisks), len(all))
	names, taken, images := map[string]bool{}, map[P]string{}, map[string]hypervisor.Disk{}
	for i, place := range at {
		d := all[i]
		c.Disk(d, image)
		what := "disk " + Quote(d.Name)
		c.Need(!names[d.Name], what+": name", "unique in the VM", "that of another disk, too")
		other, collides := taken[place]
		c.Need(!collides || names[d.Name], what+": name",
			fmt.Sprintf("one whose hash differs from that of %q", other), "one with the same")
		path := image(d)
		if twin, shared := images[path]; shared && path != "" {
			c.Need(d.ReadOnly && twin.ReadOnly, what+": image", "its own, since it is written to",
				fmt.Sprintf("that of disk %q, too", twin.Name))
		}
		names[d.Name], taken[place], images[path] = true, d.Name, d
	}
}

// Disk adds reasons unless a VM can have the disk d.
func (c *Checker) Disk(d hypervisor.Disk, image Image) {
	what := "disk " + Quote(d.Name)
	c.Need(DiskName(d.Name), what+": name",
		fmt.Sprintf(`1 to %d lower-case letters, digits and "-"`, maxName), Quote(d.Name))
	c.Need(d.Format == "" || d.Format == "raw" || d.Format == "qcow2", what+": format",
		`"raw" or "qcow2"`, Quote(d.Format))
	c.Need(d.Size >= 0 && d.Size%Sector == 0, what+": size",
		fmt.Sprintf("a multiple of %d bytes", Sector), fmt.Sprintf("%d bytes", d.Size))
	path := image(d)
	if d.Local() && path == "" {
		c.Need(false, what+": image", "shared", "local, and this host has no place for local disks")
		return
	}
	c.Path(what+": image", path)
}

// DiskName reports whether name can be that of a disk.
func DiskName(name string) bool {
	return name != "" && len(name) <= maxName && name == strings.ToLower(name) && Word(name, "-")
}

// NICs adds reasons unless a VM can have these network cards.
func (c *Checker) NICs(all []hypervisor.NIC) {
	c.Need(len(all) <= maxNICs, "network cards", fmt.Sprintf("at most %d", maxNICs), len(all))
	macs, taps := map[string]bool{}, map[string]bool{}
	for i, n := range all {
		what := fmt.Sprintf("network card %d", i)
		mac := strings.ToLower(n.MAC)
		c.Need(unicast(mac), what+": MAC", `the address of one card, like "52:54:00:12:34:56"`,
			Quote(n.MAC))
		c.Need(!macs[mac], what+": MAC", "unique in the VM", Quote(n.MAC))
		macs[mac] = true
		if n.Tap == "" {
			continue
		}
		c.Need(Printable(n.Tap) && len(n.Tap) <= maxInterface && !strings.ContainsAny(n.Tap, "/: %") &&
			n.Tap != "." && n.Tap != "..", what+": tap", "the name of a network device",
			Quote(n.Tap))
		c.Need(!taps[n.Tap], what+": tap", "its own", "that of another card, too")
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
	c.Need(strings.HasPrefix(p, "/"), what, "an absolute path", Quote(p))
	c.Need(Printable(p), what, "printable text", Quote(p))
}

// Quote returns s as a person can read it, whatever it is.
func Quote(s string) string { return fmt.Sprintf("%.150q", s) }

// Word reports whether s consists of letters, digits and some more characters.
func Word(s, more string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		letter := r|0x20 >= 'a' && r|0x20 <= 'z'
		return !letter && (r < '0' || r > '9') && !strings.ContainsRune(more, r)
	})
}

// Printable reports whether s survives the way to QEMU, through libvirt or not: valid UTF-8 without
// control characters and without the codes that no character will ever have, which XML or
// QEMU's JSON refuse.
func Printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return r < ' ' || r == 0x7f || r&0xfffe == 0xfffe || r >= 0xfdd0 && r <= 0xfdef
	}) && len(s) < math.MaxInt16
}
