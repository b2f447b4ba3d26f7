//go:build linux && libvirt_dlopen

package conn

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"libvirt.org/go/libvirt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// Connect is libvirt's own connection, as the functions see it that are given to
// [Conn.Look], [Conn.Act] and [Conn.Begin].
type Connect = libvirt.Connect

// The pauses between attempts to reopen a connection.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// A Conn is a connection to one libvirtd, reopened whenever it is lost. Its methods
// may be used at the same time.
type Conn struct {
	config Config
	lanes  *lanes
	news   *news

	closing context.Context // ends when Close is called
	close   context.CancelFunc
	kept    chan struct{} // closed when keep has ended

	begun atomic.Int64 // calls of Begin under way
}

// Open connects to a libvirtd and checks that it is one that we can use. It answers
// within the context and Config.Timeout: Invalid or Unsupported if repeating it
// cannot help, and Transient otherwise. Later losses are dealt with in the
// background, until Close.
func Open(ctx context.Context, config Config) (*Conn, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	c := &Conn{config: config, news: newNews(), kept: make(chan struct{})}
	c.lanes = newLanes(&c.config)
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	first, err := config.await(ctx, c.tell, func() {})
	if err != nil {
		return nil, err
	}
	c.lanes.set(first, nil)
	c.closing, c.close = context.WithCancel(context.Background())
	go c.news.deliver(&c.config)
	go c.keep(first)
	return c, nil
}

// bounded ends a context after Config.Timeout.
func (c *Conn) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.config.Timeout,
		fmt.Errorf("no answer within %s: %w", c.config.Timeout, context.DeadlineExceeded))
}

// tell passes an event on. libvirt's loop calls it: it does not block.
func (c *Conn) tell(e Event) { c.news.add(notice{event: &e}) }

// keep reopens the connection whenever it is lost, until Close.
func (c *Conn) keep(l *link) {
	defer close(c.kept)
	for l != nil {
		select {
		case <-c.closing.Done():
			l = nil
		case <-l.lost:
			c.lanes.set(nil, l.why)
			c.news.add(notice{lost: l.why})
			if l = c.reopen(l.why); l != nil {
				c.lanes.set(l, nil)
				c.news.add(notice{connected: true})
			}
		}
	}
	c.lanes.set(nil, errClosed)
}

// errClosed is why a Conn that was closed has no connection.
var errClosed = fmt.Errorf("the connection was closed")

// reopen connects again, with growing pauses. There is never more than one attempt,
// so that a daemon that hangs costs one thread. It answers nil after Close.
func (c *Conn) reopen(why error) *link {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		l, err := c.config.await(c.closing, c.tell, func() {})
		if err == nil {
			return l
		}
		if c.closing.Err() == nil {
			c.lanes.set(nil, fmt.Errorf("%w; reopening: %s", why, bare(err)))
		}
		select {
		case <-c.closing.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// Close gives the connection up and waits, for Config.Timeout at most, until the
// calls under way and libvirt have ended. What has not by then is abandoned: it ends
// when the daemon answers or keep-alive gives it up, and that is not reported. The error
// says how much that is. Repeated, it waits again.
func (c *Conn) Close() error {
	c.close()
	<-c.kept
	c.news.end()
	<-c.news.ended
	ctx, cancel := c.bounded(context.Background())
	defer cancel()
	left, begun := 0, c.begun.Load()
	for _, l := range c.lanes.leftovers() {
		select {
		case <-l.gone:
		case <-ctx.Done():
			left++
		}
	}
	if left > 0 || begun > 0 {
		return backend.Errorf(hypervisor.Unknown,
			"close %s: %d connections and %d long calls are still "+
				"under way and abandoned", Shown(c.config.URI), left, begun)
	}
	return nil
}
