package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/internal/audit"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/store"
)

// A Controller stands for election, and decides for the cluster while it leads.
type Controller struct {
	// Name tells controllers apart. It must be set.
	Name  string
	Store store.Store
	// Config and Failover say how it decides. A failover that is not told its Placement, or
	// the taint of a drain, takes what Config says.
	Config   controller.Config
	Failover controller.FailoverConfig
	// Settings is the text that Config was read from, for the audit log: a replay reads it
	// again. Default: none, and a replay has to be told the configuration.
	Settings string
	// Fencer cuts hosts off. Default: none, and only operators' confirmations count.
	Fencer controller.Fencer
	// Alone says that no other process can have the store: see store.Election.
	Alone bool
	// LeaseDuration is how long another leader must be silent. Default: lease's.
	LeaseDuration time.Duration
	// Page is where the page for operators is served: see Listen, and package overview. Default:
	// nowhere.
	Page string
	Dependencies
}

// Run runs the controller until ctx ends, or another process has its name, which is a
// *store.IdentityError. While a store that is a *Gate was set back, it decides nothing.
func (c Controller) Run(ctx context.Context) error {
	c.complete()
	defer c.Supervisor.runs()()
	done, err := c.page()
	if err != nil {
		return err
	}
	return errors.Join(c.each(ctx, c.Store, "controller/"+c.Name, "", nil, c.once), done())
}

// page begins to serve the page for operators, if it is to; done ends that. It shows a store that
// must not be believed, too, and says so.
func (c *Controller) page() (done func() error, err error) {
	if c.Page == "" {
		return func() error { return nil }, nil
	}
	l, err := listen(c.Page, "the page")
	if err != nil {
		return nil, err
	}
	shown := c.Store
	if gate, gated := shown.(*Gate); gated {
		shown = gate.beyond()
	}
	ctx, end := context.WithCancel(context.Background())
	at, _ := l.Addr().(*net.TCPAddr)
	s := serve(l, client.PageHandler(client.PageConfig{Store: shown, Controller: c.Config, Now: c.Now,
		Silence:  store.LeaderLeaseDuration(c.HeartbeatInterval, c.LeaseDuration),
		Loopback: at != nil && at.IP.IsLoopback(), Done: ctx.Done()}))
	c.Log.Info("serves the page", "url", "http://"+s.Address()+"/")
	return func() error {
		end()
		return s.Close()
	}, nil
}

// once stands for election until ctx ends or the store must not be used.
func (c Controller) once(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	times := newStoreTimes()
	elector, err := store.NewElector(times.over(c.Store), store.Election{Identity: c.Name, Boot: c.Boot,
		Session: session(), HeartbeatInterval: c.HeartbeatInterval, LeaseDuration: c.LeaseDuration, Alone: c.Alone})
	if err != nil {
		return err
	}
	var term atomic.Uint64 // 0 while another leads
	defaults := c.Config.Complete().Evacuation
	leading := func() (uint64, bool) { return term.Load(), term.Load() > 0 }
	w := c.watch(NewMetrics(NewClusterMetrics(c.Store, &defaults, leading, c.Now), times), end)
	defer c.Supervisor.follow(nil)
	w.health.Ready("store", answers(c.Store))
	w.remembers(c.Store)
	h := newHints()
	led := store.NewLeaderRunner(elector, c.Store, func(s store.Store) store.Participant {
		return c.lead(elector, func() store.Store { return times.over(h.follow(s)) }, h)
	})
	loop := w.loop("controller", &observed{led, func() { c.follow(led, &term) }})
	loop.Wait, loop.Last = h.wait, w.parting("controller", elector.Resign)
	done, err := w.serve()
	if err != nil {
		return err
	}
	err = errors.Join(run(ctx, loop), done())
	if cause := context.Cause(ctx); Refused(cause) {
		return cause
	}
	if two, is := errors.AsType[*store.IdentityError](context.Cause(ctx)); is {
		err = errors.Join(two, err)
	}
	return err
}

// failover says how lost hosts are replaced: where it was not told otherwise it chooses hosts as
// the controller does.
func (c *Controller) failover() controller.FailoverConfig {
	f, ours := c.Failover, c.Config.Complete()
	if f.Placement.Filters == nil {
		f.Placement.Filters = ours.Placement.Filters
	}
	if f.Placement.Weighers == nil {
		f.Placement.Weighers = ours.Placement.Weighers
	}
	if gate, gated := c.Store.(*Gate); gated {
		f.Unmarked, f.Vouched = gate.Unmarked(), gate.Vouch
	}
	f.Evacuation.DrainKey = cmp.Or(f.Evacuation.DrainKey, ours.Evacuation.DrainKey)
	return f
}

// lead makes what decides in one term. Follow returns a store for one participant.
func (c *Controller) lead(e *store.Elector, follow func() store.Store, h *hints) store.Participant {
	term := uint64(0)
	if l, leads := e.Leading(); leads {
		term = l.Term
	}
	t := c.trail("controller/"+c.Name, term)
	if t != nil {
		t.Begin("leads")
	}
	h.forget()
	return &both{
		controller.NewFailover(c.failover(), over(t, follow()), c.Fencer, c.recorder(t)),
		c.decider(t, follow()),
	}
}

// decider makes what decides about migrations. What it does can be replayed, if there is a
// trail.
func (c *Controller) decider(t *audit.History, s store.Store) store.Participant {
	begin := func(s store.Store, n store.EventRecorder) store.Participant {
		return controller.New(c.Config, s, n)
	}
	if t == nil {
		return begin(s, c.recorder(nil))
	}
	return &audit.Recorder{History: t, Store: s, Recorder: c.recorder(nil), Config: c.Settings,
		Build: c.Build, Begin: begin}
}

// follow takes in the leader, and says when it has changed.
func (c *Controller) follow(led *store.LeaderRunner, term *atomic.Uint64) {
	now, _ := led.Leading()
	before := term.Swap(now)
	if before != now && now > 0 {
		c.Supervisor.Status(fmt.Sprintf("leads the cluster, term %d", now))
		c.Log.Info("leads", "controller", c.Name, "term", now)
	} else if before != now {
		c.Supervisor.Status("stands by: another controller may lead")
		c.Log.Info("does not lead any more", "controller", c.Name, "term", before)
	}
}

// both is two participants that look one after the other.
type both [2]store.Participant

// Reconcile lets both look; an error of one does not keep the other from it.
func (b *both) Reconcile(ctx context.Context, now time.Time) (time.Time, error) {
	first, err1 := b[0].Reconcile(ctx, now)
	second, err2 := b[1].Reconcile(ctx, now)
	return workqueue.Earliest(first, second), errors.Join(err1, err2)
}

// observed calls after after every look.
type observed struct {
	store.Participant
	after func()
}

// Reconcile lets the participant look.
func (o *observed) Reconcile(ctx context.Context, now time.Time) (time.Time, error) {
	wake, err := o.Participant.Reconcile(ctx, now)
	o.after()
	return wake, err
}
