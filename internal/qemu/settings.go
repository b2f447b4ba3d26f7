package qemu

import (
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
)

// The accelerators of [Settings.Accelerator].
const (
	KVM = "kvm" // the processor runs the guest
	TCG = "tcg" // QEMU translates the guest's instructions; slow, and works anywhere
)

// Settings are how one host runs a VM. The guest sees nothing of them but the CPU
// model.
type Settings struct {
	// Dir is the folder of the VM's sockets and files on this host, absolute. Only
	// the owner may enter it: a process that reaches the sockets controls the VM.
	Dir string
	// Accelerator is KVM or TCG. Default: TCG.
	Accelerator string
	// CPU is the CPU model of a VM that names none. Default: "host" with KVM,
	// "qemu64" with TCG.
	CPU string
	// Incoming makes QEMU wait for a migration instead of a fresh start.
	Incoming bool
	// LocalDisk returns where this host keeps the image of a local disk. It may be
	// nil if no VM has one.
	LocalDisk func(name string) string
	// Buffered lets images of shared disks use the host's page cache. Default:
	// they bypass it (O_DIRECT), since another host may not see what is in it. A
	// file system that does not know O_DIRECT needs it.
	Buffered bool
	// Console makes the guest's first serial port a socket and a log. Default:
	// what the guest writes there is thrown away; it has the port in any case.
	Console bool
	// Unconfined leaves out the filter of system calls, for a QEMU that was built
	// without it. Default: guests that break into QEMU find themselves in it.
	Unconfined bool
	// Extra are arguments that are appended as they are. They are trusted.
	Extra []string
}

// QMP returns the path of the socket on which QEMU takes commands.
func (s Settings) QMP() string { return s.Dir + "/qmp.sock" }

// PIDFile returns the path of the file with QEMU's process ID.
func (s Settings) PIDFile() string { return s.Dir + "/qemu.pid" }

// ConsoleSocket returns the path of the socket of the serial console.
func (s Settings) ConsoleSocket() string { return s.Dir + "/console.sock" }

// ConsoleLog returns the path of the file with all that the guest wrote to its
// serial console on this host.
func (s Settings) ConsoleLog() string { return s.Dir + "/console.log" }

// DebugSocket returns the path of the socket of the debug port. What the guest
// writes while nothing listens is lost.
func (s Settings) DebugSocket() string { return s.Dir + "/debug.sock" }

// Owns reports whether argv is the command line of a QEMU that [Args] made for
// these settings: its folder is the same.
func (s Settings) Owns(argv []string) bool { return Owned(argv) == s.PIDFile() }

// Owned returns the PIDFile of the settings for which [Args] made the command line of a
// QEMU; "" is none.
func Owned(argv []string) string {
	for i, arg := range argv {
		if arg == "-pidfile" && i+1 < len(argv) {
			return argv[i+1]
		}
	}
	return ""
}

// runs returns the UUID of the VM that a process with these arguments runs; "" is none.
func runs(argv []string) string {
	for i, arg := range argv {
		if (arg == "-uuid" || arg == "--uuid") && i+1 < len(argv) {
			return strings.ToLower(argv[i+1])
		}
	}
	return ""
}

func (s Settings) accelerator() string {
	if s.Accelerator == "" {
		return TCG
	}
	return s.Accelerator
}

// cpu returns the CPU model of a VM with the hardware h.
func (s Settings) cpu(h hypervisor.Hardware) string {
	switch {
	case h.CPUModel != "":
		return h.CPUModel
	case s.CPU != "":
		return s.CPU
	case s.accelerator() == KVM:
		return "host"
	}
	return "qemu64"
}

// image returns where the image of d is; "" if this host has no place for it.
func (s Settings) image(d hypervisor.Disk) string {
	switch {
	case !d.Local():
		return d.Path
	case s.LocalDisk == nil:
		return ""
	}
	return s.LocalDisk(d.Name)
}

// hardware returns what a VM is made of; none is the default.
func hardware(h *hypervisor.Hardware) hypervisor.Hardware {
	if h == nil {
		return hypervisor.Hardware{}
	}
	return *h
}
