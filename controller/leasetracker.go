package controller

import (
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// leaseTracker knows the heartbeats of hosts, and since when there has been none. It
// believes in a silence only while this controller listened.
type leaseTracker struct {
	watch      store.FailureDetector
	leases     map[hypervisor.HostName]*store.Lease
	met        map[hypervisor.HostName]time.Time // since when a host is known
	heartbeats map[hypervisor.HostName]bool      // heartbeats that were not judged yet
	seen       store.Revision
	looked     time.Time

	began   time.Time      // since when this controller listens without a gap
	since   store.Revision // what the store had given then
	settled bool           // every host that could know a newer store was heard since, or is silent
}

func newLeaseTracker() leaseTracker {
	return leaseTracker{leases: map[hypervisor.HostName]*store.Lease{},
		met: map[hypervisor.HostName]time.Time{}, heartbeats: map[hypervisor.HostName]bool{}}
}

// take takes in what has changed. No host is silent that could not be heard: after a gap
// of more than leaseDuration, or when the clock was set back, all silences begin anew.
func (s *leaseTracker) take(c *store.Changes, now time.Time, leaseDuration time.Duration) {
	missed := now.Before(s.looked) || now.Sub(s.looked) > leaseDuration
	if s.looked, s.seen = now, c.Next; missed {
		s.watch, s.met = store.FailureDetector{}, map[hypervisor.HostName]time.Time{}
		s.began, s.since, s.settled = now, c.Next, false
	}
	if c.Reset {
		s.reset(c.Records)
	}
	for _, r := range c.Records {
		if l, ok := r.(*store.Lease); ok {
			s.see(l, now)
		}
	}
	for _, key := range c.Gone {
		if host, ok := hostOf(key); ok {
			s.forget(host)
		}
	}
	if missed {
		for _, l := range s.leases {
			s.watch.See(l, now)
		}
	}
}

// reset forgets the leases that are no longer there.
func (s *leaseTracker) reset(all []store.Record) {
	there := map[store.Key]bool{}
	for _, r := range all {
		there[r.Key()] = true
	}
	for host, l := range s.leases {
		if !there[l.Key()] {
			s.forget(host)
		}
	}
}

// see takes in a lease. A heartbeat is a change of one that was known: the first
// sight of it may be the last writing of a host that has long been dead.
func (s *leaseTracker) see(l *store.Lease, now time.Time) {
	host, ok := hostOf(l.Key())
	old := s.leases[host]
	if !ok || old != nil && old.Version >= l.Version {
		return
	}
	s.leases[host] = l
	if s.watch.See(l, now) && old != nil && *l.WithVersion(old.Version).(*store.Lease) != *old {
		s.heartbeats[host] = true
	}
}

// heard reports whether the agent of a host has written its lease since this controller listens: what it
// has seen of the store is in the store's past.
func (s *leaseTracker) heard(host hypervisor.HostName) bool {
	return s.after(host, store.Version(s.since))
}

// after reports whether the last sign of a host was written after a record was.
func (s *leaseTracker) after(host hypervisor.HostName, v store.Version) bool {
	l := s.leases[host]
	return l != nil && l.Version > v
}

func (s *leaseTracker) forget(host hypervisor.HostName) {
	delete(s.leases, host)
	delete(s.heartbeats, host)
	delete(s.met, host)
	s.watch.Forget(store.HostLease(host))
}

// hostOf returns the host whose agent a lease belongs to.
func hostOf(key store.Key) (hypervisor.HostName, bool) {
	host, ok := strings.CutPrefix(key.Name, store.HostLease(""))
	return hypervisor.HostName(host), ok && key.Kind == store.LeaseKind
}

// silence returns for how long a host has sent no heartbeat while this controller listened.
func (s *leaseTracker) silence(host hypervisor.HostName, now time.Time) time.Duration {
	if silent, known := s.watch.Silent(store.HostLease(host), now); known {
		return silent
	}
	if _, known := s.met[host]; !known {
		s.met[host] = now
	}
	return max(0, now.Sub(s.met[host]))
}

// boot returns the start of the machine that an agent gave last.
func (s *leaseTracker) boot(host hypervisor.HostName) string {
	if l := s.leases[host]; l != nil {
		return l.Boot
	}
	return ""
}

// lease returns what is to be stored still for a silence to be one: the lease as it was
// read, or that there is none.
func (s *leaseTracker) lease(host hypervisor.HostName) store.Record {
	if l := s.leases[host]; l != nil {
		return l
	}
	return &store.Lease{Owner: store.HostLease(host)}
}
