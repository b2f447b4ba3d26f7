package controller

import (
	"cmp"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// drainScheduler says when migrations out of hosts that are drained together are created, and by that
// in which order they wait. Each host has a link of its own, and a lane for each that may send
// at once. The smallest hosts go first, one after the other in each lane, so that most are empty
// long before the last. The largest share the lanes at the end, at least as many as there are
// lanes, and end together; a VM that could not end with them begins at once. So the last host is
// empty about as early as it can be: when all lanes together could have sent everything, or when
// the largest could (McNaughton 1959). The zero value is ready.
type drainScheduler struct {
	// Together is how many hosts may send at once; less than one is one.
	Together int

	now   time.Time     // of what is known
	end   time.Duration // after now, of all that is planned
	spans map[hypervisor.HostName]span
}

// A span is when a host's migrations are created: from begins on for takes, in which it needs its
// link for sends.
type span struct{ begins, takes, sends time.Duration }

// A drainEntry is a host that is drained, or a VM on it.
type drainEntry struct {
	Host  hypervisor.HostName
	Sends time.Duration // all that [sends] says of those who leave; at zero it takes no turn
}

// sends returns how long after a VM's migration the next one out of its host is created if the
// host goes alone: ten nanoseconds for every second that its link needs for the VM at least. The
// order is all that matters, and no VM seems to wait for longer than it does. Where it is not
// known how fast a link is, it has 10 Gbit/s.
func sends(vm *store.VM, host *store.Host) time.Duration {
	link := host.Host.Link
	if link <= 0 {
		link = 10 * hypervisor.Gbit
	}
	return min(max(vm.Weight().At(link)/1e8, 1), 10*time.Microsecond)
}

// Next returns when a VM's migration is created, and when the next one out of its host is at the
// earliest. The VM's is created at after, which lies behind the one before it whatever the clock
// says; or when the host's turn begins, if after is earlier than now. Drained is asked for the
// hosts whose turn begins now, once for all of them.
func (t *drainScheduler) Next(vm drainEntry, after, now time.Time, drained func() []drainEntry) (at, next time.Time) {
	if !t.now.Equal(now) {
		t.now, t.end, t.spans = now, 0, map[hypervisor.HostName]span{}
	}
	if at = after; now.After(after) {
		if _, known := t.spans[vm.Host]; !known {
			t.plan(drained())
		}
		at = now.Add(t.spans[vm.Host].begins)
	}
	if host := t.spans[vm.Host]; host.sends > 0 {
		vm.Sends = vm.Sends * host.takes / host.sends
	}
	return at, at.Add(max(vm.Sends, 1))
}

// plan lets hosts follow those that are planned already.
func (t *drainScheduler) plan(all []drainEntry) {
	hosts, sum := t.unknown(all)
	if len(hosts) == 0 {
		return
	}
	lanes := min(max(t.Together, 1), len(hosts))
	largest := func() time.Duration { return hosts[len(hosts)-1].Sends }
	begins, takes := t.end, max((sum-1)/time.Duration(lanes)+1, largest())
	t.end += takes
	for lanes > 1 && largest() > takes-alone(hosts, lanes) { // it would be the last if it waited
		last := len(hosts) - 1
		t.spans[hosts[last].Host] = span{begins, largest(), largest()}
		hosts, lanes = hosts[:last], lanes-1
	}
	ends := make([]time.Duration, lanes)
	for len(hosts) >= 2*lanes && largest() <= takes-ends[0]-hosts[0].Sends {
		for i, d := range hosts[:lanes] {
			t.spans[d.Host] = span{begins + ends[i], d.Sends, d.Sends}
			ends[i] += d.Sends
		}
		hosts = hosts[lanes:]
	}
	for _, d := range hosts {
		t.spans[d.Host] = span{begins + ends[0], takes - ends[0], d.Sends}
	}
}

// unknown returns those that are not planned yet, the smallest first, and what all of them send.
func (t *drainScheduler) unknown(all []drainEntry) (hosts []drainEntry, sum time.Duration) {
	for _, d := range all {
		if _, known := t.spans[d.Host]; known {
			continue
		}
		if t.spans[d.Host] = (span{}); d.Sends > 0 {
			hosts, sum = append(hosts, d), sum+d.Sends
		}
	}
	slices.SortStableFunc(hosts, func(a, b drainEntry) int { return cmp.Compare(a.Sends, b.Sends) })
	return hosts, sum
}

// alone returns for how long hosts may go one after the other in the lane that ends first, until
// less than two are left for each lane.
func alone(hosts []drainEntry, lanes int) (end time.Duration) {
	for ; len(hosts) >= 2*lanes; hosts = hosts[lanes:] {
		end += hosts[0].Sends
	}
	return end
}
