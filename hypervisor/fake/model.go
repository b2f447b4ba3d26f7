package fake

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// QEMU returns the Model that fits measured migrations of QEMU 7.2 with KVM best:
// see internal/predict. Speeds are those of a small machine with two
// processors for both ends. Boot and shutdown are a small server's, and what
// compression leaves of a page is a guess: neither was measured.
func QEMU() Model {
	return Model{
		SetUp:        2 * time.Millisecond,
		SwitchOver:   3 * time.Millisecond,
		Acknowledge:  time.Millisecond,
		Window:       100 * time.Millisecond, // QEMU's BUFFER_DELAY
		DeviceState:  64 * hypervisor.KiB,
		PageOverhead: 8, // the page's address
		ZeroPage:     9, // the same, and one byte
		ScanRate:     25_000_000_000,
		PerChannel:   2_200_000_000,
		FirstTouch:   1_600_000_000,
		Compression:  500,
		CompressRate: 180_000_000,
		DeltaCache:   64 * hypervisor.MiB, // QEMU's xbzrle-cache-size
		DeltaPage:    16,
		DeltaRate:    4_500_000_000,
		BootTime:     20 * time.Second,
		ShutdownTime: 5 * time.Second,
	}
}
