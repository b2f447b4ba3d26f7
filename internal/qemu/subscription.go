package qemu

import (
	"context"
	"sync"
)

// MaxQueued is how much of events waits for one listener, in bytes. It
// bounds what a peer that floods us can make us hold.
const MaxQueued = 16 << 20

// A Subscription is one listener's queue of events. It outlives the connection.
type Subscription struct {
	hub   *Hub
	limit int           // notices
	ready chan struct{} // holds a token while there is something to take

	mu     sync.Mutex
	missed Gap // before the first of the queue
	queue  []Notice
	bytes  int
	end    error // after the last of the queue
}

// Next returns the next event, waiting for it. Its error is a [*Gap] where
// events may be missing, and Next may then be called again; it is ErrClosed, or
// whatever ended the Hub, when nothing more will come; or it is the context's.
// Goroutines that share a Subscription share its events: each gets some.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	for {
		if e, ok, err := s.take(); ok {
			return e, err
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return Event{}, context.Cause(ctx)
		}
	}
}

// take returns what Next would; ok is false if it would have to wait.
func (s *Subscription) take() (e Event, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.signal()
	if !s.missed.empty() {
		g := s.missed
		s.missed = Gap{}
		return Event{}, true, &g
	}
	if len(s.queue) > 0 {
		n := s.pop()
		if n.isEvent() {
			return n.Event, true, nil
		}
		return Event{}, true, &n.Gap
	}
	return Event{}, s.end != nil, s.end
}

// signal wakes a goroutine that waits, if there is something for it. The caller
// holds mu.
func (s *Subscription) signal() {
	if len(s.queue) == 0 && s.missed.empty() && s.end == nil {
		return
	}
	select {
	case s.ready <- struct{}{}:
	default: // a token is there already
	}
}

func (s *Subscription) pop() Notice {
	n := s.queue[0]
	s.queue[0] = Notice{} // so that its data can be freed
	s.queue = s.queue[1:]
	s.bytes -= n.size()
	return n
}

// put appends a notice and drops the oldest ones that are too many.
func (s *Subscription) put(n Notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		return
	}
	s.queue = append(s.queue, n)
	s.bytes += n.size()
	for len(s.queue) > s.limit || s.bytes > MaxQueued && len(s.queue) > 1 {
		s.missed.add(s.pop().dropped())
	}
	s.signal()
}

// finish ends the subscription after what is queued.
func (s *Subscription) finish(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == nil {
		s.end = why
	}
	s.signal()
}

// Close ends the subscription: Next returns ErrClosed at once. It may be called
// more than once.
func (s *Subscription) Close() {
	s.hub.remove(s)
	s.finish(ErrClosed)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missed, s.queue, s.bytes = Gap{}, nil, 0
}
