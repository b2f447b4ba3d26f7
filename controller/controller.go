package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// Controller decides for the whole cluster: which migrations there are, what each does next,
// where it goes, and which VMs leave a host. It keeps nothing that the store does not have.
type Controller struct {
	config   Config
	core     *migration.Config
	limits   migration.Limits
	options  *resolver
	store    store.Store
	recorder store.EventRecorder

	cache   *cache
	seen    store.Revision
	unread  int             // writings of our own since then
	own     []store.Version // of them, those that were taken in when they were answered
	since   time.Time       // the first of the looks that go on with each other
	turns   drainScheduler
	timers  workqueue.Alarms[*migrationEntry]
	later   workqueue.Timers[hypervisor.HostName]   // evacuations to be planned again
	probes  workqueue.Timers[hypervisor.HostName]   // hosts in trouble to be tried again
	doubt   *store.Migration                        // as it was when it may have got a slot
	pullBy  time.Time                               // when to look at the store, told or not
	warned  map[hypervisor.VMID]hypervisor.HostName // the host whose drain each VM was said to block
	restart workqueue.Timers[hypervisor.VMID]       // starts to be tried again
	tried   map[hypervisor.VMID]uint8               // how often no host was found for one in a row

	observed observation        // scratch of see
	answer   migration.Decision // scratch of see
	asked    placement.Request  // scratch of request
	guests   []evacuation.VM    // scratch of asGuests
	next     store.Migration    // scratch of drafts
	nextVM   store.VM
}

// New returns a controller that knows nothing yet. It panics when [Config.Validate] refuses the
// configuration.
func New(config Config, store store.Store, recorder store.EventRecorder) *Controller {
	if err := config.Validate(); err != nil {
		panic("controller: " + err.Error())
	}
	c := &Controller{config: config.Complete(), store: store, recorder: recorder,
		warned: map[hypervisor.VMID]hypervisor.HostName{}, tried: map[hypervisor.VMID]uint8{}}
	c.adapt()
	c.core, c.limits = &c.config.Migration, c.config.Limits()
	c.turns.Together = migrationsAtOnce(c.limits, c.core.Compatible)
	c.options = newResolver(c.config.Cluster, migration.PolicyMatcher{Compatible: c.core.Compatible},
		c.config.Policies, c.config.Namespaces)
	c.cache = c.newCache(0)
	return c
}

// Reconcile looks once, decides once about everything that changed or is due, and says when it
// next wants to look: after now, and at the latest after [Config.Resync], so that a lost
// notification costs only time. After an error it wants to look again soon.
func (c *Controller) Reconcile(ctx context.Context, now time.Time) (time.Time, error) {
	if !c.behind() {
		c.since = now
	}
	if err := c.pull(ctx); err != nil {
		return now.Add(c.config.Retry), err
	}
	c.pullBy = now.Add(c.config.Resync)
	c.requeueDue(now)
	err := c.work(ctx, now)
	c.watchTroubled(now)
	if c.behind() {
		c.pullBy = now.Add(time.Millisecond)
	}
	next := workqueue.Earliest(c.cache.applied.again, c.later.Next())
	next = workqueue.Earliest(next, c.cache.serviced.again)
	next = workqueue.Earliest(next, c.cache.paces.Next())
	next = workqueue.Earliest(next, workqueue.Earliest(c.probes.Next(), c.restart.Next()))
	return workqueue.Earliest(c.pullBy, workqueue.Earliest(c.timers.Next(), next)), err
}

// requeueDue requeues the migrations and VMs whose time has come.
func (c *Controller) requeueDue(now time.Time) {
	for f, due := c.timers.Pop(now); due; f, due = c.timers.Pop(now) {
		c.cache.dirty.Add(f)
	}
	for host, due := c.later.Pop(now); due; host, due = c.later.Pop(now) {
		c.cache.plans.Add(host)
	}
	if again := c.cache.applied.again; !again.IsZero() && !again.After(now) {
		c.cache.applied.dirty = true
	}
	if again := c.cache.serviced.again; !again.IsZero() && !again.After(now) {
		c.cache.serviced.dirty = true
	}
	for host, due := c.cache.paces.Pop(now); due; host, due = c.cache.paces.Pop(now) {
		c.cache.late.Add(host)
	}
	c.probe(now)
	for vm, due := c.restart.Pop(now); due; vm, due = c.restart.Pop(now) {
		c.cache.starts.Add(vm)
	}
}

// maxRounds bounds how often a look goes over what it has changed: it must always return.
const maxRounds = 1000

var errRestless = errors.New("controller: decisions go on without end; looking again later")

