package qemu

import "sync"

// A Hub gives every event to every listener, in the same order, and waits for
// none of them.
type Hub struct {
	mu        sync.Mutex
	listeners map[*Subscription]struct{}
	lost      error // why the connection ended that was not renewed yet
	end       error // why there will be no more
}

// Subscribe begins to listen. At most limit notices wait for the listener. If
// the connection has ended, that is the first thing it is told: otherwise who
// subscribes at the wrong moment would wait for ever.
func (h *Hub) Subscribe(limit int) *Subscription {
	s := &Subscription{hub: h, limit: limit, ready: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.end != nil {
		s.finish(h.end)
		return s
	}
	if h.lost != nil {
		s.put(Notice{Gap: Gap{Ended: h.lost}})
	}
	if h.listeners == nil {
		h.listeners = map[*Subscription]struct{}{}
	}
	h.listeners[s] = struct{}{}
	return s
}

func (h *Hub) remove(s *Subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners, s)
}

// Publish gives a notice to all listeners.
func (h *Hub) Publish(n Notice) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case n.Gap.Renewed:
		h.lost = nil
	case n.Gap.Ended != nil:
		h.lost = n.Gap.Ended
	}
	for s := range h.listeners {
		s.put(n)
	}
}

// Close ends all subscriptions, present and future: their Next returns why
// after what is queued. The first Close counts.
func (h *Hub) Close(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.end != nil {
		return
	}
	h.end = why
	for s := range h.listeners {
		s.finish(why)
	}
	h.listeners = nil
}
