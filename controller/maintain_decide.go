package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/store"
)

// A serviceSight is what is known about a host of a run of maintenance.
type serviceSight struct {
	Known    bool // there is such a host
	Cordoned bool
	For      string // the run that has cordoned it
	// Drains says that it carries the drain taint, and DrainedFor for which run; "" is an operator's.
	Drains     bool
	DrainedFor string
	Session    string // the start of its agent; "" is not known
	Software   string
	Unwell     string            // why it may not take VMs yet, besides its cordon; "" is that it may
	VMs        []hypervisor.VMID // that are on it and are not off
	Fixed      []hypervisor.VMID // those of them that its drain cannot move, and leaves there
	Incoming   int               // migrations to it that hold a slot
}

// A maintenanceSight tells what is known about what a run of maintenance deals with.
type maintenanceSight struct {
	Host func(hypervisor.HostName) serviceSight
	Plan func(name string) *store.Plan // nil: there is none
	// Where is the host of a VM; "" is that there is no such VM, or that it is off.
	Where func(hypervisor.VMID) hypervisor.HostName
}

// A hostOrder is what is to be changed about a host of a run.
type hostOrder struct {
	Host hypervisor.HostName
	// Cordon it for the run, or Uncordon what the run has cordoned.
	Cordon, Uncordon bool
	// Drain it for the run, or Undrain what the run drains.
	Drain, Undrain bool
}

// A maintenanceStep is what is done next about a run of maintenance.
type maintenanceStep struct {
	// Run is the run as it is to be stored before anything else is done, if Changed.
	Run     store.Maintenance
	Changed bool
	Orders  []hostOrder
	// Plans are to be stored: they are created, or what is wished of them has changed.
	Plans []store.Plan
	// Again is when to decide again, whatever happens; zero is never.
	Again time.Time
}

// decideMaintenance decides what is done next about a run of maintenance. A host of a batch goes through
// these phases, and the next batch begins when all hosts of the one before are through:
//
//   - draining: it is cordoned, the moves of the plan are carried out, and what they leave is drained;
//   - hook: it is empty, and its hook is called for; an operator, or their command, answers that it has ended;
//   - check: its agent has started anew and is well, its software is as it should be, and the
//     operator's check has passed;
//   - done: it is uncordoned, if the run has cordoned it.
//
// Outside windows, while the run is paused, and when it has stopped, no host is emptied and no hook is
// called for; hosts whose hook has ended are checked, and take VMs again, all the same.
func decideMaintenance(m *store.Maintenance, see maintenanceSight, now time.Time) maintenanceStep {
	d := maintenanceDecision{now: now, see: see, step: maintenanceStep{Run: *m}}
	d.run = &d.step.Run
	if !m.Ended.IsZero() {
		return d.step
	}
	d.run.Hosts = slices.Clone(m.Hosts)
	d.resume()
	for d.batch() {
	}
	if d.edge(); d.run.Stopped != m.Stopped && d.run.Stopped != "" {
		d.step.Again = now // decided as a run that has stopped, once that is stored
	}
	d.step.Changed = !sameRun(m, d.run)
	return d.step
}

// sameRun reports whether two writings say the same about how far a run is.
func sameRun(a, b *store.Maintenance) bool {
	return a.Batch == b.Batch && a.Stopped == b.Stopped && a.Resumed == b.Resumed && a.Homing == b.Homing &&
		a.Ended.Equal(b.Ended) && slices.EqualFunc(a.Hosts, b.Hosts, func(x, y store.ServicedHost) bool {
		return x.Name == y.Name && x.Phase == y.Phase && x.Since.Equal(y.Since) && x.Used == y.Used &&
			x.Cordoned == y.Cordoned && x.Hooks == y.Hooks && x.Session == y.Session && x.Because == y.Because
	})
}

type maintenanceDecision struct {
	now  time.Time
	see  maintenanceSight
	run  *store.Maintenance
	step maintenanceStep
}

