package fake

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/maxmin"
)

// A mirror copies the local disks of a VM, before its memory. What the guest writes to them
// meanwhile is neglected: it is little beside what they hold.
// Source: QEMU 7.2 blockdev-mirror with sync=full; libvirt VIR_MIGRATE_NON_SHARED_DISK.
type mirror struct {
	total hypervisor.Bytes
	sent  hypervisor.Bytes // until at
	at    time.Duration
	rate  hypervisor.Bandwidth // since at
}

// turn changes the speed from now on.
func (m *mirror) turn(now time.Duration, rate hypervisor.Bandwidth) {
	m.sent, m.at, m.rate = m.by(now), now, rate
}

// by returns what was copied until now.
func (m *mirror) by(now time.Duration) hypervisor.Bytes {
	return min(m.total-m.sent, m.rate.In(now-m.at)) + m.sent
}

// ends returns when everything is copied, if nothing changes.
func (m *mirror) ends() time.Duration {
	return laterOf(m.at, (m.total - m.sent).At(m.rate))
}

// open takes a share of the wire, for the local disks first, if there are any.
func (t *transfer) open() {
	w := t.world()
	t.stage = copying
	if disks := t.VM.LocalSize(); disks > 0 {
		t.stage, t.mirror = mirroring, &mirror{total: disks, at: w.Now}
	}
	t.report(hypervisor.JobActive, hypervisor.JobActive)
	var room [5]*maxmin.Link
	route := w.route(room[:0], t.From, t.To)
	t.alone = narrowest(route)
	t.flow = w.network.Add(t, t.limit(), route...)
	if t.stage == copying {
		t.stream.Begin(w.Now, t.source.Workload(), t.source.Doing().Executes())
	}
}

// copyMemory begins the first pass when the disks are there.
func (t *transfer) copyMemory() {
	now, rate := t.world().Now, t.mirror.rate
	t.mirror.turn(now, 0)
	t.stage = copying
	t.stream.Begin(now, t.source.Workload(), t.source.Doing().Executes())
	t.accelerate(rate)
}

// rate is the present speed.
func (t *transfer) rate() hypervisor.Bandwidth {
	if t.stage == mirroring {
		return t.mirror.rate
	}
	return t.stream.Rate()
}
