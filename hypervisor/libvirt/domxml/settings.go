package domxml

import "github.com/godwit-vm/godwit/hypervisor/libvirt/domxml/internal/spec"

// The types of [Settings.Type].
const (
	KVM  = spec.KVM  // the processor runs the guest
	QEMU = spec.QEMU // QEMU translates the guest's instructions; slow, and works anywhere
)

// Settings are how one host's libvirt runs VMs. The guest sees nothing of them but
// the CPU of a VM that names none.
type Settings = spec.Settings

// Refused is a VM or a disk that no XML is made for, with every reason. It is
// [hypervisor.Invalid]: repeating it cannot help.
type Refused = spec.Refused