// work decides until nothing is left to be decided, or until a slot may or may
// not have been given away: then no migration is admitted before the store was read.
func (c *Controller) work(ctx context.Context, now time.Time) (errs error) {
	for busy, round := true, 0; busy; round++ {
		if busy = false; round == maxRounds {
			c.pullBy = now.Add(c.config.Retry)
			return errors.Join(errs, errRestless)
		}
		for host, ok := c.cache.plans.Pop(); ok; host, ok = c.cache.plans.Pop() {
			if errs = errors.Join(errs, c.evacuate(ctx, host, now)); c.behind() {
				return errs
			}
			busy = true
		}
		for f, ok := c.cache.dirty.Pop(); ok; f, ok = c.cache.dirty.Pop() {
			if errs = errors.Join(errs, c.reconcileMigration(ctx, f, now)); c.behind() {
				return errs
			}
			busy = true
		}
		for vm, ok := c.cache.starts.Pop(); ok; vm, ok = c.cache.starts.Pop() {
			if errs = errors.Join(errs, c.startElsewhere(ctx, vm, now)); c.behind() {
				return errs
			}
			busy = true
		}
		for vm, ok := c.cache.releases.Pop(); ok; vm, ok = c.cache.releases.Pop() {
			if errs = errors.Join(errs, c.release(ctx, vm, now)); c.behind() {
				return errs
			}
			busy = true
		}
		if c.cache.applied.dirty {
			if errs = errors.Join(errs, c.apply(ctx, now)); c.behind() {
				return errs
			}
			busy = busy || errs == nil
		}
		for host, ok := c.cache.late.Pop(); ok; host, ok = c.cache.late.Pop() {
			if errs = errors.Join(errs, c.watchDeadline(ctx, host, now)); c.behind() {
				return errs
			}
			busy = true
		}
		if c.cache.serviced.dirty {
			if errs = errors.Join(errs, c.maintain(ctx, now)); c.behind() {
				return errs
			}
			busy = busy || errs == nil
		}
		if errs = errors.Join(errs, c.tidy(ctx)); c.behind() {
			return errs
		}
		busy = c.retry() || busy
		admitted, err := c.admit(ctx, now)
		errs = errors.Join(errs, err)
		busy = err == nil && (busy || admitted) && !c.behind()
	}
	return errs
}

// behind reports whether the store is to be read before more is written: it would forget what
// we have not read, and answer everything. The next look goes on.
func (c *Controller) behind() bool { return c.unread >= 256 }

// pull takes in what changed in the store.
func (c *Controller) pull(ctx context.Context) error {
	changes, err := c.store.Changes(ctx, store.Everything, c.seen)
	if err != nil {
		return err
	}
	if changes.Reset {
		c.reset(changes.Records)
	} else {
		for _, r := range changes.Records {
			if !c.wrote(r) {
				c.cache.learn(r)
			}
		}
	}
	for _, key := range changes.Gone {
		c.cache.forget(key)
	}
	c.seen, c.unread, c.own = changes.Next, 0, c.own[:0]
	return nil
}

// wrote reports whether a record is a writing of our own that was taken in when it was answered. Half of
// what the store tells is.
func (c *Controller) wrote(r store.Record) bool {
	switch r.(type) {
	case *store.Migration, *store.VM:
		_, own := slices.BinarySearch(c.own, r.RecordVersion())
		return own
	}
	return false
}

// reset starts from nothing: the store no longer knows what we missed. Hosts
// come first, so that what is on them finds its place.
func (c *Controller) reset(all []store.Record) {
	c.cache = c.newCache(len(all))
	c.timers, c.later = workqueue.Alarms[*migrationEntry]{}, workqueue.Timers[hypervisor.HostName]{}
	c.probes = workqueue.Timers[hypervisor.HostName]{}
	c.restart = workqueue.Timers[hypervisor.VMID]{}
	for _, kind := range []store.Kind{store.HostKind, store.VMKind, store.MigrationKind, store.PlanKind,
		store.MaintenanceKind} {
		for _, r := range all {
			if r.Key().Kind == kind {
				c.cache.learn(r)
			}
		}
	}
	c.cache.recallOutcomes()
}

func (c *Controller) newCache(n int) *cache {
	return &cache{
		migrations: make(map[migration.ID]*migrationEntry, n), vms: make(map[hypervisor.VMID]*vmEntry, n),
		hosts: map[hypervisor.HostName]*hostEntry{},
		reservations: newReservations(reservationsConfig{Inbound: c.limits.PerTarget,
			Placement: c.config.Placement, Quotas: c.config.Quotas,
			ResourceQuotas: c.config.ResourceQuotas}),
		drain: c.draining,
		eager: c.config.Evacuation.Mode != evacuation.QueueAll, forgiving: c.core.Compatible,
		traffic: c.newTraffic(),
		queue:   queue[*migrationEntry]{longer: c.longer},
	}
}

