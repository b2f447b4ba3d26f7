package domxml

import (
	"slices"

	lx "libvirt.org/go/libvirtxml"
)

// ArchCapabilities is a feature of Intel's processors that QEMU before 10.1 takes for one of
// AMD's, too.
const ArchCapabilities = "arch-capabilities"

// Unfit returns [ArchCapabilities] if libvirt's capabilities for domains say that the host's CPU
// has them and is AMD's: QEMU aborts in a kernel that does not go along with that. They do not
// count if they cannot be read.
// Source: QEMU commit d3a24134e37d, in 10.1 (do not expose ARCH_CAPABILITIES on AMD CPU).
func Unfit(capabilities string) string {
	var offer lx.DomainCaps
	if offer.Unmarshal(capabilities) != nil || offer.CPU == nil {
		return ""
	}
	for _, m := range offer.CPU.Modes {
		if m.Vendor == "AMD" && slices.ContainsFunc(m.Features, has) {
			return ArchCapabilities
		}
	}
	return ""
}

func has(f lx.DomainCapsCPUFeature) bool {
	return f.Name == ArchCapabilities && f.Policy == "require"
}
