package fake

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A pace says how bytes pass in time: at rate; or, with a burst above it, so fast
// until what rate allows in a window is through, and then not until it is over.
// Source: QEMU 7.2 migration/migration.c (migration_rate_limit).
type pace struct {
	rate   hypervisor.Bandwidth
	burst  hypervisor.Bandwidth // 0: as rate
	window time.Duration
	origin time.Duration // when some window began
}

// within returns the pace of a sender that cannot do more than most.
func (p pace) within(most hypervisor.Bandwidth) pace {
	if most > 0 {
		p.burst = min(p.burst, most)
		if p.burst == 0 {
			p.rate = min(p.rate, most)
		}
	}
	return p
}

// bursts reports whether the pace is not even.
func (p pace) bursts() bool { return p.burst > p.rate && p.window > 0 }

// speed returns how fast bytes pass while they do.
func (p pace) speed() hypervisor.Bandwidth {
	if p.burst > 0 {
		return p.burst
	}
	return p.rate
}

// share returns what a window lets through.
func (p pace) share() hypervisor.Bytes { return p.rate.In(p.window) }

// until returns what passes from the origin to t.
func (p pace) until(t time.Duration) hypervisor.Bytes {
	windows, into := (t-p.origin)/p.window, (t-p.origin)%p.window
	return p.share()*hypervisor.Bytes(windows) + min(p.share(), p.burst.In(into))
}

// between returns what passes from a to b.
func (p pace) between(a, b time.Duration) hypervisor.Bytes {
	if !p.bursts() {
		return p.speed().In(b - a)
	}
	return p.until(b) - p.until(a)
}

// ends returns when b more bytes have passed after a.
func (p pace) ends(a time.Duration, b hypervisor.Bytes) time.Duration {
	switch {
	case b <= 0:
		return a
	case !p.bursts():
		return laterOf(a, b.At(p.speed()))
	}
	share := p.share()
	if share <= 0 {
		return laterOf(a, b.At(p.rate))
	}
	begins := a - (a-p.origin)%p.window
	total := p.until(a) - p.until(begins) + b
	windows := (total - 1) / share
	if windows > hypervisor.Bytes(hypervisor.Forever/p.window) {
		return hypervisor.Forever
	}
	ends := laterOf(begins, time.Duration(windows)*p.window)
	return laterOf(ends, (total - windows*share).At(p.burst))
}

// laterOf adds without overflow: beyond the end of time is Forever.
func laterOf(t, d time.Duration) time.Duration {
	if d > hypervisor.Forever-t {
		return hypervisor.Forever
	}
	return t + d
}
