package fake

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A brake slows a guest down that outruns the wire.
// Source: QEMU 7.2 migration/ram.c (migration_trigger_throttle,
// mig_throttle_guest_down).
type brake struct {
	throttle int           // percent of the CPU time taken away
	judged   time.Duration // when it last judged
	sent     hypervisor.Bytes
	dirty    hypervisor.Bytes // since judged
	strikes  int
}

// QEMU's defaults: throttle-trigger-threshold, cpu-throttle-initial,
// cpu-throttle-increment, max-cpu-throttle, and a second between judgements.
const (
	brakeTrigger   = 50
	brakeInitial   = 20
	brakeIncrement = 10
	brakeMost      = 99
	brakePeriod    = time.Second
	brakeStrikes   = 2
)

// judge reports, at the end of a pass, whether the guest has now been too fast
// twice: it dirtied more than half of what was sent.
func (b *brake) judge(now time.Duration, dirty, sent hypervisor.Bytes) bool {
	b.dirty += dirty
	if now-b.judged <= brakePeriod {
		return false
	}
	if b.dirty > (sent-b.sent)/100*brakeTrigger {
		b.strikes++
	}
	b.judged, b.sent, b.dirty = now, sent, 0
	if b.strikes < brakeStrikes {
		return false
	}
	b.strikes = 0
	return true
}

func (b *brake) tighten() {
	if b.throttle == 0 {
		b.throttle = brakeInitial
		return
	}
	b.throttle = min(b.throttle+brakeIncrement, brakeMost)
}
