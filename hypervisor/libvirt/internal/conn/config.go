package conn

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// A Config says which libvirtd to talk to, and which functions to call on which event. A zero field
// takes the default it names. The three functions are called one at a time, in
// order, from a goroutine of the connection; they may use the connection but must
// not close it.
type Config struct {
	// URI is libvirt's name of the connection: qemu:///system,
	// qemu+unix:///system?socket=PATH, qemu+tcp://, qemu+tls:// or
	// qemu+ssh://HOST/system. Default: qemu:///system.
	URI string
	// KeepAliveInterval is how often a silent daemon is asked whether it lives, in
	// whole seconds. Default: 5 s.
	KeepAliveInterval time.Duration
	// KeepAliveCount is how many questions may stay without an answer before the
	// connection is given up. Default: 5.
	KeepAliveCount int
	// Timeout bounds every call whose context does not end earlier, and Close.
	// Default: 30 s.
	Timeout time.Duration
	// Events is told what happens to domains; nil: nothing is called. Once 4096 events wait
	// for it, they are dropped, and Connected is called in their place.
	Events func(Event)
	// Connected is called when the connection was reopened. Default: nothing.
	Connected func()
	// Lost is called when the connection was lost, with the reason. Default: nothing.
	Lost func(error)
}

// The defaults of a Config.
const (
	defaultAlive = 5 * time.Second
	defaultCount = 5
	defaultLimit = 30 * time.Second
)

// complete fills in the defaults, and refuses what contradicts itself.
func (c Config) complete() (Config, error) {
	if c.URI == "" {
		c.URI = Default
	}
	if c.KeepAliveInterval == 0 {
		c.KeepAliveInterval = defaultAlive
	}
	if c.KeepAliveCount == 0 {
		c.KeepAliveCount = defaultCount
	}
	if c.Timeout == 0 {
		c.Timeout = defaultLimit
	}
	switch {
	case c.KeepAliveInterval < time.Second || c.KeepAliveInterval > time.Hour ||
		c.KeepAliveInterval%time.Second != 0:
		return c, backend.Errorf(hypervisor.Invalid,
			"KeepAliveInterval is %s: it must be whole seconds, from 1s to 1h",
			c.KeepAliveInterval)
	case c.KeepAliveCount < 1 || c.KeepAliveCount > 1000:
		return c, backend.Errorf(hypervisor.Invalid,
			"KeepAliveCount is %d: it must be 1 to 1000", c.KeepAliveCount)
	case c.Timeout < 0:
		return c, backend.Errorf(hypervisor.Invalid,
			"Timeout is %s: it must not be negative", c.Timeout)
	}
	if c.Events == nil {
		c.Events = func(Event) {}
	}
	if c.Connected == nil {
		c.Connected = func() {}
	}
	if c.Lost == nil {
		c.Lost = func(error) {}
	}
	return c, Check(c.URI)
}
