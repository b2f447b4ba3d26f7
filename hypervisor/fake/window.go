package fake

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A gauge is what a sender knows of its speed: what the last whole window let
// through. It learns nothing between two windows.
// Source: QEMU 7.2 migration/migration.c (migration_update_counters).
type gauge struct {
	window time.Duration
	origin time.Duration    // when the first window began
	past   time.Duration    // windows that are over
	sent   hypervisor.Bytes // before the present window
	last   hypervisor.Bytes // in the last whole window
}

// ends returns when the present window is over.
func (g *gauge) ends() time.Duration { return g.origin + (g.past+1)*g.window }

// learn returns the gauge as it is at now, after more bytes than when it learned
// last: sent returns how many were sent by a time since then.
func (g gauge) learn(now time.Duration, sent func(time.Duration) hypervisor.Bytes) gauge {
	past := (now - g.origin) / g.window
	if past <= g.past {
		return g
	}
	if past > g.past+1 {
		g.sent = sent(g.origin + (past-1)*g.window)
	}
	before := g.sent
	g.past, g.sent = past, sent(g.origin+past*g.window)
	g.last = g.sent - before
	return g
}

// look returns the first time after now at which the sender looks whether the
// rest fits: when a window begins and, if it is sending then, in its middle.
// Source: QEMU 7.2 migration/ram.c (MAX_WAIT, half of BUFFER_DELAY).
func (g *gauge) look(now time.Duration, p pace) time.Duration {
	step := g.window
	if half := g.window / 2; half > 0 && (!p.bursts() || p.burst.In(half) < p.share()) {
		step = half
	}
	return laterOf(now, step-(now-g.origin)%step)
}

// fitting returns what passes in d at the speed that the gauge knows.
func (g *gauge) fitting(d time.Duration) hypervisor.Bytes {
	return speed(g.last, g.window).In(d)
}
