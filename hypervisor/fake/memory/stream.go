package memory

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Costs are what sending memory costs besides the memory.
type Costs struct {
	Window       time.Duration // how often to look whether the rest fits; 0: after each pass
	PageOverhead hypervisor.Bytes
	ZeroPage     hypervisor.Bytes
	Compression  int // what remains of a page, per thousand; 0 is 1000
}

// Options say how a stream is to be.
type Options struct {
	Costs
	Memory       hypervisor.Bytes
	Downtime     time.Duration // how long the rest may take; 0 is 300 ms
	AutoConverge bool
	Compress     bool
}

// defaultDowntime is the blackout allowed to a transfer that names none.
// Source: QEMU 7.2 migration/migration.c (DEFAULT_MIGRATE_SET_DOWNTIME).
const defaultDowntime = 300 * time.Millisecond

// shortestPass bounds what a stream that never converges costs.
const shortestPass = time.Millisecond

// A Stream sends the memory of one guest in passes. The zero value has sent
// nothing; Begin begins. No method may be called with an earlier time.
type Stream struct {
	Options Options

	guest  guest
	pass   pass
	brake  brake
	rest   bool // the pass is sent to its end, whatever fits
	passes int
	begun  time.Duration
	moved  hypervisor.Bytes // in finished passes
	dirty  hypervisor.Bandwidth
}

// Begin begins the first pass, of all memory, at no speed.
func (s *Stream) Begin(now time.Duration, w Workload, runs bool) {
	s.passes, s.begun = 1, now
	s.brake = brake{judged: now}
	s.guest = guest{workload: w, at: now}
	s.Run(now, runs)
	zero := s.Options.Memory / 1000 * hypervisor.Bytes(w.Zero)
	s.send(now, pass{data: s.Options.Memory - zero, zero: zero})
}

// Accelerate changes the speed from now on.
func (s *Stream) Accelerate(now time.Duration, rate hypervisor.Bandwidth) {
	s.pass.turn(now, rate)
}

// Run lets the guest's CPUs run, or stops them, from now on.
func (s *Stream) Run(now time.Duration, runs bool) {
	if runs {
		s.guest.turn(now, 100-s.brake.throttle)
		return
	}
	s.guest.turn(now, 0)
}

// SetWorkload gives the guest another workload from now on.
func (s *Stream) SetWorkload(now time.Duration, w Workload) { s.guest.change(now, w) }

// Ends returns when the present pass ends, if nothing changes: when everything is
// sent, or at the first look at which the rest fits the downtime limit. Then a
// new pass shows whether it really does.
// Source: QEMU 7.2 migration/ram.c (ram_save_pending), migration/migration.c
// (migration_iteration_run, migration_rate_limit).
func (s *Stream) Ends() time.Duration {
	p, window := &s.pass, s.Options.Window
	switch {
	case s.rest:
		return p.ends()
	case p.rate == 0:
		return hypervisor.Forever // nothing times out by itself
	}
	ends := p.ends()
	if window > 0 {
		fits := max(p.at, p.began+1, p.below(s.fitting()))
		if late := (fits - s.begun) % window; late > 0 {
			fits = Later(fits, window-late)
		}
		ends = min(ends, fits)
	}
	return max(ends, p.began+shortestPass)
}

// EndPass takes stock at the end of a pass: it may slow the guest down, and
// returns what must be sent again.
func (s *Stream) EndPass(now time.Duration) hypervisor.Bytes {
	rest, dirty := s.Unsent(now), s.guest.dirtied(now, s.Options.Memory)
	s.dirty = speed(dirty, now-s.pass.began)
	if s.Options.AutoConverge && s.brake.judge(now, dirty, s.Sent(now)) {
		s.brake.tighten()
	}
	s.guest.restart(now)
	if s.guest.share > 0 {
		s.Run(now, true) // as fast as the brake lets it now
	}
	s.passes++
	return rest
}

// Again begins another pass, over rest.
func (s *Stream) Again(now time.Duration, rest hypervisor.Bytes) {
	s.send(now, pass{data: rest})
}

// Finish begins the last pass, over rest and device state.
func (s *Stream) Finish(now time.Duration, rest, device hypervisor.Bytes) {
	s.rest = true
	s.send(now, pass{data: rest, wire: device})
}

// send begins the pass p, of which data, zero and what wire has besides them are
// set, at the speed of the one before.
func (s *Stream) send(now time.Duration, p pass) {
	s.moved += s.pass.sentBy(now)
	p.began, p.at, p.rate = now, now, s.pass.rate
	p.dataWire = s.wire(p.data)
	p.zeroWire = pages(p.zero) * s.Options.ZeroPage
	p.wire += p.dataWire + p.zeroWire
	s.pass = p
}

// wire returns what memory costs on the wire, as pages of data.
func (s *Stream) wire(memory hypervisor.Bytes) hypervisor.Bytes {
	sent := memory
	if ratio := hypervisor.Bytes(s.Options.Compression); s.Options.Compress && ratio > 0 {
		sent = memory/1000*ratio + memory%1000*ratio/1000
	}
	return sent + pages(memory)*s.Options.PageOverhead
}

func pages(b hypervisor.Bytes) hypervisor.Bytes {
	return (b + hypervisor.PageSize - 1) / hypervisor.PageSize
}

// Unsent returns the memory that the other end lacks: what the pass has not sent
// and what was dirtied since it began. What is both counts once: the two are
// taken to meet by chance, in all of the memory or in what the guest writes at all.
func (s *Stream) Unsent(now time.Duration) hypervisor.Bytes {
	memory := s.Options.Memory
	left, dirty, among := s.pass.left(now), s.guest.dirtied(now, memory), memory
	if s.passes > 1 {
		among = max(left, dirty, s.guest.writable(memory))
	}
	return min(memory, left+dirty-scale(left, dirty, among))
}

// Fits reports whether rest fits the downtime limit at the present speed.
// Source: QEMU 7.2 migration/migration.c (migration_iteration_run).
func (s *Stream) Fits(rest hypervisor.Bytes) bool {
	return s.pass.rate > 0 && (rest == 0 || rest < s.fitting())
}

func (s *Stream) fitting() hypervisor.Bytes {
	if s.Options.Downtime > 0 {
		return s.pass.rate.In(s.Options.Downtime)
	}
	return s.pass.rate.In(defaultDowntime)
}

// Passes returns how many passes were begun.
func (s *Stream) Passes() int { return s.passes }

// Sent returns what was on the wire until now.
func (s *Stream) Sent(now time.Duration) hypervisor.Bytes { return s.moved + s.pass.sentBy(now) }

// Left returns what the present pass has not sent; before the first, everything.
func (s *Stream) Left(now time.Duration) hypervisor.Bytes {
	if s.passes == 0 {
		return s.Options.Memory
	}
	return s.pass.left(now)
}

// Rate returns the present speed.
func (s *Stream) Rate() hypervisor.Bandwidth { return s.pass.rate }

// DirtyRate returns how fast the guest dirtied memory during the last whole pass.
func (s *Stream) DirtyRate() hypervisor.Bandwidth { return s.dirty }

// Throttle returns the percentage of CPU time that is taken from the guest.
func (s *Stream) Throttle() int { return s.brake.throttle }

// speed returns what moves b in d, rounded down; d of zero counts as one
// nanosecond.
func speed(b hypervisor.Bytes, d time.Duration) hypervisor.Bandwidth {
	return hypervisor.Bandwidth(float64(b) / float64(max(1, d)) * float64(time.Second))
}