// put stores a record and takes the result in. A record that another process wrote is no error:
// their writing is looked at as soon as it is read. A lost answer is one.
func (c *Controller) put(ctx context.Context, r store.Record, now time.Time,
	while ...store.Record) (bool, error) {
	stored, err := c.store.Put(ctx, r, while...)
	switch {
	case err == nil:
		c.cache.learn(stored)
		c.own = append(c.own, stored.RecordVersion())
		c.unread++
		return true, nil
	case errors.Is(err, store.Stale):
		c.pullBy = now.Add(c.config.Retry)
		return false, nil
	}
	if m, ok := r.(*store.Migration); ok && c.cache.migrations[m.Spec.ID] != nil {
		c.timers.Set(&c.cache.migrations[m.Spec.ID].alarm, now.Add(c.config.Retry))
	}
	return false, err
}

// reconcileMigration decides about one migration, and stores and does what follows.
func (c *Controller) reconcileMigration(ctx context.Context, f *migrationEntry, now time.Time) error {
	if f.gone {
		return nil
	}
	c.cache.latest = f
	c.timers.Drop(&f.alarm)
	if err := errors.Join(c.recordEvidence(ctx, f, now), c.limit(ctx, f, now)); err != nil {
		return err
	}
	seen := f.rec
	o, d := c.decide(f, now)
	if d.Actions.Has(migration.CreateTarget) ||
		o.Gate != migration.Open && waitsForRoom(&f.rec.State, &o.Observation) {
		// The gate is asked, and the target chosen, when its turn comes.
		c.cache.queue.Add(f, o.source)
	}
	err := c.carryOut(ctx, f, now)
	if err != nil {
		c.timers.Set(&f.alarm, now.Add(c.config.Retry))
	} else if f.rec == seen { // otherwise it is looked at again
		c.schedule(f, d, now)
	}
	return err
}

// decide asks the core about one migration. Both answers are valid until it is called
// again: most looks find nothing to be done, and allocate nothing.
func (c *Controller) decide(f *migrationEntry, now time.Time) (*observation, *migration.Decision) {
	c.observe(f, &c.observed, now)
	c.core.StepIn(&f.rec.Spec, &f.rec.State, &c.observed.Observation, &c.answer)
	return &c.observed, &c.answer
}

// schedule sets a migration's timers. What the core asks for with the migration's
// own priority is to look whether a slot, a backup or another instance is still in
// the way: the end of each is a change in the store, which wakes it anyway.
func (c *Controller) schedule(f *migrationEntry, d *migration.Decision, now time.Time) {
	for _, w := range d.Requeues() {
		if w.Priority != f.rec.Spec.Priority || w.After > migration.Lowest.Requeue() {
			c.timers.Set(&f.alarm, now.Add(w.After))
		}
	}
}

// recordEvidence adds what is known about dead hosts to a migration under way.
func (c *Controller) recordEvidence(ctx context.Context, f *migrationEntry, now time.Time) error {
	if !f.rec.Source.Began || f.rec.State.Phase.Final() {
		return nil
	}
	for _, s := range [...]*hostEntry{f.source, f.target} {
		if s == nil {
			continue
		}
		proof := s.rec.Proof()
		if proof.Proof == hypervisor.NoProof || f.rec.Dead(s.name()) {
			continue
		}
		next := draft(&c.next, f.rec)
		next.Evidence = append(slices.Clip(next.Evidence), proof)
		if _, err := c.put(ctx, next, now); err != nil {
			return err
		}
	}
	return nil
}

// carryOut stores what [Controller.decide] has just answered, and performs the actions that are
// the controller's. The others are the agents', who read them from the record.
func (c *Controller) carryOut(ctx context.Context, f *migrationEntry, now time.Time) (err error) {
	o, d := &c.observed, &c.answer
	if d.State != f.rec.State {
		before, next := f.rec.State.Phase, c.decided(f, o, d)
		if d.State.Phase == migration.Scheduled && before < d.State.Phase && !c.core.Compatible {
			if claimed, err := c.claimFor(ctx, f, next, now); err != nil || !claimed {
				return err
			}
		}
		if stored, err := c.put(ctx, next, now); err != nil || !stored {
			return err
		}
		c.emitEvents(f, before, d, now)
	}
	if f.rec.State.Phase != migration.Pending {
		c.cache.queue.Remove(f)
	}
	switch {
	case d.Actions.Has(migration.CreateAttachment):
		next := draft(&c.next, f.rec)
		next.Attach = true
		_, err = c.put(ctx, next, now)
	case d.Actions.Has(migration.HandOff):
		_, err = c.handOver(ctx, f, now)
	case f.rec.State.Phase.Final():
		err = c.settle(ctx, f, now)
	}
	return err
}