func (d *maintenanceDecision) active() bool  { return d.run.Active(d.now) }
func (d *maintenanceDecision) aborted() bool { return d.run.Wish == store.AbortPlan }

// stop stops the run; the first reason counts.
func (d *maintenanceDecision) stop(format string, args ...any) {
	if d.run.Stopped == "" && !d.aborted() {
		d.run.Stopped = fmt.Sprintf(format, args...)
	}
}

// resume takes in that an operator lets a run go on that has stopped: every time limit begins anew.
func (d *maintenanceDecision) resume() {
	if d.run.Resumes <= d.run.Resumed {
		return
	}
	d.run.Resumed, d.run.Stopped = d.run.Resumes, ""
	for i := range d.run.Hosts {
		h := &d.run.Hosts[i]
		if h.Phase.Settled() {
			continue
		}
		h.Since, h.Used, h.Cordoned = d.now, 0, false
		if a := d.run.Answer(h); h.Phase == store.ServiceHook && a.Again && a.State != store.HookDone {
			h.Hooks++ // the answer is about the call before
		}
	}
}

// edge lets the run be looked at when a window begins or ends.
func (d *maintenanceDecision) edge() {
	for _, w := range d.run.Windows {
		for _, at := range [...]time.Time{w.Begin, w.End} {
			if at.After(d.now) {
				d.step.Again = workqueue.Earliest(d.step.Again, at)
			}
		}
	}
}

// batch decides about the present batch, and reports whether the next one is to be looked at.
func (d *maintenanceDecision) batch() (next bool) {
	if d.run.Batch >= len(d.run.Batches) {
		return d.home()
	}
	b := &d.run.Batches[d.run.Batch]
	if len(b.Hosts) > 0 && d.run.Host(b.Hosts[0]) == nil {
		if d.aborted() {
			d.run.Ended = d.now
			return false
		}
		if !d.begin(b) {
			return false
		}
	}
	through := d.emptied(b)
	for i := range d.run.Hosts {
		if h := &d.run.Hosts[i]; slices.Contains(b.Hosts, h.Name) {
			through = d.host(h) && through
		}
	}
	if through = through && d.returned(b); !through {
		return false
	}
	if d.aborted() {
		d.run.Ended = d.now
		return false
	}
	d.run.Batch, d.run.Homing = d.run.Batch+1, false
	return true
}

// begin begins a batch, if its window is long enough.
func (d *maintenanceDecision) begin(b *store.MaintenanceBatch) bool {
	for _, name := range b.Hosts {
		if !d.see.Host(name).Known {
			d.stop("there is no host %s", name)
		}
	}
	if !d.fits(b.Needs) || !d.active() {
		return false
	}
	for _, name := range b.Hosts {
		h := store.ServicedHost{Name: name, Phase: store.ServiceDraining, Since: d.now}
		if d.run.Return {
			h.Guests = d.see.Host(name).VMs
		}
		d.run.Hosts = append(d.run.Hosts, h)
	}
	return true
}

// fits reports whether a batch may begin now that needs so long, and stops the run when no window that
// is left is as long.
func (d *maintenanceDecision) fits(needs time.Duration) bool {
	if len(d.run.Windows) == 0 {
		return true
	}
	if w, within := d.run.Window(d.now); within && w.End.Sub(d.now) >= needs {
		return true
	}
	for _, w := range d.run.Windows {
		if w.Begin.After(d.now) && w.End.Sub(w.Begin) >= needs {
			return false
		}
	}
	d.stop("batch %d needs %v, and no window that is left is as long", d.run.Batch+1, needs.Round(time.Second))
	return false
}

