package controller

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// draining reports whether a host carries the drain taint.
func (c *Controller) draining(h *store.Host) bool {
	return c.config.Evacuation.Draining(evacuation.Host{Name: h.Host.Name, Taints: h.Taints})
}

// evacuate plans which VMs leave a host now, and creates their migrations. It also
// takes back what a drain that was withdrawn has not begun.
func (c *Controller) evacuate(ctx context.Context, host hypervisor.HostName, now time.Time) error {
	s := c.cache.host(host)
	if !c.draining(s.rec) {
		if err := errors.Join(c.withdraw(ctx, s, now), c.recall(ctx, s, now)); err != nil ||
			s.marked == 0 {
			return err
		}
	}
	plan := c.plan(s, now)
	for _, vm := range plan.Warn {
		if _, why := c.cache.vm(vm).rec.CanMigrate(); c.warned[vm] != host {
			c.warned[vm] = host
			c.recorder.Note(now, "", vm, "cannot migrate: "+why)
		}
	}
	for _, create := range plan.Create {
		if err := c.create(ctx, create, now); err != nil {
			c.later.Set(host, now.Add(c.config.Retry))
			return err
		}
	}
	again, err := c.evict(ctx, plan.Stop, now)
	if err != nil {
		c.later.Set(host, now.Add(c.config.Retry))
		return err
	}
	if plan.Again > 0 && (again == 0 || plan.Again < again) {
		again = plan.Again
	}
	if again > 0 {
		c.later.Set(host, now.Add(again))
	}
	return nil
}

func (c *Controller) plan(s *hostEntry, now time.Time) evacuation.Decision {
	return evacuation.Plan(c.config.Evacuation, s.asHost(), c.asVMs(s), c.load(s, now))
}

// drained lists a host and those that wait to be planned, with what the VMs send that leave now.
func (c *Controller) drained(s *hostEntry, now time.Time) (all []drainEntry) {
	for _, host := range append([]hypervisor.HostName{s.name()}, c.cache.plans.Waiting()...) {
		s, d := c.cache.host(host), drainEntry{Host: host}
		for _, leaves := range c.plan(s, now).Create {
			d.Sends += sends(c.cache.vm(leaves.VM).rec, s.rec)
		}
		all = append(all, d)
	}
	return all
}

// load counts what already moves, as the limits on free spots count it. KubeVirt
// does not count what still waits, and so creates more than there are spots. What waits for a
// host that takes it, or for its source to be tried again, takes no spot from others.
func (c *Controller) load(s *hostEntry, now time.Time) evacuation.Load {
	l := evacuation.Load{InCluster: c.cache.slots.Running(), FromHost: c.cache.slots.From(s.name())}
	if c.config.Evacuation.Compatible || c.config.Evacuation.Mode == evacuation.QueueAll {
		return l
	}
	l.InCluster, l.FromHost = c.cache.unfinished-c.cache.stuck, 0
	for _, host := range c.cache.health.Hosts() {
		if _, is := c.cache.health.Sending(host, now); is {
			l.InCluster -= c.cache.host(host).waiting()
		}
	}
	for _, g := range s.vms {
		if g.moving() && !g.stuck() {
			l.FromHost++
		}
	}
	return l
}

// waiting counts the migrations out of a host that wait for a target, without those that no host
// takes.
func (s *hostEntry) waiting() (n int) {
	for _, g := range s.vms {
		for _, f := range g.migrations {
			if f.rec.State.Phase <= migration.Pending && f.tries == 0 {
				n++
			}
		}
	}
	return n
}

// stuck reports whether no host was found for a migration of the VM when it was tried last.
func (g *vmEntry) stuck() bool {
	return slices.ContainsFunc(g.migrations, func(f *migrationEntry) bool { return f.tries > 0 })
}

// asHost returns a host as evacuation sees it.
func (s *hostEntry) asHost() evacuation.Host {
	return evacuation.Host{Name: s.rec.Host.Name, Taints: s.rec.Taints,
		Missing: s.rec.Version == 0, Link: s.rec.Host.Link, Terms: s.rec.Drain}
}

// asVMs lists the VMs on a host as evacuation sees them, until it is called again.
func (c *Controller) asVMs(s *hostEntry) []evacuation.VM {
	c.guests = slices.Grow(c.guests[:0], len(s.vms))
	for _, g := range s.vms { // Plan does not depend on their order
		guest := c.asMember(g)
		if s.longestFirst() {
			guest.Memory = c.expected(s, g, guest.Memory)
		}
		c.guests = append(c.guests, guest)
	}
	return c.guests
}

func (g *vmEntry) asVM() evacuation.VM {
	can, why := g.rec.CanMigrate()
	return evacuation.VM{
		ID: g.rec.VM.ID, Final: g.rec.Ended, Stopping: g.rec.Off() && !g.rec.Ended,
		Between: g.rec.Between(), Held: g.rec.Blockers.Holds(), Strategy: g.rec.Strategy,
		Migratable: can, NotMigratableReason: why, EvacuateFrom: g.rec.EvacuateFrom,
		Moving: g.moving() || g.rec.ActiveMigration != "", Instances: 1, Memory: g.rec.Weight(),
		Failed: migration.Failures(len(g.migrations), g.own),
	}
}