// claimFor goes on with a migration that would be Scheduled and wait only for this controller: the VM
// is claimed for it, and next becomes what that leads to. So one writing does for both phases.
// What a crash leaves behind between the two is a claim of an unfinished migration, as after
// any hand-over. It reports false when another process has written the VM meanwhile.
func (c *Controller) claimFor(ctx context.Context, f *migrationEntry, next *store.Migration,
	now time.Time) (claimed bool, err error) {
	stored := f.rec
	f.rec = next
	o, d := c.decide(f, now)
	if claimed = true; d.Actions.Has(migration.HandOff) {
		claimed, err = c.handOver(ctx, f, now)
		o, d = c.decide(f, now)
	}
	c.decided(f, o, d)
	f.rec = stored
	return claimed, err
}

// decided drafts a migration's record with its new state, and with what follows from that
// alone: how the VM is to be moved that is handed over next, and that nothing is left to be
// decided about a migration that has ended. Either saves a writing of its own.
func (c *Controller) decided(f *migrationEntry, o *observation, d *migration.Decision) *store.Migration {
	next := draft(&c.next, f.rec)
	switch next.State = d.State; {
	case d.State.Phase == migration.Scheduled && f.vm.rec != nil:
		c.options.Resolve(next, f.vm.rec, c.cache.host(next.State.Source).rec,
			c.cache.host(next.State.Target).rec)
		hurry(next, c.cache.host(next.State.Source).rec.DrainPace)
		f.capped = true
	case d.State.Phase.Final():
		next.State = c.core.Step(&next.Spec, &d.State, &o.Observation).State
	}
	if o.choice != nil && d.State.Phase == migration.Failed {
		next.Decision = o.choice
	}
	return next
}

// emitEvents notes a transition, with its cause, and the phases that the same writing has passed.
func (c *Controller) emitEvents(f *migrationEntry, before migration.Phase, d *migration.Decision, now time.Time) {
	s := &f.rec.State
	switch {
	case s.Phase == before && d.Rule == "":
		return
	case s.Phase == before || s.Conditions.Has(migration.OutcomeUnknown):
	case s.Phase == migration.Failed:
		c.audit(f, placement.RolledBack, now)
	case s.Phase == migration.Succeeded:
		c.audit(f, placement.Succeeded, now)
	}
	for ; before+1 < s.Phase && !s.Phase.Final(); before++ {
		c.recorder.Note(now, "", f.rec.Spec.VM, onto(before+1))
	}
	c.recorder.Note(now, "", f.rec.Spec.VM, stepText(f.rec, before, d.Rule))
}

// handOver lets the VM name this migration, whose options are known. A VM that has moved since
// the target was chosen is not handed over. It reports false when another process has written
// the VM meanwhile.
func (c *Controller) handOver(ctx context.Context, f *migrationEntry, now time.Time) (bool, error) {
	g := f.vm
	if g.rec.ActiveMigration != "" || g.rec.Host != f.rec.State.Source {
		return true, nil
	}
	next := draft(&c.nextVM, g.rec)
	next.ActiveMigration = f.rec.Spec.ID
	return c.put(ctx, next, now)
}

// settle writes down where the VM is after its migration has ended, and forgets
// migrations that are no longer needed.
func (c *Controller) settle(ctx context.Context, f *migrationEntry, now time.Time) error {
	g := f.vm
	if g.rec != nil && g.rec.ActiveMigration == f.rec.Spec.ID {
		next := draft(&c.nextVM, g.rec)
		next.ActiveMigration = ""
		if f.rec.State.Phase == migration.Succeeded {
			next.MoveTo(f.rec.State.Target)
			next.EvacuateFrom = ""
			next.Forced = forcedBy(f.rec)
		}
		if stored, err := c.put(ctx, next, now); err != nil || !stored {
			return err
		}
	}
	if len(g.migrations) <= c.core.Keep { // none is to be forgotten
		return nil
	}
	for _, gone := range c.core.Collect(attempts(g)) {
		if old := c.cache.migrations[gone.ID]; old != nil && cleared(old.rec, g.rec == nil) {
			if err := c.store.Delete(ctx, old.rec); err != nil && !errors.Is(err, store.Stale) {
				return err
			}
			c.cache.forget(old.rec.Key())
		}
	}
	return nil
}
