package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/store"
)

// FailoverConfig configures what is beside the controller and the agents. A zero field takes the
// default that it names.
type FailoverConfig struct {
	Controller controller.FailoverConfig
	// HeartbeatInterval is how often an agent sends a heartbeat. Default: 5s.
	HeartbeatInterval time.Duration
	// CutTakes is how long it takes to cut a host from power. Default: 2s.
	CutTakes time.Duration
	// ReturnAfter is when a host has power again that was cut from it. Default: never, unless an
	// event says so.
	ReturnAfter time.Duration
	// Devices says which hosts can be cut from power. Default: all.
	Devices func(hypervisor.HostName) bool
}

// NewFailover returns an empty world with a controller and a failover controller.
func NewFailover(c Config, f FailoverConfig) *World {
	if f.CutTakes == 0 {
		f.CutTakes = 2 * time.Second
	}
	p := &people{config: f, starts: map[hypervisor.HostName]int{}, claims: c.Claims}
	c.Beside = p.beside
	w, limits := New(c), f.Controller.Complete()
	w.waits = max(w.waits, workqueue.Later(margin, max(limits.Grace, limits.FenceAfter, limits.RetryCap, f.CutTakes)))
	return w
}

// people makes participants. Each start of a process is a session of its own.
type people struct {
	config FailoverConfig
	starts map[hypervisor.HostName]int
	claims bool // agents send heartbeats by these
}

func (p *people) beside(w *World, host hypervisor.HostName, boot int, s store.Store,
) store.Participant {
	p.starts[host]++
	if host == "" {
		power := &power{world: w, config: &p.config, since: map[string]time.Duration{}}
		c := p.config.Controller
		c.Unmarked, c.Vouched = w.past.unmarked, w.vouch
		return controller.NewFailover(c, s, power, w)
	}
	if p.claims {
		return nil
	}
	b, err := store.NewRenewer(s, store.LeaseConfig{Owner: store.HostLease(host), HeartbeatInterval: p.config.HeartbeatInterval,
		Boot: fmt.Sprint("boot-", boot), Session: fmt.Sprint("session-", p.starts[host]),
		Alone: true})
	if err != nil {
		panic("sim: the configuration is checked, and wrong: " + err.Error())
	}
	return b
}

// power is the devices that cut hosts from power. They forget with their process what
// they were asked.
type power struct {
	world  *World
	config *FailoverConfig
	since  map[string]time.Duration // when an attempt was asked for
}

var errNoDevice = &hypervisor.Error{Op: "Cut", Kind: hypervisor.Unsupported,
	Err: errors.New("there is no device to cut it off with")}

// Cut implements [controller.Fencer].
func (p *power) Cut(_ context.Context, host hypervisor.HostName, attempt string) (string, error) {
	if p.config.Devices != nil && !p.config.Devices(host) {
		return "", errNoDevice
	}
	key := string(host) + " " + attempt
	began, asked := p.since[key]
	if !asked {
		p.since[key] = p.world.Now()
		p.world.At(workqueue.Later(p.world.Now(), p.config.CutTakes), cutOff{Host: host, For: p.config.ReturnAfter})
		return "", nil
	}
	if p.world.Now()-began < p.config.CutTakes || !p.world.down(host) {
		return "", nil
	}
	return "a switch", nil
}
