package fake

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// The parts of a pass, in the order in which they are sent.
const (
	bulk   = iota // pages; in the first pass all of them, those that are written first
	zero          // what is zero
	late          // written pages that the last pass left, when changes are sent alone
	delta         // pages written since they were sent, of which only the change is sent
	again         // the others that were written since
	device        // in the last pass: the state of the devices
	parts
)

// A part is memory that is sent alike.
type part struct {
	memory hypervisor.Bytes
	wire   hypervisor.Bytes     // what it costs on the wire
	most   hypervisor.Bandwidth // on the wire; 0 is without limit
}

// A pass is one walk over the memory that must be sent.
type pass struct {
	began   time.Duration
	parts   [parts]part
	written hypervisor.Bytes // so much of the front of bulk is written by the guest

	next int              // the part that is being sent
	sent hypervisor.Bytes // of that part's wire, until at
	gone hypervisor.Bytes // the wire of the parts before it
	at   time.Duration
	pace pace // since at
}

// turn changes the speed from now on.
func (p *pass) turn(now time.Duration, to pace) {
	p.advance(now)
	p.pace = to
}

// by returns the pass as it is at now, if nothing changes.
func (p *pass) by(now time.Duration) pass {
	later := *p
	later.advance(now)
	return later
}

// advance sends until now.
func (p *pass) advance(now time.Duration) {
	for ; p.next < parts; p.next++ {
		to := &p.parts[p.next]
		if to.wire == 0 {
			continue
		}
		pace, rest := p.pace.within(to.most), to.wire-p.sent
		passed := pace.between(p.at, now)
		if passed < rest && !pace.bursts() {
			p.sent += passed // it ends later, as nearly always
			break
		}
		ends := pace.ends(p.at, rest)
		if ends > now {
			p.sent += min(rest, passed)
			break
		}
		p.gone, p.sent, p.at = p.gone+to.wire, 0, ends
	}
	p.at = max(p.at, now)
}

// ends returns when everything is on the wire, if nothing changes.
func (p *pass) ends() time.Duration {
	at, sent := p.at, p.sent
	for i := p.next; i < parts; i++ {
		if to := &p.parts[i]; to.wire > 0 {
			at, sent = p.pace.within(to.most).ends(at, to.wire-sent), 0
		}
	}
	return at
}

// through returns how much is on the wire.
func (p *pass) through() hypervisor.Bytes { return p.gone + p.sent }

// remains returns the memory of part i that is not sent.
func (p *pass) remains(i int) hypervisor.Bytes {
	switch part := &p.parts[i]; {
	case i < p.next:
		return 0
	case i > p.next:
		return part.memory
	default:
		return part.memory - scale(part.memory, p.sent, part.wire)
	}
}

// left returns the guest memory that is not sent.
func (p *pass) left() hypervisor.Bytes {
	var left hypervisor.Bytes
	if p.next < parts {
		left = p.remains(p.next)
	}
	for i := p.next + 1; i < parts; i++ {
		left += p.parts[i].memory
	}
	return left
}

// writable returns what of left the guest writes.
func (p *pass) writable() hypervisor.Bytes {
	front := p.written - (p.parts[bulk].memory - p.remains(bulk))
	return max(0, front) + p.remains(late) + p.remains(delta) + p.remains(again)
}

// below returns when less than limit is left, if nothing changes and the part that
// is being sent is not over by then: else when that is over.
func (p *pass) below(limit hypervisor.Bytes) time.Duration {
	if p.next == parts {
		return p.at
	}
	now := &p.parts[p.next]
	excess := p.left() - limit + 1
	if excess <= 0 {
		return p.at
	}
	wire := now.wire - p.sent
	if rest := p.remains(p.next); excess < rest {
		wire = scale(wire, excess, rest) + 1
	}
	return p.pace.within(now.most).ends(p.at, wire)
}
