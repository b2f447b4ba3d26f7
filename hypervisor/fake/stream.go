package fake

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// costs are what sending memory costs besides the memory.
type costs struct {
	Window       time.Duration // see gauge; 0: after each pass, by the present speed
	PageOverhead hypervisor.Bytes
	ZeroPage     hypervisor.Bytes
	ScanRate     hypervisor.Bandwidth // how fast zeros are found; 0: at once
	FirstTouch   hypervisor.Bandwidth // into memory that the target never touched; 0: no limit
	Compression  int                  // what remains of a page, per thousand; 0 is 1000
	CompressRate hypervisor.Bandwidth // memory that is compressed; 0: at once
	Delta        deltaCosts
}

// A deltaCosts is what it costs to send only what changed in a page.
// Source: QEMU 7.2 migration/ram.c (save_xbzrle_page).
type deltaCosts struct {
	Cache hypervisor.Bytes     // sent pages that the sender remembers; 0 is none
	Page  hypervisor.Bytes     // what a page with a small change costs in all
	Rate  hypervisor.Bandwidth // memory that is compared per second; 0: at once
}

// streamOptions say how a stream is to be.
type streamOptions struct {
	Costs        costs
	Memory       hypervisor.Bytes
	Downtime     time.Duration // how long the rest may take; 0 is 300 ms
	AutoConverge bool
	Compress     bool
	XBZRLE       bool
}

// defaultDowntime is the downtime allowed to a transfer that names none.
// Source: QEMU 7.2 migration/migration.c (DEFAULT_MIGRATE_SET_DOWNTIME).
const defaultDowntime = 300 * time.Millisecond

// shortestPass bounds what a stream that never converges costs.
const shortestPass = time.Millisecond

// unsent is memory that the other end lacks.
type unsent struct {
	bulk, zero, again hypervisor.Bytes
	late              hypervisor.Bytes // of again: what the last pass left
}

func (u unsent) total() hypervisor.Bytes { return u.bulk + u.zero + u.again }

// A stream sends the memory of one guest in passes. The zero value has sent
// nothing; Begin begins. No method may be called with an earlier time.
type stream struct {
	Options streamOptions

	guest  guest
	pass   pass
	gauge  gauge
	brake  brake
	final  bool // the pass is sent to its end, whatever fits
	hurry  bool // the pass ends at the next look
	passes int
	moved  hypervisor.Bytes // in finished passes
	known  hypervisor.Bytes // memory whose changes could be sent alone
	todo   unsent           // when the last pass ended
	dirty  hypervisor.Bandwidth
}

// An account is how far a stream is.
type account struct {
	Passes    int
	Sent      hypervisor.Bytes     // on the wire
	Left      hypervisor.Bytes     // of the present pass; before the first, everything
	DirtyRate hypervisor.Bandwidth // of the guest, during the last whole pass
	Throttle  int                  // percent of CPU time that is taken from the guest
}

// account returns how far the stream is.
func (s *stream) account(now time.Duration) account {
	p, left := s.pass.by(now), s.Options.Memory
	if s.passes > 0 {
		left = p.left()
	}
	return account{s.passes, s.moved + p.through(), left, s.dirty, s.brake.throttle}
}

// Begin begins the first pass, of all memory, at no speed. What the guest writes
// comes first in it, zeros last.
func (s *stream) Begin(now time.Duration, w Workload, runs bool) {
	s.passes, s.pass.at = 1, now
	s.brake = brake{judged: now}
	s.guest = guest{workload: w, at: now}
	s.gauge = gauge{window: s.Options.Costs.Window, origin: now}
	s.Run(now, runs)
	zeros := s.Options.Memory / 1000 * hypervisor.Bytes(w.Zero)
	s.send(now, unsent{bulk: s.Options.Memory - zeros, zero: zeros}, 0)
	s.pass.written = min(s.pass.parts[bulk].memory, s.guest.writable(s.Options.Memory))
}

// Accelerate changes the speed from now on: to rate, or, with a burst above it, so
// fast until what rate allows in a window is sent.
func (s *stream) Accelerate(now time.Duration, rate, burst hypervisor.Bandwidth) {
	s.learn(now)
	if rate == 0 || s.gauge.window == 0 {
		burst = 0
	}
	s.pass.turn(now, pace{rate, burst, s.gauge.window, s.gauge.origin})
}

// Run lets the guest's CPUs run, or stops them, from now on.
func (s *stream) Run(now time.Duration, runs bool) {
	if runs {
		s.guest.turn(now, s.guest.workload.share(s.brake.throttle))
		return
	}
	s.guest.turn(now, 0)
}

