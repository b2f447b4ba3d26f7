package controller

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/store"
)

// FailoverController calls silent hosts lost, has them fenced, and gives their VMs to others. It
// keeps nothing that matters and that the store does not have.
type FailoverController struct {
	config   FailoverConfig
	store    store.Store
	fencer   Fencer
	recorder store.EventRecorder

	leases leaseTracker
	cache  *failoverCache
	seen   store.Revision
	cuts   map[hypervisor.HostName]*cut
	storm  bool   // it was said that too many are silent
	waits  string // why no agent is admitted; "" is that they are

	planned bool      // nothing has changed since the VMs were placed
	retry   time.Time // when those are tried again that fit nowhere
	told    map[hypervisor.VMID]string
	wake    time.Time // when to look again
}

// NewFailover returns a failover controller that knows nothing yet. Without a fencer only the words of
// operators prove that a host is off. It panics when [FailoverConfig.Validate] refuses the configuration.
func NewFailover(c FailoverConfig, store store.Store, fencer Fencer, recorder store.EventRecorder) *FailoverController {
	if err := c.Validate(); err != nil {
		panic("controller: " + err.Error())
	}
	w := &FailoverController{config: c.Complete(), store: store, fencer: fencer, recorder: recorder,
		leases: newLeaseTracker(), cuts: map[hypervisor.HostName]*cut{},
		told: map[hypervisor.VMID]string{}}
	w.cache = newFailoverCache(&w.config)
	return w
}

// listens is how many times in a Grace the failover controller looks, at least.
const listens = 6

// Reconcile looks once, decides about every host and every VM without one, acts once,
// and says when it next wants to look. It judges no host before it has listened for a
// whole [FailoverConfig.Grace]. After an error it wants to look again soon; one record that
// could not be written does not keep it from the others.
func (w *FailoverController) Reconcile(ctx context.Context, now time.Time) (time.Time, error) {
	if err := w.pull(ctx, now); err != nil {
		return now.Add(w.config.Retry), err
	}
	w.wake = now.Add(w.config.Grace / listens)
	w.hear(now)
	errs := []error{w.judgeAll(ctx, now), w.fence(ctx, now)}
	if !w.planned || !w.retry.IsZero() && !now.Before(w.retry) {
		errs = append(errs, w.place(ctx, now), w.tidy(ctx))
	}
	w.wake = workqueue.Earliest(w.wake, w.retry)
	return w.wake, errors.Join(errs...)
}

// pull takes in what has changed in the store: first the heartbeats, so that what a
// record says of a host is never older than the host's last sign that was seen.
func (w *FailoverController) pull(ctx context.Context, now time.Time) error {
	heard, err := w.store.Changes(ctx, store.Leases, w.leases.seen)
	if err != nil {
		return err
	}
	w.leases.take(&heard, now, w.config.Grace/2)
	c, err := w.store.Changes(ctx, store.Everything, w.seen)
	if err != nil {
		return err
	}
	if c.Reset {
		w.cache = newFailoverCache(&w.config)
	}
	for _, r := range c.Records {
		w.learn(r)
	}
	if c.Reset { // they are not listed in the order in which they ended
		w.cache.health = *store.Health(slices.Collect(maps.Values(w.cache.moves)))
	}
	for _, key := range c.Gone {
		w.cache.forget(key)
		if key.Kind == store.VMKind {
			delete(w.told, hypervisor.VMID(key.Name))
		}
	}
	w.planned = w.planned && !c.Reset && len(c.Records)+len(c.Gone) == 0
	w.seen = c.Next
	return nil
}

// learn takes in a record. What was heard of a host before it was said to be off speaks
// not against that; a heartbeat that was written after an operator's confirmation does, also when both
// are read at once, or nothing of the host was known before.
func (w *FailoverController) learn(r store.Record) {
	if h, ok := r.(*store.Host); ok {
		name := h.Host.Name
		old := w.cache.hosts[name]
		if old == nil || h.Fenced && !old.Fenced || h.ConfirmedDownBy != old.ConfirmedDownBy {
			delete(w.leases.heartbeats, name)
			if h.ConfirmedDownBy != "" && !h.Fenced && w.leases.after(name, h.Version) {
				w.leases.heartbeats[name] = true
			}
		}
	}
	w.cache.learn(r)
}