// emptied carries out the moves of a batch, and reports whether that is through.
func (d *maintenanceDecision) emptied(b *store.MaintenanceBatch) bool {
	if len(b.Moves) == 0 {
		return true
	}
	for _, name := range b.Hosts {
		if !d.see.Host(name).Cordoned && d.see.Plan(d.run.PlanName(d.run.Batch, false)) == nil && !d.aborted() {
			return false // first all of them are cordoned
		}
	}
	p := store.Plan{Name: d.run.PlanName(d.run.Batch, false), Hosts: b.Hosts, Strict: d.run.Strict, Moves: b.Moves}
	return d.carry(&p)
}

// carry has a plan of the run carried out, and reports whether it has ended. One that was not requested
// is not when the run is aborted.
func (d *maintenanceDecision) carry(p *store.Plan) (ended bool) {
	stored := d.see.Plan(p.Name)
	switch {
	case stored != nil && !stored.Ended.IsZero():
		return true
	case stored != nil:
		want := store.PausePlan
		if d.aborted() {
			want = store.AbortPlan
		} else if d.active() {
			want = store.RunPlan
		}
		if stored.Wish != want && stored.Wish != store.AbortPlan {
			next := *stored
			next.Wish = want
			d.step.Plans = append(d.step.Plans, next)
		}
		return false
	case d.aborted():
		return true
	case d.active():
		p.Created, p.By = d.now, "maintenance "+d.run.Name
		d.step.Plans = append(d.step.Plans, *p)
	}
	return false
}

// returned takes VMs back to the hosts that they were on, and reports whether that is through.
func (d *maintenanceDecision) returned(b *store.MaintenanceBatch) bool {
	if !d.run.Return || d.aborted() {
		return d.ended(d.run.PlanName(d.run.Batch, true))
	}
	name := d.run.PlanName(d.run.Batch, true)
	p := store.Plan{Name: name}
	if d.see.Plan(name) == nil {
		for i := range d.run.Hosts {
			if h := &d.run.Hosts[i]; slices.Contains(b.Hosts, h.Name) {
				p.Moves = append(p.Moves, d.back(h)...)
			}
		}
		if len(p.Moves) == 0 && !d.run.Homing {
			return true
		}
	}
	d.run.Homing = true
	return d.carry(&p)
}

// back lists the moves that take VMs back to a host.
func (d *maintenanceDecision) back(h *store.ServicedHost) (moves []store.PlannedMove) {
	for _, vm := range h.Guests {
		if on := d.see.Where(vm); on != "" && on != h.Name {
			moves = append(moves, store.PlannedMove{VM: vm, Source: on, Target: h.Name})
		}
	}
	return moves
}

// ended aborts a plan that has not ended, if there is one, and reports whether it has.
func (d *maintenanceDecision) ended(name string) bool {
	p := d.see.Plan(name)
	return p == nil || d.carry(&store.Plan{Name: name})
}

// home carries out the moves after all batches.
func (d *maintenanceDecision) home() bool {
	name := d.run.PlanName(len(d.run.Batches), true)
	if d.aborted() && !d.ended(name) {
		return false
	}
	if len(d.run.Home) > 0 && !d.aborted() {
		d.run.Homing = true
		if !d.carry(&store.Plan{Name: name, Strict: d.run.Strict, Moves: d.run.Home}) {
			return false
		}
	}
	d.run.Ended = d.now
	return false
}

// host decides about one host of the present batch, and reports whether it is through.
func (d *maintenanceDecision) host(h *store.ServicedHost) bool {
	s := d.see.Host(h.Name)
	d.limits(h)
	switch {
	case h.Phase.Settled():
	case d.aborted():
		d.abort(h, &s)
	case h.Phase == store.ServiceDraining:
		d.draining(h, &s)
	case h.Phase == store.ServiceHook:
		d.hook(h, &s)
	}
	if h.Phase == store.ServiceCheck && !d.aborted() {
		d.check(h, &s)
	}
	return d.order(h, &s) && h.Phase.Settled()
}

