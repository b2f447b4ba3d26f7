package guest

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// maxFill is the largest range that can be filled, in bytes: it ends at 2 GiB,
// up to where both of QEMU's machines have their memory in one piece.
const maxFill = 2<<30 - Base

// MaxRate is the largest rate that can be asked for, in bytes per second. No
// machine writes as fast: it means as fast as possible.
const MaxRate int64 = math.MaxInt64

// Params say what a guest does. A zero field takes the default it names.
type Params struct {
	// Fill is how many bytes of memory are not zero: every page holds at least
	// its address and a counter. Default: WorkingSet. A whole number of pages,
	// at least WorkingSet, at most MaxFill.
	Fill int64
	// WorkingSet is how many bytes are written in turn, a few in each page.
	// Default: 1 MiB. A whole number of pages.
	WorkingSet int64
	// Rate is how fast pages of the working set are dirtied, in bytes per second
	// of whole pages. Default: nothing is written. MaxRate is as fast as
	// possible; otherwise at least a page an hour, at most 64 GiB/s.
	Rate int64
	// Heartbeat is the time between two heartbeats. Default: 1 ms, which is also
	// the least: the guest's timer ticks no faster. At most an hour.
	Heartbeat time.Duration
	// Random fills pages with what no compression makes smaller. Default: zeros
	// behind each page's first 16 bytes.
	Random bool
	// Stubborn ignores the power button, as a hung guest does. Default: it powers
	// itself off within a heartbeat.
	Stubborn bool
	// Lossy is for a hypervisor that forgets a write now and then when the guest moves: QEMU
	// before [KeepsWrites] with TCG. The guest does not take a page that it finds behind for damaged, and
	// Verify accepts any number of writes to each page. All else must be as it was left.
	// Source: QEMU 9.0 commit 03bfc2188f (physmem: Fix migration dirty bitmap coherency with TCG
	// memory access); docs/known-hypervisor-faults.md.
	Lossy bool
}

// KeepsWrites is the major version of the first QEMU whose TCG forgets no write of a guest that
// moves; see [Params].Lossy.
const KeepsWrites = 9

const (
	defaultWorkingSet = 1 << 20
	defaultHeartbeat  = time.Millisecond
	maxPaced          = 64 << 30
	slowest           = PageSize/3600 + 1 // a page an hour
	unpacedBatch      = 64                // small enough for heartbeats to be in time
)

// On returns what a guest is to do that moves with this accelerator, "kvm" or another, and a QEMU of this
// major version: p, and Lossy where they may lose writes.
func (p Params) On(accelerator string, qemu int) Params {
	p.Lossy = p.Lossy || accelerator != "kvm" && qemu < KeepsWrites
	return p
}

// withDefaults returns p with every zero field that has a default filled in.
func (p Params) withDefaults() Params {
	if p.WorkingSet == 0 {
		p.WorkingSet = defaultWorkingSet
	}
	if p.Fill == 0 {
		p.Fill = p.WorkingSet
	}
	if p.Heartbeat == 0 {
		p.Heartbeat = defaultHeartbeat
	}
	return p
}

// Check returns every reason why no guest can do what p says, joined; nil means
// it can.
func (p Params) Check() error {
	p = p.withDefaults()
	var why []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			why = append(why, fmt.Errorf("guest: "+format, args...))
		}
	}
	refuse(p.WorkingSet < 0 || p.WorkingSet%PageSize != 0,
		"the working set of %d bytes is no whole number of %d-byte pages", p.WorkingSet, PageSize)
	refuse(p.Fill < 0 || p.Fill%PageSize != 0,
		"the fill of %d bytes is no whole number of %d-byte pages", p.Fill, PageSize)
	refuse(p.Fill < p.WorkingSet,
		"the fill of %d bytes is smaller than the working set of %d; leave it 0 or raise it",
		p.Fill, p.WorkingSet)
	refuse(p.Fill > maxFill, "the fill of %d bytes is larger than %d", p.Fill, int64(maxFill))
	refuse(p.Rate < 0 || p.Rate > maxPaced && p.Rate != MaxRate,
		"the rate of %d bytes/s is not in 0 to %d, nor MaxRate", p.Rate, int64(maxPaced))
	refuse(p.Rate > 0 && p.Rate < slowest,
		"the rate of %d bytes/s is less than a page an hour", p.Rate)
	refuse(p.Heartbeat < time.Millisecond || p.Heartbeat > time.Hour,
		"the heartbeat of %v is not in 1ms to 1h", p.Heartbeat)
	return errors.Join(why...)
}

// block is p in the guest's own terms; p has been checked.
func (p Params) block() Block {
	p = p.withDefaults()
	b := Block{
		FillPages:    uint32(p.Fill / PageSize),
		WorkingPages: uint32(p.WorkingSet / PageSize),
		Heartbeat:    uint32(p.Heartbeat / time.Microsecond),
	}
	b.Batch, b.Period = pace(p.Rate)
	if p.Stubborn {
		b.Flags |= flagStubborn
	}
	if p.Random {
		b.Flags |= flagRandom
	}
	if p.Lossy {
		b.Flags |= flagLossy
	}
	return b
}

// pace turns a rate in bytes per second into pages per period in microseconds.
// A period is at least the guest's timer's, a millisecond, and long enough for
// a whole page.
func pace(rate int64) (batch, period uint32) {
	switch {
	case rate == 0:
		return 0, uint32(time.Second / time.Microsecond)
	case rate == MaxRate:
		return unpacedBatch, 0
	}
	pages := max(1, (rate+PageSize*1000-1)/(PageSize*1000))
	return uint32(pages), uint32((pages*PageSize*1e6 + rate/2) / rate)
}

// BootSector returns the beginning of a disk image that boots the guest through
// the machine's own firmware. The image must be padded to at least 1 MiB. It
// fails when Check does.
func (p Params) BootSector() ([]byte, error) { return p.emit(Program) }

// Firmware returns a ROM of 64 KiB that takes the place of the machine's own
// firmware (-bios) and boots the guest far faster. It fails when Check does.
func (p Params) Firmware() ([]byte, error) { return p.emit(firmware) }

func (p Params) emit(what func(Block) ([]byte, error)) ([]byte, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	return what(p.block())
}