// SetWorkload gives the guest another workload from now on.
func (s *stream) SetWorkload(now time.Duration, w Workload) { s.guest.change(now, w) }

// Hurry ends the pass at the next look, or now if there are none.
func (s *stream) Hurry(now time.Duration) {
	s.hurry = true
	s.Accelerate(now, s.pass.pace.rate, s.pass.pace.burst)
}

// Ends returns when the present pass ends, if nothing changes: when everything is
// sent, or at the first look at which the rest fits the downtime limit. Then a
// new pass shows whether it really does.
// Source: QEMU 7.2 migration/ram.c (ram_save_pending), migration/migration.c
// (migration_iteration_run).
func (s *stream) Ends() time.Duration {
	p := &s.pass
	switch {
	case s.final:
		return p.ends()
	case p.pace.rate == 0:
		return hypervisor.Forever // nothing times out by itself
	}
	ends := p.ends()
	if s.gauge.window > 0 {
		ends = s.fits(ends)
	}
	if s.hurry {
		return min(ends, s.soon())
	}
	return max(ends, p.began+shortestPass)
}

// soon returns when the sender looks next.
func (s *stream) soon() time.Duration {
	if s.gauge.window == 0 {
		return s.pass.at
	}
	return s.gauge.look(s.pass.at, s.pass.pace)
}

// fits returns the first look at which the rest fits, before the pass is over.
// While a part is sent evenly, only the first two windows differ from the others.
func (s *stream) fits(over time.Duration) time.Duration {
	p, g := &s.pass, s.gauge
	var q pass // as it is at t
	sent := func(at time.Duration) hypervisor.Bytes {
		if at == q.at {
			return s.moved + q.through()
		}
		earlier := p.by(at)
		return s.moved + earlier.through()
	}
	limit, even := s.downtime(), p.at
	for t, now := g.look(p.at, p.pace), p.next; t < over; {
		q = p.by(t)
		if q.next != now {
			now, even = q.next, t
		}
		g = g.learn(t, sent)
		fitting := g.fitting(limit)
		if t > p.began && q.left() < fitting {
			return t
		}
		if g.ends()-2*g.window >= even { // the last window tells of all to come
			t = max(t, q.below(fitting)-1)
		}
		t = g.look(t, p.pace)
	}
	return over
}

// learn lets the gauge know what was sent until now.
func (s *stream) learn(now time.Duration) {
	if s.gauge.window > 0 {
		s.gauge = s.gauge.learn(now, s.Sent)
	}
}

// EndPass takes stock at the end of a pass: it may slow the guest down, and
// returns what must be sent again.
func (s *stream) EndPass(now time.Duration) hypervisor.Bytes {
	s.learn(now)
	p, dirty := s.pass.by(now), s.guest.dirtied(now, s.Options.Memory)
	s.todo = s.lacking(&p, dirty)
	rest := s.todo.total()
	s.dirty = speed(dirty, now-p.began)
	if s.Options.AutoConverge && s.brake.judge(now, rest-p.left(), s.Sent(now)) {
		s.brake.tighten()
	}
	if s.passes > 1 {
		seen := p.parts[late].memory - p.remains(late) + p.parts[again].memory - p.remains(again)
		s.known = min(s.Options.Costs.Delta.Cache, s.known+seen)
	}
	s.guest.restart(now)
	if s.guest.share > 0 {
		s.Run(now, true) // as fast as the brake lets it now
	}
	s.passes++
	s.hurry = false
	return rest
}

// Again begins another pass, over what the last one left.
func (s *stream) Again(now time.Duration) { s.send(now, s.todo, 0) }

// Finish begins the last pass, over what the one before left and device state. A
// sender with windows takes stock once more before it.
// Source: QEMU 7.2 migration/ram.c (ram_save_complete).
func (s *stream) Finish(now time.Duration, device hypervisor.Bytes) {
	s.count()
	s.send(now, s.todo, device)
}

// Defer ends the present pass in the middle and begins one over the device state
// only. It returns the memory that Fetch will send.
func (s *stream) Defer(now time.Duration, device hypervisor.Bytes) hypervisor.Bytes {
	s.learn(now)
	s.todo = s.unsent(now)
	s.count()
	s.send(now, unsent{}, device)
	return s.todo.total()
}

// Fetch begins the pass over what was deferred.
func (s *stream) Fetch(now time.Duration) { s.send(now, s.todo, 0) }

func (s *stream) count() {
	s.final = true
	if s.gauge.window > 0 {
		s.passes++
	}
}

