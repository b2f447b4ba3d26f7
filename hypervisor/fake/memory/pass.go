package memory

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A pass is one walk over the memory that must be sent: data first, zeros last,
// and behind them, in the last pass, the device state.
type pass struct {
	began    time.Duration
	data     hypervisor.Bytes // guest memory to send as pages
	zero     hypervisor.Bytes // guest memory to send as "is zero"
	dataWire hypervisor.Bytes // what data costs on the wire
	zeroWire hypervisor.Bytes // what zero costs on the wire
	wire     hypervisor.Bytes // everything on the wire

	sent hypervisor.Bytes // of wire, until at
	at   time.Duration
	rate hypervisor.Bandwidth // since at
}

// sentBy returns how much was on the wire at now.
func (p *pass) sentBy(now time.Duration) hypervisor.Bytes {
	return min(p.wire, p.sent+p.rate.In(now-p.at))
}

// turn changes the speed from now on.
func (p *pass) turn(now time.Duration, rate hypervisor.Bandwidth) {
	p.sent, p.at, p.rate = p.sentBy(now), now, rate
}

// left returns the guest memory that is not sent at now.
func (p *pass) left(now time.Duration) hypervisor.Bytes {
	sent := p.sentBy(now)
	switch {
	case sent >= p.dataWire+p.zeroWire:
		return 0
	case sent >= p.dataWire:
		return p.zero - scale(p.zero, sent-p.dataWire, p.zeroWire)
	}
	return p.data - scale(p.data, sent, p.dataWire) + p.zero
}

// ends returns when everything is on the wire, if nothing changes.
func (p *pass) ends() time.Duration { return Later(p.at, (p.wire - p.sent).At(p.rate)) }

// below returns when less than limit is left, if nothing changes.
func (p *pass) below(limit hypervisor.Bytes) time.Duration {
	var sent hypervisor.Bytes
	if limit > p.zero {
		excess := max(0, p.data+p.zero-limit+1)
		sent = scale(p.dataWire, excess, p.data)
	} else {
		sent = p.dataWire + scale(p.zeroWire, p.zero-limit+1, p.zero)
	}
	return Later(p.at, (sent + 1 - p.sent).At(p.rate))
}

// Later adds without overflow: beyond the end of time is Forever.
func Later(t, d time.Duration) time.Duration {
	if d > hypervisor.Forever-t {
		return hypervisor.Forever
	}
	return t + d
}
