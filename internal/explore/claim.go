package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/workqueue"
	"github.com/godwit-vm/godwit/store"
)

// beats is how often a lease is renewed. It is so long that it makes no steps: a lease matters
// when a process starts.
const beats = time.Hour

// Claimant is an agent that claims its host's name, as a process of its own does. That it acts
// for no host while it does not have the name is the agent's own affair.
type Claimant struct {
	Agent *agent.Agent
	Claim *store.LeaseClaim
	ended bool // it was refused the name
}

// Reconcile lets both look.
func (c *Claimant) Reconcile(ctx context.Context, now time.Time) (time.Time, error) {
	wake, err := c.Claim.Reconcile(ctx, now)
	_, two := errors.AsType[*store.IdentityError](err)
	_, foreign := errors.AsType[*store.ForeignError](err)
	c.ended = two || foreign
	next, wrong := c.Agent.Reconcile(ctx, now)
	return workqueue.Earliest(wake, next), errors.Join(err, wrong)
}

// agentIn returns the agent in a process; nil is none.
func agentIn(r Reconciler) *agent.Agent {
	switch r := r.(type) {
	case *agent.Agent:
		return r
	case *Claimant:
		return r.Agent
	}
	return nil
}

// second reports whether a process's machine claims the name of another.
func (w *World) second(p int) bool { return p > 0 && w.Scene.Hosts[p-1].As != "" }

// identity is that of a process.
func (w *World) identity(p int) store.Identity {
	i := store.Identity{ID: string(w.machine(p)), Machine: string(w.machine(p))}
	switch {
	case w.Empty>>p&1 == 1:
		i.ID = "empty " + i.ID
	case w.second(p) && w.Scene.Hosts[p-1].Copied:
		i.ID = string(w.hostOf(p))
	}
	return i
}

// claimant makes an agent that has yet to claim its host's name.
func (w *World) claimant(p int) *Claimant {
	proc, config := &w.Procs[p], w.agentConfig(p)
	config.Session = fmt.Sprintf("%s %d", w.machine(p), proc.starts)
	claim, err := store.NewLeaseClaim(w.lines[p], store.Tenancy{Host: w.hostOf(p),
		Identity: w.identity(p), Boot: fmt.Sprintf("%s %d", w.machine(p), proc.boots),
		Session: config.Session, Lock: string(w.machine(p)), HeartbeatInterval: beats, LeaseDuration: 2 * beats})
	must(err)
	return &Claimant{Agent: agent.New(w.hostOf(p), config, w.phones[p], w.lines[p], w),
		Claim: claim}
}

// claimed lets a process of the beginning claim its host's name.
func (w *World) claimed(p int) {
	if c, ok := w.Procs[p].Brain.(*Claimant); ok {
		_, err := c.Claim.Reconcile(w.ctx, w.Now)
		must(err)
	}
}

// claims takes in what has become of a process's claim: one that has the name is heard, and one
// that was refused it ends.
func (w *World) claims(p int) {
	c, ok := w.Procs[p].Brain.(*Claimant)
	switch {
	case !ok || w.History.Doubt != nil:
	case c.ended:
		w.kill(p)
		w.Procs[p].Gone = true
	case c.Claim.Holds():
		w.heard(p)
	}
}

// lapse gives the lease of a host back whose machine starts anew: that takes longer than a lease lasts.
func (w *World) lapse(p int) {
	if l := w.lease(p); l != nil {
		next := *l
		next.Session = ""
		w.put(&next)
	}
}

// lease returns that of a process's host; nil is none.
func (w *World) lease(p int) *store.Lease {
	r, _ := w.Store.Get(w.ctx, (&store.Lease{Owner: store.HostLease(w.hostOf(p))}).Key())
	l, _ := r.(*store.Lease)
	return l
}