// limits keeps the time for which a host is drained: only that counts in which it may be.
func (d *maintenanceDecision) limits(h *store.ServicedHost) {
	switch active := d.active(); {
	case h.Phase != store.ServiceDraining:
	case active && h.Since.IsZero():
		h.Since = d.now
	case !active && !h.Since.IsZero():
		h.Used, h.Since = h.Used+d.now.Sub(h.Since), time.Time{}
	}
}

// late reports whether a host is in its phase for longer than allowed, and lets it be looked at then.
func (d *maintenanceDecision) late(since time.Time, used, limit time.Duration) bool {
	if limit <= 0 || since.IsZero() {
		return false
	}
	at := since.Add(limit - used)
	if at.After(d.now) {
		d.step.Again = workqueue.Earliest(d.step.Again, at)
		return false
	}
	return true
}

func (d *maintenanceDecision) enter(h *store.ServicedHost, phase store.ServicePhase, why string) {
	h.Phase, h.Since, h.Used, h.Because = phase, d.now, 0, why
}

// uncordoned stops the run when an operator has uncordoned a host that is not through.
func (d *maintenanceDecision) uncordoned(h *store.ServicedHost, s *serviceSight) bool {
	if s.Cordoned {
		h.Cordoned = true
		return false
	}
	if h.Cordoned {
		d.stop("%s was uncordoned by an operator", h.Name)
	}
	return true
}

// draining decides about a host that is being emptied.
func (d *maintenanceDecision) draining(h *store.ServicedHost, s *serviceSight) {
	switch left := len(s.VMs); {
	case d.uncordoned(h, s): // it may get further VMs
		h.Because = ""
	case left == 0 && s.Incoming == 0:
		d.enter(h, store.ServiceHook, "its hook is called for")
		h.Hooks, h.Session = h.Hooks+1, s.Session
	default:
		h.Because = "has " + listed(s.VMs)
		if left == 0 {
			h.Because = "a migration to it has not ended"
		}
		d.stuck(h, s)
	}
}

// stuck stops the run when a host does not become empty.
func (d *maintenanceDecision) stuck(h *store.ServicedHost, s *serviceSight) {
	switch {
	case s.Drains && len(s.VMs) > 0 && len(s.Fixed) == len(s.VMs):
		d.stop("%s cannot be emptied: %s cannot be migrated", h.Name, listed(s.VMs))
	case !d.drains(h, s) && d.moved() && len(s.VMs) > 0:
		d.stop("%s is not empty after the moves of plan %s, and the run is strict: it has %s", h.Name,
			d.run.PlanName(d.run.Batch, false), listed(s.VMs))
	case d.active() && d.late(h.Since, h.Used, d.run.DrainWithin):
		d.stop("%s is not empty after %v: it has %s", h.Name, d.run.DrainWithin, listed(s.VMs))
	}
}

