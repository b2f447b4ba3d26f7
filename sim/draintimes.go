package sim

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A drainTime is one drain of a host. Times are virtual.
type drainTime struct {
	Host  hypervisor.HostName
	Since time.Duration
	Empty time.Duration // -1 is not yet
	Last  time.Duration // when a VM left it last; -1 is that none has
	Over  bool          // it was taken back
}

// drainTimes has all drains. The zero value is empty and ready.
type drainTimes struct {
	home  map[hypervisor.HostName]int        // VMs that are at home there
	of    map[hypervisor.HostName]*drainTime // the last of each host
	order []*drainTime
}

// All lists the drains in the order in which they began.
func (b *drainTimes) All() []*drainTime { return b.order }

// On reports whether a host is being drained.
func (b *drainTimes) On(host hypervisor.HostName) bool {
	d := b.of[host]
	return d != nil && !d.Over
}

// Begin notes that a host is to be emptied from now on, unless it is already.
func (b *drainTimes) Begin(host hypervisor.HostName, now time.Duration) {
	if b.On(host) {
		return
	}
	if b.of == nil {
		b.of = map[hypervisor.HostName]*drainTime{}
	}
	d := &drainTime{Host: host, Since: now, Empty: -1, Last: -1}
	if b.home[host] == 0 {
		d.Empty = now
	}
	b.of[host] = d
	b.order = append(b.order, d)
}

// End notes that a drain was taken back, if there is one.
func (b *drainTimes) End(host hypervisor.HostName) {
	if d := b.of[host]; d != nil {
		d.Over = true
	}
}

// Arrived notes that a VM is at home on a host.
func (b *drainTimes) Arrived(host hypervisor.HostName) {
	if b.home == nil {
		b.home = map[hypervisor.HostName]int{}
	}
	b.home[host]++
	if b.On(host) {
		b.of[host].Empty = -1
	}
}

// Departed notes that a VM is at home on a host no more.
func (b *drainTimes) Departed(host hypervisor.HostName, now time.Duration) {
	b.home[host]--
	if !b.On(host) {
		return
	}
	d := b.of[host]
	if d.Last = now; b.home[host] == 0 {
		d.Empty = now
	}
}