// err is a mistake that people make, or mend.
func (w *World) err(s Step) {
	p := int(s.A)
	switch s.Op {
	case Word:
		w.change(p, func(h *store.Host) {
			h.ConfirmedDownBy, h.Fenced, h.NotReady = "eve", true, true
			h.Fencing = &store.Fencing{Asked: w.Now, By: store.OperatorBy + h.ConfirmedDownBy}
		})
	case Empty, Return:
		w.kill(p)
		w.touch(theFabric)
		w.Empty ^= 1 << p
		must(w.Network.Directory(w.machine(p), int(w.Empty>>p&1)))
	case Adopt:
		w.change(p, func(h *store.Host) {
			h.Adopt, h.Refused = &store.Adoption{ID: w.identity(p).ID, By: "alice"}, nil
		})
		w.spawn(p)
	case Lapse:
		w.lapse(p)
	case SetBack:
		w.setBack()
	}
}

// adoption returns what operators do next about an agent that was refused its own host's name; it
// is false when there is none.
func (w *World) adoption() (s Step, ok bool) {
	for p := 1; p < len(w.lines) && w.Scene.Claims && w.History.Doubt == nil; p++ {
		if !w.Procs[p].Gone || w.second(p) {
			continue
		}
		for _, op := range [...]Op{Lost, Adopt} {
			if s := (Step{Op: op, A: uint8(p)}); w.enabled(s) {
				return s, true
			}
		}
	}
	return Step{}, false
}

// mayErr reports whether a step of that kind is possible. The word of an operator is taken when
// the agent is silent, and the name given to another agent when the one that has it is.
// Source: internal/client (Desk.Dead, Desk.Adopt).
func (w *World) mayErr(s Step) bool {
	if s.Op == SetBack {
		return w.Scene.Backup && !w.Back && (w.Scene.Marks || !w.rebuilt())
	}
	p := &w.Procs[s.A]
	if s.A == 0 || w.second(int(s.A)) {
		return false
	}
	silent, h := p.Brain == nil || p.Hung, w.record(s.A)
	switch s.Op {
	case Word:
		return silent && !p.Off && h.Fencing == nil && !h.Fenced
	case Empty:
		return w.Scene.Claims && w.Empty>>s.A&1 == 0 && !p.Off
	case Return:
		return w.Empty>>s.A&1 == 1
	case Lapse:
		l := w.lease(int(s.A))
		return silent && l != nil && l.Session != ""
	}
	return p.Gone && h.NotReady && h.Refused != nil && h.Refused.Identity == w.identity(int(s.A))
}

// believed reports whether a host counts as off because of an operator's word, and nothing has
// spoken against it yet.
func (w *World) believed(p int) bool {
	h := w.record(uint8(p))
	return h.Fenced && h.ByOperator() && h.Refuted() == ""
}

// refuted takes in that a host lives that is off by an operator's word: what runs there is not
// what godwit has started since.
// Source: controller (Judge, lives-though-fenced).
func (w *World) refuted(p int) {
	w.change(p, func(h *store.Host) {
		fencing := *h.Fencing
		fencing.Error = "the same start of the machine sends heartbeats"
		h.Fencing, h.Told = &fencing, ""
	})
	for v := range w.Scene.VMs {
		for _, c := range w.real(w.Scene.VMs[v].Name) {
			if c.Host == w.machine(p) && (c.State.Executes() || handing(c.State)) && w.counted(p, v) {
				w.Orphans[p] |= 1 << v
			}
		}
	}
}

// handing reports whether a copy has stopped to be handed over, and is all that there is of it here.
func handing(s hypervisor.DomainState) bool {
	return s == hypervisor.HandingOver || s == hypervisor.HandedOver
}

// counted reports whether something has followed for a VM from the word that its host is off.
func (w *World) counted(p, v int) bool {
	vm := w.Scene.VMs[v].Name
	return w.VM(vm).Host != w.hostOf(p) || slices.ContainsFunc(w.Migrations(vm),
		func(m *store.Migration) bool { return m.Dead(w.hostOf(p)) })
}

// claiming reports whether a process has yet to hear whether it has its host's name.
func (w *World) claiming(p int) bool {
	c, ok := w.Procs[p].Brain.(*Claimant)
	return ok && !c.Claim.Holds()
}
