package qemu

import (
	"context"
	"fmt"
	"net"
	"time"
)

// The defaults of a Config.
const (
	defaultTimeout   = 10 * time.Second
	defaultMaxLine   = 64 << 20
	defaultMaxEvents = 1024
)

// Config configures a Monitor. A zero field takes the default it names; a
// negative one is an error.
type Config struct {
	// Path is the unix socket of QEMU's monitor. Default: none; without a Path
	// and a Dial, nothing but a connection given to New can be used.
	Path string
	// Dial makes a connection. It must honor its context, and closing the
	// connection must interrupt its reads and writes. Default: the socket at
	// Path.
	Dial func(context.Context) (net.Conn, error)
	// Timeout is how long a command, or connecting, may take when the caller's
	// context has no deadline. Default: 10s.
	Timeout time.Duration
	// MaxLine is the longest line accepted from QEMU, in bytes, its end
	// included. A longer one ends the connection. Default: 64 MiB.
	MaxLine int
	// MaxEvents is how many events wait for one listener before the oldest is
	// dropped. Default: 1024.
	MaxEvents int
}

// complete fills in the defaults.
func (c Config) complete() (Config, error) {
	if c.Timeout < 0 || c.MaxLine < 0 || c.MaxEvents < 0 {
		return c, fmt.Errorf("monitor: Timeout %v, MaxLine %d and MaxEvents %d: "+
			"none may be negative; zero takes the default", c.Timeout, c.MaxLine, c.MaxEvents)
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.MaxLine == 0 {
		c.MaxLine = defaultMaxLine
	}
	if c.MaxEvents == 0 {
		c.MaxEvents = defaultMaxEvents
	}
	if path := c.Path; c.Dial == nil && path != "" {
		c.Dial = func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
	}
	return c, nil
}

// bound gives ctx the default timeout if it has no deadline of its own.
func (c Config) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.Timeout)
}
