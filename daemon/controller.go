package daemon

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/controller/failover"
	"github.com/godwit-vm/godwit/daemon/metrics"
	"github.com/godwit-vm/godwit/daemon/operate"
	"github.com/godwit-vm/godwit/internal/due"
	"github.com/godwit-vm/godwit/lease"
	"github.com/godwit-vm/godwit/record"
)

// A Controller stands for election, and decides for the cluster while it leads.
type Controller struct {
	// Name tells controllers apart. It must be set.
	Name  string
	Store record.Store
	// Config and Failover say how it decides.
	Config   controller.Config
	Failover failover.Config
	// Fencer cuts hosts off. Default: nobody does, and only operators' words count.
	Fencer failover.Fencer
	// Alone says that nobody else can have the store: see lease.Election.
	Alone bool
	// Patience is how long another leader must be silent. Default: lease's.
	Patience time.Duration
	Surroundings
}

// Run runs the controller until ctx ends, or another process has its name, which is a
// *lease.IdentityError.
func (c Controller) Run(ctx context.Context) error {
	c.complete()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	elector, err := lease.NewElector(c.Store, lease.Election{Identity: c.Name, Boot: c.Boot,
		Session: session(), Every: c.Every, Patience: c.Patience, Alone: c.Alone})
	if err != nil {
		return err
	}
	var term atomic.Uint64 // 0 while another leads
	desk := operate.Desk{Store: c.Store, DrainKey: c.Config.Complete().Evacuation.DrainKey}
	leading := func() (uint64, bool) { return term.Load(), term.Load() > 0 }
	w := c.watch(metrics.New(metrics.NewCluster(c.Store, desk.Draining, leading, c.Now)), end)
	w.health.Ready("store", answers(c.Store))
	h := newHints()
	led := lease.NewLed(elector, c.Store, func(s record.Store) lease.Participant {
		return c.lead(s, elector, h)
	})
	loop := w.loop("controller", &observed{led, func() { c.follow(led, &term) }})
	loop.Wait, loop.Last = h.wait, w.parting("controller", elector.Resign)
	done, err := w.serve()
	if err != nil {
		return err
	}
	err = errors.Join(run(ctx, loop), done())
	if two, is := errors.AsType[*lease.IdentityError](context.Cause(ctx)); is {
		err = errors.Join(two, err)
	}
	return err
}

// lead makes what decides in one term.
func (c *Controller) lead(s record.Store, e *lease.Elector, h *hints) lease.Participant {
	term := uint64(0)
	if l, leads := e.Leading(); leads {
		term = l.Term
	}
	t := c.trail("controller/"+c.Name, term)
	if t != nil {
		t.Begin("leads")
	}
	h.forget()
	noter := c.noter(t)
	return &both{
		failover.New(c.Failover, over(t, h.follow(s)), c.Fencer, noter),
		controller.New(c.Config, over(t, h.follow(s)), noter),
	}
}

// follow takes in who leads, and says when that has changed.
func (c *Controller) follow(led *lease.Led, term *atomic.Uint64) {
	now, _ := led.Leading()
	if before := term.Swap(now); before != now && now > 0 {
		c.Log.Info("leads", "controller", c.Name, "term", now)
	} else if before != now {
		c.Log.Info("does not lead any more", "controller", c.Name, "term", before)
	}
}

// both is two participants that look one after the other.
type both [2]lease.Participant

// Reconcile lets both look; an error of one does not keep the other from it.
func (b *both) Reconcile(ctx context.Context, now time.Time) (time.Time, error) {
	first, err1 := b[0].Reconcile(ctx, now)
	second, err2 := b[1].Reconcile(ctx, now)
	return due.Earliest(first, second), errors.Join(err1, err2)
}

// observed calls after after every look.
type observed struct {
	lease.Participant
	after func()
}

// Reconcile lets the participant look.
func (o *observed) Reconcile(ctx context.Context, now time.Time) (time.Time, error) {
	wake, err := o.Participant.Reconcile(ctx, now)
	o.after()
	return wake, err
}