// listed names VMs, but not too many.
func listed(vms []hypervisor.VMID) string {
	const most = 5
	words := make([]string, 0, most)
	for _, vm := range vms[:min(most, len(vms))] {
		words = append(words, string(vm))
	}
	text := strings.Join(words, ", ")
	if more := len(vms) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// moved reports whether the moves of the present batch are through.
func (d *maintenanceDecision) moved() bool {
	if len(d.run.Batches[d.run.Batch].Moves) == 0 {
		return true
	}
	p := d.see.Plan(d.run.PlanName(d.run.Batch, false))
	return p != nil && !p.Ended.IsZero()
}

// drains reports whether a host is to be drained, once the moves are through.
func (d *maintenanceDecision) drains(h *store.ServicedHost, s *serviceSight) bool {
	if h.Phase != store.ServiceDraining || !d.moved() {
		return false
	}
	return !d.run.Strict || !slices.ContainsFunc(s.VMs, func(vm hypervisor.VMID) bool {
		return !slices.Contains(d.run.Others, vm)
	})
}

// hook decides about a host whose hook was called for.
func (d *maintenanceDecision) hook(h *store.ServicedHost, s *serviceSight) {
	switch a := d.run.Answer(h); {
	case a.State == store.HookDone:
		d.enter(h, store.ServiceCheck, "")
		h.Session = a.Session
	case a.State == store.HookFailed:
		h.Because = "its hook failed: " + a.Why
		d.stop("the hook of %s failed: %s", h.Name, a.Why)
	case a.State == store.HookBegan:
		h.Because = "its hook runs, by " + a.By
		d.uncordoned(h, s)
		if d.late(a.Began, 0, d.run.HookWithin) && d.late(h.Since, 0, d.run.HookWithin) {
			d.stop("the hook of %s has not ended after %v, by %s", h.Name, d.run.HookWithin, a.By)
		}
	case d.uncordoned(h, s):
	case len(s.VMs) > 0 || s.Incoming > 0: // it was forced onto the host
		d.enter(h, store.ServiceDraining, "")
	}
}

// check decides about a host whose hook has ended.
func (d *maintenanceDecision) check(h *store.ServicedHost, s *serviceSight) {
	d.uncordoned(h, s) // it may take VMs before it has passed
	why := d.unfit(h, s)
	if h.Because = why; why == "" {
		d.enter(h, store.ServiceDone, "")
		return
	}
	if d.late(h.Since, 0, d.run.BackWithin) {
		d.stop("%s has not passed its check after %v: %s", h.Name, d.run.BackWithin, why)
	}
}

// unfit returns why a host may not take VMs yet; "" is that it may.
func (d *maintenanceDecision) unfit(h *store.ServicedHost, s *serviceSight) string {
	a := d.run.Answer(h)
	switch {
	case !s.Known:
		return "there is no such host"
	case !d.run.SameStart && s.Session == "":
		return "it is not known when its agent started"
	case !d.run.SameStart && s.Session == h.Session:
		return "its agent has not started anew"
	case s.Unwell != "":
		return s.Unwell
	case !strings.HasPrefix(s.Software, d.run.Software):
		return fmt.Sprintf("it runs %q, and should run %q", s.Software, d.run.Software)
	case d.run.Checked && !a.Passed && a.Why != "":
		return "the check command says: " + a.Why
	case d.run.Checked && !a.Passed:
		return "the check command has not passed"
	}
	return ""
}

// abort settles a host of a run that was aborted. One whose hook has begun, or ended, may be anything:
// it stays cordoned unless it passes the check now.
func (d *maintenanceDecision) abort(h *store.ServicedHost, s *serviceSight) {
	served := h.Phase == store.ServiceCheck
	if h.Phase == store.ServiceHook {
		a := d.run.Answer(h)
		if served = a.State != store.HookWaits; a.State == store.HookDone {
			h.Session = a.Session
		} else if served {
			d.enter(h, store.ServiceLeft, "the run was aborted after its hook had begun")
			return
		}
	}
	switch why := d.unfit(h, s); {
	case !served:
		d.enter(h, store.ServiceSkipped, "the run was aborted")
	case why == "":
		d.enter(h, store.ServiceDone, "")
	default:
		d.enter(h, store.ServiceLeft, "the run was aborted before it passed its check: "+why)
	}
}

// order asks for what has to be changed about a host, and reports whether nothing has.
func (d *maintenanceDecision) order(h *store.ServicedHost, s *serviceSight) bool {
	if !s.Known {
		return true
	}
	o := hostOrder{Host: h.Name}
	mine := s.Drains && s.DrainedFor == d.run.Name
	switch h.Phase {
	case store.ServiceDone, store.ServiceSkipped:
		o.Uncordon = s.For == d.run.Name && s.Cordoned
	case store.ServiceDraining, store.ServiceHook:
		o.Cordon = !s.Cordoned && !h.Cordoned
	}
	want := d.drains(h, s) && d.active() && s.Cordoned
	o.Drain, o.Undrain = want && !s.Drains, mine && !want
	if o == (hostOrder{Host: h.Name}) {
		return true
	}
	d.step.Orders = append(d.step.Orders, o)
	return false
}
