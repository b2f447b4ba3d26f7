package controller

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// serviced are the runs of maintenance in the cache that have not ended.
type serviced struct {
	runs  map[string]*store.Maintenance
	plans map[string]*store.Plan // of runs, whether or not they have ended
	dirty bool                   // something has changed that matters to them
	again time.Time              // when to look at them again
}

// learn takes in a run as it is stored.
func (v *serviced) learn(m *store.Maintenance) {
	if old := v.runs[m.Name]; old != nil && old.Version >= m.Version {
		return
	}
	if !m.Ended.IsZero() {
		v.forget(m.Name)
		return
	}
	if v.runs == nil {
		v.runs = map[string]*store.Maintenance{}
	}
	v.runs[m.Name], v.dirty = m, true
}

func (v *serviced) forget(name string) {
	delete(v.runs, name)
	v.dirty = len(v.runs) > 0
}

// ofRun is how the author of a plan begins that belongs to a run.
const ofRun = "maintenance "

// learnPlan takes in a plan as it is stored.
func (v *serviced) learnPlan(p *store.Plan) {
	if !strings.HasPrefix(p.By, ofRun) {
		return
	}
	if v.plans == nil {
		v.plans = map[string]*store.Plan{}
	}
	if old := v.plans[p.Name]; old == nil || old.Version < p.Version {
		v.plans[p.Name] = p
	}
	v.changed()
}

func (v *serviced) forgetPlan(name string) {
	delete(v.plans, name)
	v.changed()
}

// changed takes in that something has changed about a host, a VM or a plan.
func (v *serviced) changed() { v.dirty = v.dirty || len(v.runs) > 0 }

// first returns the run that is carried out: the oldest.
func (v *serviced) first() (first *store.Maintenance) {
	for _, m := range v.runs {
		if first == nil || cmp.Or(m.Created.Compare(first.Created), strings.Compare(m.Name, first.Name)) < 0 {
			first = m
		}
	}
	return first
}

// maintain carries out the next step of the run of maintenance whose turn it is. Everything follows from
// the record and from what is seen: after a crash the same is done again, and the same twice does nothing.
func (c *Controller) maintain(ctx context.Context, now time.Time) error {
	v := &c.cache.serviced
	v.dirty, v.again = false, time.Time{}
	m := v.first()
	if m == nil {
		return nil
	}
	d := decideMaintenance(m, maintenanceSight{Host: c.serviceSight, Plan: func(name string) *store.Plan {
		return v.plans[name]
	}, Where: c.whereabouts}, now)
	v.again = d.Again
	done, err := c.service(ctx, m, &d, now)
	if err != nil || !done {
		v.again = workqueue.Earliest(v.again, now.Add(c.config.Retry))
	}
	return err
}

// service stores what was decided about a run, and then does it. It reports false when another process
// has written one of the records meanwhile.
func (c *Controller) service(ctx context.Context, m *store.Maintenance, d *maintenanceStep, now time.Time) (bool, error) {
	if d.Changed {
		if stored, err := c.put(ctx, &d.Run, now); err != nil || !stored {
			return false, err
		}
		c.noteRun(m, &d.Run, now)
	}
	all := true
	do := func(r store.Record) error {
		stored, err := c.put(ctx, r, now)
		all = all && stored
		return err
	}
	for _, o := range d.Orders {
		if err := do(c.ordered(&o, d.Run.Name, d.Run.Terms)); err != nil {
			return false, err
		}
	}
	for i := range d.Plans {
		if err := do(&d.Plans[i]); err != nil {
			return false, err
		}
	}
	return all, nil
}

