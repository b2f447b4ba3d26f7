//go:build linux && libvirt_dlopen

package conn

import (
	"context"
	"sync"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// The bounds of what one Conn has under way: each holds a thread while a daemon
// hangs.
const (
	mostLanes = 4 // calls; libvirtd itself serves five of a connection at a time
	mostDials = 2 // attempts to connect for them
)

// lanes are the connections that calls take turns on. Each carries one call at a time:
// where two threads share one, libvirt 9.0 and others of its time crash when
// keep-alive gives it up (CVE-2024-4418: waking the thread that reads leaves a pointer
// to its stack behind). The first lane is the one whose loss and events are watched;
// others are opened when they are needed.
type lanes struct {
	config  *Config
	permits chan struct{} // one of each call
	dials   chan struct{} // one of each attempt to connect

	mu    sync.Mutex
	first *link // nil while the connection is lost
	why   error // why it is
	idle  []*link
	ended []*link // what was given up, and may not be closed yet
}

func newLanes(c *Config) *lanes {
	return &lanes{config: c, permits: make(chan struct{}, mostLanes),
		dials: make(chan struct{}, mostDials)}
}

// set makes l the first lane, or says why there is none. All other lanes, which go
// to the same daemon, are given up with the one before.
func (s *lanes) set(l *link, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, old := range s.idle {
		if old != s.first {
			s.giveUp(old)
		}
	}
	s.idle = nil
	if s.first != nil {
		s.giveUp(s.first)
	}
	if s.first, s.why = l, why; l != nil {
		l.first = l
		s.idle = []*link{l}
	}
}

// giveUp ends the pool's interest in a lane. The caller holds the lock.
func (s *lanes) giveUp(l *link) {
	kept := []*link{l}
	for _, old := range s.ended {
		select {
		case <-old.gone:
		default:
			kept = append(kept, old)
		}
	}
	s.ended = kept
	go l.leave()
}

// leftovers are the connections that were given up.
func (s *lanes) leftovers() []*link {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// take answers a lane for one call, which must be put back. Every error is Transient.
func (s *lanes) take(ctx context.Context) (*link, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, backend.Errorf(hypervisor.Transient, "%w", err)
	}
	select {
	case s.permits <- struct{}{}:
	case <-ctx.Done():
		return nil, backend.Errorf(hypervisor.Transient, "%d calls are under way: %w", mostLanes,
			context.Cause(ctx))
	}
	first, l, err := s.pick()
	if err == nil && l == nil {
		l, err = s.dial(ctx)
		if err == nil {
			l.first = first
			l.enter()
		}
	}
	if err != nil {
		<-s.permits
		return nil, err
	}
	return l, nil
}

// pick answers an idle lane, or nil if one must be opened, and the first.
func (s *lanes) pick() (first, l *link, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == nil {
		return nil, nil, backend.Errorf(hypervisor.Transient, "no connection to %s: %w",
			Shown(s.config.URI), s.why)
	}
	for len(s.idle) > 0 {
		l := s.idle[len(s.idle)-1]
		s.idle = s.idle[:len(s.idle)-1]
		if !l.isLost() || l == s.first { // a call on a lost one fails at once
			l.enter()
			return s.first, l, nil
		}
		s.giveUp(l)
	}
	return s.first, nil, nil
}

// put ends a call on a lane.
func (s *lanes) put(l *link) {
	s.mu.Lock()
	switch {
	case l.first == s.first && (l == s.first || !l.isLost()):
		s.idle = append(s.idle, l)
	case l != l.first: // the first of before was given up when it was lost
		s.giveUp(l)
	}
	s.mu.Unlock()
	l.leave()
	<-s.permits
}

// dial opens another connection, as soon as not too many attempts are under way. The
// caller owns it. Every error is Transient.
func (s *lanes) dial(ctx context.Context) (*link, error) {
	select {
	case s.dials <- struct{}{}:
	case <-ctx.Done():
		return nil, backend.Errorf(hypervisor.Transient, "%d attempts to connect are under way: %w",
			mostDials, context.Cause(ctx))
	}
	l, err := s.config.await(ctx, nil, func() { <-s.dials })
	if err != nil {
		return nil, backend.Errorf(hypervisor.Transient, "%w", bare(err))
	}
	return l, nil
}
