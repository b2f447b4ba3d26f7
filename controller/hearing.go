package controller

import (
	"fmt"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// A HeartbeatObservation is what a failover controller has heard of a store since it listens.
// An agent that was away does not know whether the store was set back, by a backup, to how the agent has seen it last: its VMs may
// have gone elsewhere meanwhile. The agents of those hosts, and other controllers, do know, and
// refuse the store when they look.
//
//	a leader begins to listen ──each host is heard, or cut off, or Grace is over──► agents are admitted
//
// The leader itself goes on to show the store what it has seen: when that is set back while the
// leader lives, it stops.
type HeartbeatObservation struct {
	// Lasted is for how long the failover controller has listened without a gap.
	Lasted time.Duration
	// Unheard are the hosts with an agent that have not sent a heartbeat since, by name, but for those
	// that are proved to be off.
	Unheard []hypervisor.HostName
}

// Doubts returns why no agent is admitted yet, in words; "" is that agents are admitted. A
// controller that remembers the store hears for a Grace at most. One that does not remember a store
// which has hosts ([FailoverConfig.Unmarked]) hears for a Grace at least, and all hosts.
func (c *FailoverConfig) Doubts(h *HeartbeatObservation) string {
	switch short := h.Lasted < c.Grace; {
	case !c.Unmarked && (len(h.Unheard) == 0 || !short):
		return ""
	case c.Unmarked && len(h.Unheard) == 0 && !short:
		return ""
	case len(h.Unheard) == 0:
		return fmt.Sprintf("this controller remembers nothing of the store: it listens for %v whether a "+
			"host knows a newer one", c.Grace)
	case !c.Unmarked:
		return fmt.Sprintf("the controller listens for at most %v whether a host knows a newer store; not "+
			"heard: %s", c.Grace, some(h.Unheard))
	}
	return fmt.Sprintf("this controller remembers nothing of the store, which may be a backup; not heard: "+
		"%s: start its agent, or, when the host is off: godwit host confirm-down %s", some(h.Unheard), h.Unheard[0])
}

// mostNamed is how many hosts are named in a reason.
const mostNamed = 5

// some names hosts.
func some(hosts []hypervisor.HostName) string {
	var names []string
	for _, h := range hosts[:min(len(hosts), mostNamed)] {
		names = append(names, string(h))
	}
	if more := len(hosts) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// hearing returns what the failover controller has heard.
func (w *FailoverController) hearing(now time.Time) HeartbeatObservation {
	h := HeartbeatObservation{Lasted: now.Sub(w.leases.began)}
	for _, name := range w.names() {
		rec := w.cache.hosts[name]
		acted := rec.Session != "" || w.leases.leases[name] != nil
		off := rec.Fenced && trusted(rec)
		if acted && !off && !w.leases.heard(name) {
			h.Unheard = append(h.Unheard, name)
		}
	}
	return h
}

// hear takes in whether agents are admitted now.
func (w *FailoverController) hear(now time.Time) {
	if w.leases.settled {
		return
	}
	h := w.hearing(now)
	w.waits = w.config.Doubts(&h)
	switch {
	case w.waits == "":
		w.leases.settled = true
		if w.config.Vouched != nil {
			w.config.Vouched()
		}
	case w.anyUnadmitted():
		w.wakeAt(now.Add(w.config.Poll))
	}
}

// anyUnadmitted reports whether an agent waits to be admitted.
func (w *FailoverController) anyUnadmitted() bool {
	for _, h := range w.cache.hosts {
		if h.Unadmitted() {
			return true
		}
	}
	return false
}

// admit returns the record of a host whose agent is admitted.
func admit(h *store.Host) *store.Host {
	next := *h
	next.Admitted, next.Waits = h.Session, ""
	return &next
}