// ordered returns a host as a run of maintenance orders it to be.
func (c *Controller) ordered(o *hostOrder, run string, terms evacuation.Terms) *store.Host {
	next := *c.cache.host(o.Host).rec
	key := cmp.Or(c.config.Evacuation.DrainKey, evacuation.DefaultDrainKey)
	switch {
	case o.Cordon:
		next.Cordoned, next.CordonedFor = true, run
	case o.Uncordon:
		next.Cordoned, next.CordonedFor = false, ""
	}
	switch {
	case o.Drain:
		next.Taints = append(slices.Clip(next.Taints), placement.Taint{Key: key, Value: drainValue(run),
			Effect: placement.NoSchedule})
		next.Drain = terms.Or(next.Drain)
	case o.Undrain:
		next.Taints = slices.DeleteFunc(slices.Clone(next.Taints), func(t placement.Taint) bool {
			return t.Key == key && t.Value == drainValue(run)
		})
		next.Drain = evacuation.Terms{}
		if !slices.ContainsFunc(next.Taints, func(t placement.Taint) bool { return t.Key == key }) {
			next.DrainBy, next.DrainPace = nil, nil // an operator's drain keeps its deadline
		}
	}
	return &next
}

// drainValue is the value of the drain taint of a run.
func drainValue(run string) string { return store.MaintenanceDrain + run }

// serviceSight returns what is known about a host.
func (c *Controller) serviceSight(name hypervisor.HostName) serviceSight {
	e := c.cache.hosts[name]
	if e == nil || e.rec.Version == 0 {
		return serviceSight{}
	}
	h := e.rec
	s := serviceSight{Known: true, Cordoned: h.Cordoned, For: h.CordonedFor, Drains: e.drains, Session: h.Session,
		Software: h.Host.Software, Unwell: unwell(h), Incoming: c.cache.slots.To(name)}
	key := cmp.Or(c.config.Evacuation.DrainKey, evacuation.DefaultDrainKey)
	for _, t := range h.Taints {
		if run, is := strings.CutPrefix(t.Value, drainValue("")); is && t.Key == key {
			s.DrainedFor = run
		}
	}
	for _, g := range e.vms {
		if !g.rec.Off() || !g.rec.Ended {
			s.VMs = append(s.VMs, g.rec.VM.ID)
		}
	}
	slices.Sort(s.VMs)
	if e.drains && len(s.VMs) > 0 {
		s.Fixed = c.plan(e, time.Time{}).Warn
	}
	return s
}

// unwell returns why a host may not take VMs, besides its cordon and its drain.
func unwell(h *store.Host) string {
	switch {
	case h.NotReady:
		return "its agent is not heard"
	case h.Fenced || h.Fencing != nil:
		return "it is fenced, or about to be"
	case h.Unadmitted():
		return "its agent is not admitted: " + cmp.Or(h.Waits, "no controller has heard it yet")
	case h.Refused != nil:
		return "another agent was refused its name"
	}
	return ""
}

// whereabouts returns the host of a VM that is not off.
func (c *Controller) whereabouts(vm hypervisor.VMID) hypervisor.HostName {
	g := c.cache.vms[vm]
	if g == nil || g.rec == nil || g.rec.Off() {
		return ""
	}
	return g.rec.Host
}

// noteRun notes how far a run has come.
func (c *Controller) noteRun(before, after *store.Maintenance, now time.Time) {
	name := "maintenance " + after.Name + ": "
	for i := range after.Hosts {
		is := &after.Hosts[i]
		if was := before.Host(is.Name); was == nil || was.Phase != is.Phase {
			text := name + string(is.Name) + ": " + is.Phase.String()
			if is.Because != "" && is.Phase.Settled() {
				text += ": " + is.Because
			}
			c.recorder.Note(now, "", "", text)
		}
	}
	switch {
	case after.Stopped != before.Stopped && after.Stopped != "":
		c.recorder.Note(now, "", "", name+"stopped: "+after.Stopped)
	case after.Resumed != before.Resumed:
		c.recorder.Note(now, "", "", name+"resumed")
	}
	if !after.Ended.IsZero() {
		c.recorder.Note(now, "", "", name+"ended")
	}
}
