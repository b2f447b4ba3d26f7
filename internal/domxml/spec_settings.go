package domxml

import (
	"path"

	"github.com/godwit-vm/godwit/hypervisor"
)

// The types of [Settings.Type].
const (
	KVM  = "kvm"  // the processor runs the guest
	QEMU = "qemu" // QEMU translates the guest's instructions; slow, and works anywhere
)

// Settings are how one host's libvirt runs VMs. The guest sees nothing of them but
// the CPU of a VM that names none.
type Settings struct {
	// Type is KVM or QEMU. Default: KVM.
	Type string
	// Unfit is a feature that the host's CPU is said to have, and that no guest gets: a VM that
	// names no CPU goes without it. Default: none.
	Unfit string
	// Namespace is the namespace of domains whose name has none. Default: "default".
	Namespace string
	// Emulator is the program that runs the guest. Default: libvirt's choice.
	Emulator string
	// DiskDir is the folder with the images of local disks, absolute. Default:
	// none, and a VM with a local disk is refused.
	DiskDir string
	// Buffered lets images of shared disks use the host's page cache. Default:
	// they bypass it, since another host may not see what is in it.
	Buffered bool
	// ConsoleLog is the file with what the guest writes to its serial console,
	// absolute: its console cannot be opened then. Default: it is not kept.
	ConsoleLog string
	// DebugSocket is the socket on which QEMU waits for a client that listens to the debug
	// port, absolute. Default: what the guest writes there is thrown away.
	DebugSocket string
}

// Image returns where this host keeps the image of a local disk of the domain.
// It is empty if the host has no place for local disks.
func (s Settings) Image(domain, disk string) string {
	if s.DiskDir == "" {
		return ""
	}
	return path.Join(s.DiskDir, domain+"."+disk)
}

// ImageOf returns where the image of d is; "" if this host has no place for it.
func (s Settings) ImageOf(domain string, d hypervisor.Disk) string {
	if d.Local() {
		return s.Image(domain, d.Name)
	}
	return d.Path
}

// kind returns the type of the host's domains.
func (s Settings) kind() string {
	if s.Type == "" {
		return KVM
	}
	return s.Type
}

// Hardware returns what a VM is made of; none is the default.
func Hardware(h *hypervisor.Hardware) hypervisor.Hardware {
	if h == nil {
		return hypervisor.Hardware{}
	}
	return *h
}
