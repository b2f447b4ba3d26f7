//go:build linux && libvirt_dlopen

package libvirt

import (
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
)

func TestConnectionsCanBeLostFromQEMU9On(t *testing.T) {
	for qemu, want := range map[uint32]bool{7_002_022: false, 8_002_099: false, 9_000_000: true,
		10_001_002: true} {
		if got := abilities(qemu); got.Has(hypervisor.CanLoseChannels) != want ||
			!got.Has(hypervisor.CanUseChannels) {
			t.Errorf("with QEMU %s it can %v", version(uint64(qemu)), got.Names())
		}
	}
}