// own returns where a migration of the VM is; they are numbered by age. One that failed for what
// a host did before the transfer says nothing about the VM: it counts as if it had not begun.
func (g *vmEntry) own(i int) migration.Phase {
	if f := g.migrations[i]; !f.hosts {
		return f.rec.State.Phase
	}
	return migration.Unset
}

// moving reports whether an unfinished migration of the VM exists.
func (g *vmEntry) moving() bool {
	unfinished := func(f *migrationEntry) bool { return !f.rec.State.Phase.Final() }
	return slices.ContainsFunc(g.migrations, unfinished)
}

// create stores a migration, with the first thing that is decided about it. Its name is the VM's
// with a number that no migration of the VM has had. It is younger than all that were created
// for the same host before, whatever the clock says: they wait in that order, and a VM's oldest
// is the first to be collected, and its name given away. Hosts drained together take turns.
func (c *Controller) create(ctx context.Context, e evacuation.MigrationRequest, now time.Time) error {
	g := c.cache.vm(e.VM)
	s := g.host
	if n := len(g.migrations); n > 0 && !s.next.After(g.migrations[n-1].rec.Spec.Created) {
		s.next = g.migrations[n-1].rec.Spec.Created.Add(1)
	}
	last := g.rec.Numbered
	for _, f := range g.migrations { // the newest ones are always kept
		last = max(last, Number(f.rec.Spec.ID))
	}
	id := migrationName(e.VM, last+1)
	next := draft(&c.next, &store.Migration{Spec: migration.Spec{ID: id, VM: e.VM,
		Priority: e.Priority, By: migration.Evacuation}})
	next.Spec.Created, s.next = c.turns.Next(
		drainEntry{Host: s.name(), Sends: sends(g.rec, s.rec)}, s.next, c.since,
		func() []drainEntry { return c.drained(s, now) })
	_, d := c.decide(&migrationEntry{rec: next, vm: g}, now)
	next.State = d.State
	stored, err := c.put(ctx, next, now)
	if stored {
		c.emitEvents(c.cache.migrations[id], migration.Unset, d, now)
	}
	return err
}

// withdraw undoes evacuations whose drain or mark was taken back: migrations
// that they created and that have not been handed over are cancelled, unless they keep a group together.
func (c *Controller) withdraw(ctx context.Context, s *hostEntry, now time.Time) error {
	var flights []evacuation.ActiveMigration
	for _, g := range s.vms {
		if g.rec.EvacuateFrom == s.rec.Host.Name {
			continue
		}
		for _, f := range g.migrations {
			if m := &f.rec.Spec; !f.rec.State.Phase.Final() && !f.rec.Cancel {
				flights = append(flights, evacuation.ActiveMigration{ID: m.ID, VM: m.VM, By: m.By,
					Phase: f.rec.State.Phase, From: s.name()})
			}
		}
	}
	if err := c.reunite(ctx, s, now); err != nil {
		c.later.Set(s.rec.Host.Name, now.Add(c.config.Retry))
		return err
	}
	if len(flights) == 0 {
		return nil
	}
	undo := evacuation.Cancel(c.config.Evacuation, s.asHost(), c.asVMs(s), flights)
	for _, id := range undo.Cancel {
		if c.cache.migrations[id].vm.rec.EvacuateFrom == s.name() {
			continue // it follows its group
		}
		next := *c.cache.migrations[id].rec
		next.Cancel = true
		if _, err := c.put(ctx, &next, now); err != nil {
			c.later.Set(s.rec.Host.Name, now.Add(c.config.Retry))
			return err
		}
	}
	return nil
}

// paced asks the evacuation's policy, if there is one, whether a VM may leave a host now, for
// any reason: those that leave share its link.
func (c *Controller) paced(f *migrationEntry, source hypervisor.HostName) bool {
	pace := c.config.Evacuation.Policy
	if pace == nil || f.vm.rec == nil || c.core.Compatible {
		return true
	}
	var others []evacuation.EvacuatingVM
	s := c.cache.host(source)
	for _, g := range s.vms {
		for _, o := range g.migrations {
			if o.holds {
				l := g.asVM().Evacuating()
				if o.target != nil {
					l.Target = o.target.rec.Host.Link
					l.Sharing = c.cache.slots.To(o.target.name())
				}
				others = append(others, l)
			}
		}
	}
	slices.SortFunc(others, func(a, b evacuation.EvacuatingVM) int { return cmp.Compare(a.VM, b.VM) })
	return len(others) == 0 || pace.Admit(s.rec.Host.Link, f.vm.asVM().Evacuating(), others)
}
