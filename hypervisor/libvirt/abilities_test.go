//go:build linux && libvirt_dlopen

package libvirt

import (
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/domxml"
)

func TestConnectionsCanBeLostFromQEMU9On(t *testing.T) {
	for qemu, want := range map[uint32]bool{7_002_022: false, 8_002_099: false, 9_000_000: true,
		10_001_002: true} {
		if got := able(9_000_000, qemu); got.Has(hypervisor.CanLoseChannels) != want ||
			!got.Has(hypervisor.CanUseChannels) {
			t.Errorf("with QEMU %s it can %v", version(uint64(qemu)), got.Names())
		}
	}
}

func TestWithTCGNoConnectionMayBeLost(t *testing.T) {
	for kind, want := range map[string]bool{domxml.KVM: true, domxml.QEMU: false} {
		n := &node{Libvirt: 11_003_000, QEMU: 10_000_013, Settings: domxml.Settings{Type: kind}}
		if got := n.able(); got.Has(hypervisor.CanLoseChannels) != want || !got.Has(hypervisor.CanUseChannels) {
			t.Errorf("with %s it can %v", kind, got.Names())
		}
	}
}

func TestQEMUCompressesNoMoreFrom91On(t *testing.T) {
	for qemu, want := range map[uint32]bool{7_002_022: true, 9_000_004: true, 9_001_000: false,
		10_000_013: false} {
		if got := able(9_000_000, qemu); got.Has(hypervisor.CanCompress) != want ||
			!got.Has(hypervisor.CanXBZRLE) {
			t.Errorf("with QEMU %s it can %v", version(uint64(qemu)), got.Names())
		}
	}
}

func TestAPostCopyRecoversNotWithALibvirtThatCrashesThen(t *testing.T) {
	for lib, want := range map[uint32]bool{9_000_000: true, 11_001_000: true, 11_002_000: false,
		11_003_000: false, 11_004_000: true} {
		if got := able(lib, 10_000_013); got.Has(hypervisor.CanRecover) != want ||
			!got.Has(hypervisor.CanPostCopy) {
			t.Errorf("with libvirt %s it can %v", version(uint64(lib)), got.Names())
		}
	}
}

func TestDisksMoveFromLibvirt8On(t *testing.T) {
	for lib, want := range map[uint32]bool{7_010_000: false, 8_000_000: true, 9_000_000: true} {
		if got := able(lib, 7_002_022); got.Has(hypervisor.CanMoveDisk) != want {
			t.Errorf("with libvirt %s it can %v", version(uint64(lib)), got.Names())
		}
	}
}
