package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/workqueue"
)

// Tenancy configures a [LeaseClaim].
type Tenancy struct {
	// Host is the name that is claimed. It is needed.
	Host hypervisor.HostName
	// Identity is the claiming process. It is needed.
	Identity Identity
	// Boot, Session, Lock, HeartbeatInterval and LeaseDuration are as in [LeaseConfig].
	Boot, Session, Lock              string
	HeartbeatInterval, LeaseDuration time.Duration
	// Describe answers what the host has, for the record of a host that is new. Default: no
	// more than its name.
	Describe func(context.Context) (hypervisor.Host, error)
}

// ForeignError says that a host's name belongs to another identity.
type ForeignError struct {
	Host  hypervisor.HostName
	Mine  Identity
	Known Identity // whose the name is
	Why   string
}

// Error says what is known, and what to do.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("store: host %s belongs to identity %v, and this is %v (%s): nothing is "+
		"started: start its agent where it was, or, when that is gone for good and no VM of it "+
		"runs there, say so: godwit host adopt %s --id %s", e.Host, e.Known, e.Mine, e.Why, e.Host,
		e.Mine.ID)
}

// A LeaseClaim makes one process the agent of a host, and keeps it so. Until [LeaseClaim.Holds] the process
// must not act for the host.
//
//	the record says whose name it is ──► the lease is taken ──► the session is stored in the record
//
// What an agent announces is on condition that the record of its host is still as it has read it:
// with another session in it, nothing of an agent that slept takes effect. It belongs to one
// caller at a time.
type LeaseClaim struct {
	config Tenancy
	store  Store
	beater *Renewer

	admitted bool // the record said that the name is ours
	held     bool
	told     string // what was stored of our refusal
}

// NewLeaseClaim returns a claim that holds nothing yet. The error says what is wrong with the
// configuration.
func NewLeaseClaim(store Store, config Tenancy) (*LeaseClaim, error) {
	if config.Host == "" || config.Identity.ID == "" {
		return nil, errors.New("store: a claim needs Host and Identity")
	}
	b, err := NewRenewer(store, LeaseConfig{Owner: HostLease(config.Host), Boot: config.Boot,
		Session: config.Session, Lock: config.Lock, HeartbeatInterval: config.HeartbeatInterval,
		LeaseDuration: config.LeaseDuration})
	if err != nil {
		return nil, err
	}
	return &LeaseClaim{config: config, store: store, beater: b}, nil
}

// Holds reports whether the process is the agent of its host, as far as is known.
func (c *LeaseClaim) Holds() bool { return c.held && c.beater.Holds() }

// Last returns when a heartbeat was last stored: see [Renewer.Last].
func (c *LeaseClaim) Last() time.Time { return c.beater.Last() }

// End gives the lease back: see [Renewer.End].
func (c *LeaseClaim) End(ctx context.Context) error {
	c.held = false
	return c.beater.End(ctx)
}

// Reconcile claims the host, or says that its agent lives, and when it wants to look again. The
// error is a *[ForeignError] when the host's name belongs to another agent, an *[IdentityError]
// for as long as another process acts for the host, or a *StoreError. The first two are
// stored for operators to see.
func (c *LeaseClaim) Reconcile(ctx context.Context, now time.Time) (time.Time, error) {
	soon := now.Add(c.beater.config.HeartbeatInterval / retry)
	if !c.admitted {
		if err := c.admit(ctx, now); err != nil {
			return soon, err
		}
	}
	wake, err := c.beater.Reconcile(ctx, now)
	if two, is := errors.AsType[*IdentityError](err); is {
		c.held, c.admitted = false, false
		return wake, errors.Join(two, c.tell(ctx, "its agent lives elsewhere, with session "+
			two.Session, now))
	}
	c.held = c.held && c.beater.Holds()
	if err != nil || c.held || c.beater.mine == nil {
		return wake, err
	}
	err = c.take(ctx)
	return workqueue.Earliest(wake, soon), err
}

// admit asks the record of the host whether the name is ours.
func (c *LeaseClaim) admit(ctx context.Context, now time.Time) error {
	h, err := HostNamed(ctx, c.store, c.config.Host)
	if err != nil {
		return err
	}
	if why := h.Admits(c.config.Identity); why != "" {
		return errors.Join(&ForeignError{c.config.Host, c.config.Identity, *h.Identity, why},
			c.tell(ctx, why, now))
	}
	c.admitted = true
	return nil
}

// take stores that this process acts for the host, on condition that the lease is ours.
func (c *LeaseClaim) take(ctx context.Context) error {
	h, err := HostNamed(ctx, c.store, c.config.Host)
	if err != nil {
		return err
	}
	mine := c.config.Identity
	if h.Admits(mine) != "" {
		c.admitted = false // another process was faster
		return nil
	}
	next := *h
	if h.Version == 0 && c.config.Describe != nil {
		if next.Host, err = c.config.Describe(ctx); err != nil {
			return err
		}
		next.Host.Name = c.config.Host
	}
	next.Identity, next.Session, next.Adopt = &mine, c.config.Session, nil
	if next.Refused != nil && next.Refused.Identity == mine {
		next.Refused = nil
	}
	_, err = c.store.Put(ctx, &next, c.beater.mine)
	if errors.Is(err, Stale) {
		return nil
	}
	c.held = err == nil
	return err
}

// tell stores that this process was refused, for operators and for the agent that acts. It
// is stored once for each reason.
func (c *LeaseClaim) tell(ctx context.Context, why string, now time.Time) error {
	if c.told == why {
		return nil
	}
	h, err := HostNamed(ctx, c.store, c.config.Host)
	if err != nil || h.Version == 0 {
		return err
	}
	next := *h
	next.Refused = &Refusal{Identity: c.config.Identity, Boot: c.config.Boot, Why: why,
		At: now.UTC().Round(0)}
	_, err = c.store.Put(ctx, &next)
	if err == nil {
		c.told = why
	}
	if errors.Is(err, Stale) {
		return nil // it is told at the next look
	}
	return err
}
