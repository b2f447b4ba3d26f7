//go:build linux && libvirt_dlopen

package conn

import "sync"

// mostNews bounds what waits to be delivered.
const mostNews = 4096

// A notice is one thing to tell the owner.
type notice struct {
	event     *Event
	lost      error
	connected bool
}

// news delivers notices in order, without making the connection wait.
type news struct {
	mu    sync.Mutex
	queue []notice
	more  chan struct{} // holds one when there may be something in the queue
	done  bool
	ended chan struct{}
}

func newNews() *news {
	return &news{more: make(chan struct{}, 1), ended: make(chan struct{})}
}

// add queues a notice. Where too many wait, all events are dropped, and the owner is
// told to look at everything again.
func (n *news) add(what notice) {
	n.mu.Lock()
	if len(n.queue) >= mostNews {
		n.queue = trimmed(n.queue)
	}
	n.queue = append(n.queue, what)
	n.mu.Unlock()
	n.wake()
}

// trimmed keeps of a queue only what is not an event, and ends it with a notice that
// stands for the events. Of losses and connections, the last tells enough.
func trimmed(queue []notice) []notice {
	kept := []notice{}
	for _, was := range queue {
		if was.event == nil {
			kept = []notice{was}
		}
	}
	if len(kept) == 1 && kept[0].lost != nil {
		return kept // a notice of the connection follows
	}
	return []notice{{connected: true}}
}

func (n *news) wake() {
	select {
	case n.more <- struct{}{}:
	default:
	}
}

// end makes deliver end once it has delivered what there is.
func (n *news) end() {
	n.mu.Lock()
	n.done = true
	n.mu.Unlock()
	n.wake()
}

// deliver calls the owner's functions, one at a time.
func (n *news) deliver(c *Config) {
	defer close(n.ended)
	for range n.more {
		n.mu.Lock()
		queue, done := n.queue, n.done
		n.queue = nil
		n.mu.Unlock()
		for _, what := range queue {
			switch {
			case what.event != nil:
				c.Events(*what.event)
			case what.lost != nil:
				c.Lost(what.lost)
			default:
				c.Connected()
			}
		}
		if done {
			return
		}
	}
}
