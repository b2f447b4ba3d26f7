package fake

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake/memory"
	"github.com/godwit-vm/godwit/hypervisor/fake/transfer"
)

// A Model is what a hypervisor costs besides the wire. The zero Model is the
// textbook's: everything but the wire is free, passes run to their end, and a
// channel is as fast as the links.
type Model struct {
	SetUp       time.Duration // from Migrate to the first byte
	SwitchOver  time.Duration // from the last byte to a target that could run
	Acknowledge time.Duration // from there until the source knows
	// Window is how often the hypervisor looks whether the rest fits the
	// downtime limit; it then begins a new pass at once to see whether it
	// still does. Zero looks at the end of each pass only.
	Window time.Duration
	// DeviceState is what is sent after the memory, while the guest stands.
	DeviceState hypervisor.Bytes
	// PageOverhead is what a page costs besides itself, ZeroPage what a page of
	// zeros costs in all.
	PageOverhead, ZeroPage hypervisor.Bytes
	// PerChannel is the speed of one connection; zero is without limit.
	PerChannel hypervisor.Bandwidth
	// Compression is what remains of a page, in parts per thousand, when a
	// transfer asks for it. Default: 1000, no gain.
	Compression int

	BootTime     time.Duration // from Start to Running
	ShutdownTime time.Duration // what the guest needs when it is asked
}

// QEMU returns the Model that fits measured migrations of QEMU 7.2 best: see
// testdata/measurements. Boot and shutdown are a small server's, not measured.
func QEMU() Model {
	return Model{
		SetUp:        2 * time.Millisecond,
		SwitchOver:   4 * time.Millisecond,
		Acknowledge:  time.Millisecond,
		Window:       100 * time.Millisecond, // QEMU's BUFFER_DELAY
		DeviceState:  64 * hypervisor.KiB,
		PageOverhead: 8, // the page's address
		ZeroPage:     9, // the same, and one byte
		PerChannel:   1_600_000_000,
		Compression:  500,
		BootTime:     20 * time.Second,
		ShutdownTime: 5 * time.Second,
	}
}

// costs are what of the Model concerns transfers.
func (m *Model) costs() transfer.Costs {
	return transfer.Costs{
		Memory: memory.Costs{Window: m.Window, PageOverhead: m.PageOverhead,
			ZeroPage: m.ZeroPage, Compression: m.Compression},
		SetUp: m.SetUp, SwitchOver: m.SwitchOver, Acknowledge: m.Acknowledge,
		DeviceState: m.DeviceState, PerChannel: m.PerChannel,
	}
}