// put stores a record and takes the result in. A record that another process wrote is no
// error: their writing is looked at when it is read.
func (w *FailoverController) put(ctx context.Context, r store.Record, while ...store.Record) (bool, error) {
	stored, err := w.store.Put(ctx, r, while...)
	switch {
	case err == nil:
		w.learn(stored)
		w.planned = false
		return true, nil
	case errors.Is(err, store.Stale):
		err = nil
	}
	w.again()
	return false, err
}

// again lets the failover controller look again soon.
func (w *FailoverController) again() {
	w.wake = workqueue.Earliest(w.wake, w.leases.looked.Add(w.config.Poll))
}

// judgeAll judges every host, by name.
func (w *FailoverController) judgeAll(ctx context.Context, now time.Time) error {
	var errs []error
	for _, name := range w.names() {
		errs = append(errs, w.judge(ctx, name, now))
	}
	return errors.Join(errs...)
}

// names lists the hosts.
func (w *FailoverController) names() []hypervisor.HostName {
	return slices.Sorted(maps.Keys(w.cache.hosts))
}

// observation returns what is known about a host.
func (w *FailoverController) observation(name hypervisor.HostName, now time.Time) hostObservation {
	s := hostObservation{Host: w.cache.hosts[name], Boot: w.leases.boot(name), Heartbeat: w.leases.heartbeats[name],
		Silence: w.leases.silence(name, now), Waits: w.waits}
	s.Worth = s.Silence >= w.config.FenceAfter &&
		(w.config.FenceIdle || w.cache.worth(&w.config, name))
	return s
}

// judge judges a host until nothing is left to be stored. A verdict follows another
// that was stored, never itself.
func (w *FailoverController) judge(ctx context.Context, name hypervisor.HostName, now time.Time) error {
	for range rules {
		s := w.observation(name, now)
		next, text := w.follow(&s, now)
		if next == nil {
			delete(w.leases.heartbeats, name)
			return nil
		}
		var while []store.Record
		if !s.Heartbeat {
			while = append(while, w.leases.lease(name))
		}
		if stored, err := w.put(ctx, next, while...); err != nil || !stored {
			return err
		}
		if text != "" {
			w.recorder.Note(now, name, "", text)
		}
	}
	w.again()
	return nil
}

// follow returns the record of a host as a verdict wants it, and why in words; nil when
// nothing is to be stored.
func (w *FailoverController) follow(s *hostObservation, now time.Time) (*store.Host, string) {
	next, fencing := *s.Host, store.Fencing{Asked: now, Boot: s.Boot}
	if s.Host.Fencing != nil {
		fencing = *s.Host.Fencing
	}
	switch decideHost(&w.config, s) {
	case verdictWelcome:
		next.Fenced, next.Fencing, next.NotReady, next.ConfirmedDownBy = false, nil, false, ""
		return &next, "is back: the machine has started anew, as " + cmp.Or(s.Boot, "it says")
	case verdictDistrust:
		fencing.Error = "the same start of the machine sends heartbeats"
		next.Fencing, next.Told = &fencing, ""
		return &next, "LIVES although " + cmp.Or(fencing.By, "its fencing") + " says that it is " +
			"off: nothing more is rebuilt from it; check its VMs and its fence device"
	case verdictWithdraw:
		next.Fenced, next.Fencing = false, nil
		return &next, "the word of " + fencing.By + " is withdrawn"
	case verdictRefuse:
		next.ConfirmedDownBy = ""
		return &next, s.Host.ConfirmedDownBy + " says that it is off, but it sends heartbeats: " +
			"the word does not count"
	case verdictRecover:
		next.NotReady, next.Fencing = false, nil
		return &next, "is heard again"
	case verdictAdmit:
		return admit(s.Host), ""
	case verdictDelay:
		next.Waits = s.Waits
		return &next, "its agent is not admitted yet: " + s.Waits
	case verdictBelieve:
		fencing.By, fencing.Error, fencing.Boot = store.OperatorBy+s.Host.ConfirmedDownBy, "", s.Boot
		next.Fenced, next.NotReady, next.Fencing = true, true, &fencing
		return &next, "counts as fenced: the word of " + fencing.By
	case verdictCallLost:
		next.NotReady = true
		return &next, "is lost: its agent is silent for " + s.Silence.Round(time.Second).String()
	}
	return nil, ""
}
