package fake

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A Model is what a hypervisor costs besides the wire. The zero Model is the textbook's: everything
// but the wire is free, passes run to their end, and a channel is as fast as the links.
type Model struct {
	SetUp       time.Duration // from Migrate to the first byte
	SwitchOver  time.Duration // from the last byte to a target that could run
	Acknowledge time.Duration // from there until the source knows
	// Window is how often the hypervisor learns how fast it sends, and begins to send again after
	// it has sent what a cap allows in a window. It looks then, and in the middle of a window if it
	// is sending, whether the rest fits the downtime limit at the speed of the last window; it then
	// begins a new pass at once to see whether it still does. Zero looks at the end of each pass
	// only, and knows the speed of the moment.
	Window time.Duration
	// DeviceState is what is sent after the memory, while the guest is paused.
	DeviceState hypervisor.Bytes
	// PageOverhead is what a page costs besides itself, ZeroPage what a page of zeros costs in all.
	PageOverhead, ZeroPage hypervisor.Bytes
	// ScanRate is how much memory per second is found to be zero. Zero is at once.
	ScanRate hypervisor.Bandwidth
	// PerChannel is what the processors can copy into one connection per second,
	// AllChannels into all of a transfer together. Zero is without limit.
	PerChannel, AllChannels hypervisor.Bandwidth
	// FirstTouch is PerChannel for pages that the target receives for the first
	// time, and must find room for. Zero is as fast as others.
	FirstTouch hypervisor.Bandwidth
	// Compression is what remains of a page, in parts per thousand, when a
	// transfer asks for it. Default: 1000, no gain.
	Compression int
	// CompressRate is how much memory per second the processors can compress.
	// Zero is without limit.
	CompressRate hypervisor.Bandwidth
	// DeltaCache is how much of the memory that it sent a hypervisor remembers for a transfer that
	// asks for XBZRLE; zero is none, and no gain. A page that it remembers costs DeltaPage on the
	// wire, and is compared at DeltaRate (zero is at once).
	DeltaCache, DeltaPage hypervisor.Bytes
	DeltaRate             hypervisor.Bandwidth

	BootTime     time.Duration // from Start to Running
	ShutdownTime time.Duration // what the guest needs when it is asked
}

// costs returns what of the Model concerns transfers.
func (m *Model) costs() commandCosts {
	return commandCosts{
		Memory: costs{Window: m.Window, PageOverhead: m.PageOverhead,
			ZeroPage: m.ZeroPage, ScanRate: m.ScanRate, FirstTouch: m.FirstTouch,
			Compression: m.Compression, CompressRate: m.CompressRate,
			Delta: deltaCosts{Cache: m.DeltaCache, Page: m.DeltaPage, Rate: m.DeltaRate}},
		SetUp: m.SetUp, SwitchOver: m.SwitchOver, Acknowledge: m.Acknowledge,
		DeviceState: m.DeviceState, PerChannel: m.PerChannel, AllChannels: m.AllChannels,
	}
}