// send begins a pass over u and device state, at the speed of the one before.
func (s *stream) send(now time.Duration, u unsent, state hypervisor.Bytes) {
	s.moved += s.sentInPass(now)
	p := pass{began: now, at: now, pace: s.pass.pace}
	o := &s.Options
	var packed hypervisor.Bandwidth
	if o.Compress {
		packed = slowed(o.Costs.CompressRate, s.wire(hypervisor.PageSize))
	}
	p.parts[bulk] = part{memory: u.bulk, wire: s.wire(u.bulk), most: slowest(packed, o.Costs.FirstTouch)}
	p.parts[zero] = part{memory: u.zero, wire: pages(u.zero) * o.Costs.ZeroPage,
		most: slowed(o.Costs.ScanRate, o.Costs.ZeroPage)}
	if o.XBZRLE {
		rest := u.again - u.late
		changed := scale(rest, s.known, s.guest.writable(o.Memory)-u.late)
		p.parts[late] = part{memory: u.late, wire: s.wire(u.late), most: packed}
		p.parts[delta] = part{memory: changed, wire: pages(changed) * o.Costs.Delta.Page,
			most: slowed(o.Costs.Delta.Rate, o.Costs.Delta.Page)}
		u.again = rest - changed
	}
	p.parts[again] = part{memory: u.again, wire: s.wire(u.again), most: packed}
	p.parts[device] = part{wire: state}
	s.pass = p
}

// slowed returns how fast the wire fills with pages of a size that are found in
// memory at rate.
func slowed(rate hypervisor.Bandwidth, page hypervisor.Bytes) hypervisor.Bandwidth {
	if rate == 0 || page == 0 {
		return 0
	}
	return max(1, rate/hypervisor.Bandwidth(hypervisor.PageSize)*hypervisor.Bandwidth(page))
}

// slowest returns the smaller limit, of which zero is none.
func slowest(a, b hypervisor.Bandwidth) hypervisor.Bandwidth {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// wire returns what memory costs on the wire, as pages of data.
func (s *stream) wire(memory hypervisor.Bytes) hypervisor.Bytes {
	sent := memory
	if ratio := hypervisor.Bytes(s.Options.Costs.Compression); s.Options.Compress && ratio > 0 {
		sent = memory/1000*ratio + memory%1000*ratio/1000
	}
	return sent + pages(memory)*s.Options.Costs.PageOverhead
}

func pages(b hypervisor.Bytes) hypervisor.Bytes {
	return (b + hypervisor.PageSize - 1) / hypervisor.PageSize
}

// unsent returns what the pass has not sent and what was dirtied since it began.
func (s *stream) unsent(now time.Duration) unsent {
	p := s.pass.by(now)
	return s.lacking(&p, s.guest.dirtied(now, s.Options.Memory))
}

// lacking is unsent when the pass is as p, and so much was dirtied.
func (s *stream) lacking(p *pass, dirty hypervisor.Bytes) unsent {
	memory, left := s.Options.Memory, p.writable()
	others, zeros := p.left()-left, p.remains(zero)
	again := min(memory-others, s.guest.stale(left, dirty, memory))
	return unsent{bulk: others - zeros, zero: zeros, again: again, late: min(left, again)}
}

// Fits reports whether rest fits the downtime limit at the speed that the sender
// knows. One that knows none, because no window is over, takes everything to fit.
// Source: QEMU 7.2 migration/migration.c (migration_iteration_run).
func (s *stream) Fits(rest hypervisor.Bytes) bool {
	switch {
	case s.pass.pace.rate == 0:
		return false
	case rest == 0:
		return true
	case s.gauge.window == 0:
		return rest < s.pass.pace.rate.In(s.downtime())
	}
	return s.gauge.past == 0 || rest < s.gauge.fitting(s.downtime())
}

func (s *stream) downtime() time.Duration {
	if s.Options.Downtime > 0 {
		return s.Options.Downtime
	}
	return defaultDowntime
}

// Sent returns what was on the wire until now.
func (s *stream) Sent(now time.Duration) hypervisor.Bytes { return s.moved + s.sentInPass(now) }

func (s *stream) sentInPass(now time.Duration) hypervisor.Bytes {
	if now == s.pass.at {
		return s.pass.through()
	}
	p := s.pass.by(now)
	return p.through()
}

// Rate returns the present speed.
func (s *stream) Rate() hypervisor.Bandwidth { return s.pass.pace.rate }

// speed returns what moves b in d, rounded down; d of zero counts as one
// nanosecond.
func speed(b hypervisor.Bytes, d time.Duration) hypervisor.Bandwidth {
	return hypervisor.Bandwidth(float64(b) / float64(max(1, d)) * float64(time.Second))
}
