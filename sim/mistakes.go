package sim

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/store"
)

// What people do wrong. All but Dead needs [Config.Claims], and does nothing without.
type (
	// SecondAgent starts a second agent with the name of a host, on another machine, for a while.
	// One that ends is started again every half a minute, as a supervisor does.
	SecondAgent struct {
		Host   hypervisor.HostName
		Copied bool          // its directory is a copy of the other's; else it is new
		For    time.Duration // zero is for ever
	}
	// EmptyDirectory lets the agent of a host restart with an empty directory, and after For with
	// the right one. Zero is never. What runs runs on.
	EmptyDirectory struct {
		Host hypervisor.HostName
		For  time.Duration
	}
	// Adopt is an operator's confirmation that a host's name belongs to the agent that was refused it last.
	// It is not taken while the agent that has the name is heard. The operator looks, and gives the
	// name to no other machine: what runs on the host would run on that one, too.
	Adopt struct{ Host hypervisor.HostName }
	// Dead is an operator's confirmation that a host is off, which is wrong while it has power. It is not
	// taken while its agent is heard.
	Dead struct{ Host hypervisor.HostName }
)

var errNoClaims = errors.New("the agents of this world claim no names: see Config.Claims")

// again is how long a process is dead that was refused its host's name.
const again = 30 * time.Second

// name is that of the host for which an agent acts.
func (p *participant) name() hypervisor.HostName {
	if p.as != "" {
		return p.as
	}
	return p.host
}

// session names the present start of a process.
func (p *participant) session() string { return fmt.Sprintf("%s %d", p.host, p.count) }

// identity is that of an agent: its directory, and its machine.
func (p *participant) identity() store.Identity {
	i := store.Identity{ID: string(p.host), Machine: string(p.host)}
	switch {
	case p.empty:
		i.ID = "empty " + i.ID
	case p.copy:
		i.ID = string(p.as)
	}
	return i
}

// claimFor returns the claim of one more start of a process.
func (w *World) claimFor(p *participant, s store.Store) *store.LeaseClaim {
	p.count++
	claim, err := store.NewLeaseClaim(s, store.Tenancy{Host: p.name(), Identity: p.identity(),
		Boot: fmt.Sprintf("%s %d", p.host, p.boots), Session: p.session(), Lock: string(p.host)})
	if err != nil {
		panic("sim: the configuration is checked, and wrong: " + err.Error())
	}
	return claim
}

// refusedName ends a process that was refused its host's name, and reports whether it was. One that
// has the name is heard.
func (w *World) refusedName(p *participant, err error) bool {
	_, two := errors.AsType[*store.IdentityError](err)
	foreign, is := errors.AsType[*store.ForeignError](err)
	switch {
	case is:
		w.say(p.host, "", "agent is refused its host's name: "+foreign.Why)
	case two:
		w.say(p.host, "", "agent is refused its host's name: another one has it")
	default:
		if p.claim.Holds() {
			w.heard(p)
		}
		return false
	}
	w.kill(p)
	if h := w.HostRecord(p.host); h != nil && !h.NotReady {
		w.watchLease(p)
	}
	if !p.ended {
		w.backAt(p, w.now.Add(again))
	}
	return true
}

func (e SecondAgent) happen(w *World) {
	h := w.HostRecord(e.Host)
	switch {
	case h == nil:
		w.noHost(e.Host)
		return
	case !w.config.Claims:
		w.tried(errNoClaims)
		return
	}
	w.fault(e.Host, "a second agent is started with its name")
	machine := e.Host + "'"
	p := w.people[machine]
	if p == nil || p.phone.Real == nil {
		host := h.Host
		host.Name = machine
		real, err := w.network.AddHost(host)
		if err != nil {
			w.tried(err)
			return
		}
		p = &participant{host: machine, as: e.Host, real: real}
		p.line.Real, p.alarm.Of = w.store, p
		p.phone.Real, p.phone.Store = real, &p.line
		w.people[machine] = p
		w.network.Know(machine, p)
	}
	if p.brain != nil {
		w.kill(p)
	}
	if p.copy, p.ended = e.Copied, false; p.copy {
		p.pages[0] = maps.Clone(w.people[e.Host].pages[0])
	}
	w.spawn(p)
	if e.For > 0 {
		w.later(e.For, func(w *World) {
			w.say(e.Host, "", "its second agent is stopped")
			w.kill(p)
			p.ended = true
		})
	}
}

func (e EmptyDirectory) happen(w *World) {
	p := w.machine(e.Host)
	switch {
	case p == nil || w.down(e.Host):
		return
	case !w.config.Claims:
		w.tried(errNoClaims)
		return
	}
	w.fault(e.Host, "its agent restarts with an empty directory")
	w.restartWith(p, true)
	if e.For > 0 {
		w.later(e.For, func(w *World) {
			if p.empty {
				w.say(e.Host, "", "its agent has the right directory again")
				w.restartWith(p, false)
			}
		})
	}
}

// restartWith starts the agent of a host again, with an empty directory or with its own.
func (w *World) restartWith(p *participant, empty bool) {
	number := 0
	if p.empty = empty; empty {
		number, p.pages[1] = 1, nil
	}
	w.tried(w.network.Directory(p.host, number))
	if !w.down(p.host) {
		w.kill(p)
		w.spawn(p)
	}
}

// Source: internal/client (Desk.Adopt).
func (e Adopt) happen(w *World) {
	h := w.HostRecord(e.Host)
	switch {
	case h == nil:
		w.noHost(e.Host)
	case h.Refused == nil:
		w.say(e.Host, "", "adopt: no agent was refused its name")
	case h.Refused.Identity.Machine != string(e.Host):
		w.say(e.Host, "", "adopt: the agent that was refused is on another machine")
	case !h.NotReady:
		w.say(e.Host, "", "adopt: the word is not taken: its agent is heard")
	default:
		w.say(e.Host, "", "adopted: "+h.Refused.Identity.String())
		w.changeHost(e.Host, func(h *store.Host) {
			h.Adopt, h.Refused = &store.Adoption{ID: h.Refused.Identity.ID, By: "an operator"}, nil
		})
	}
}

// Source: internal/client (Desk.Dead).
func (e Dead) happen(w *World) {
	h := w.HostRecord(e.Host)
	switch {
	case h == nil:
		w.noHost(e.Host)
	case h.Fenced:
	case !h.NotReady:
		w.say(e.Host, "", "confirm-down is refused: its agent sends heartbeats")
	default:
		w.fault(e.Host, "an operator says that it is off")
		w.changeHost(e.Host, func(h *store.Host) {
			if h.ConfirmedDownBy = "eve"; w.config.Beside == nil {
				h.Fenced = true
				h.Fencing = &store.Fencing{Asked: w.now, By: store.OperatorBy + h.ConfirmedDownBy}
			}
		})
	}
}

// orphan is a copy of a VM that ran on when the word that its host is off was found to be wrong.
type orphan struct {
	vm   hypervisor.VMID
	host hypervisor.HostName
}

// word takes in what operators say of a host, and that it was found to be wrong.
func (x *watch) word(h *store.Host) {
	name := h.Host.Name
	if !h.Fenced || !h.ByOperator() {
		delete(x.words, name)
		return
	}
	if h.Refuted() == "" {
		x.words[name] = true
		return
	}
	if !x.words[name] {
		return
	}
	delete(x.words, name)
	for _, vm := range x.VMs() {
		for _, c := range x.w.network.Copies(vm) {
			if c.Host == name && (c.State.Executes() || handing(c.State)) && x.counted(vm, name) {
				x.orphans[orphan{vm, name}] = true
			}
		}
	}
}

// counted reports whether something has followed for a VM from the word that a host is off.
func (x *watch) counted(vm hypervisor.VMID, host hypervisor.HostName) bool {
	for _, t := range x.Of(vm) {
		if t.Last.Dead(host) {
			return true
		}
	}
	v := x.w.VM(vm)
	return v != nil && v.Host != host
}

// reap forgets the copies of a VM that run no more: should one run again, it was started.
func (x *watch) reap(vm hypervisor.VMID) {
	for o := range x.orphans {
		runs := false
		for _, c := range x.w.network.Copies(vm) {
			runs = runs || c.Host == o.host &&
				(c.State.Executes() || c.State == hypervisor.Paused || handing(c.State))
		}
		if o.vm == vm && !runs {
			delete(x.orphans, o)
		}
	}
}

// believe lets be dead what an operator has said to be dead.
func (s *invariantView) believe(vm hypervisor.VMID) {
	if len(s.watch.words)+len(s.watch.orphans) == 0 {
		return
	}
	for i := range s.copies {
		switch c := &s.copies[i]; {
		case !s.Disowned(vm, c.Host) && !s.givenUp(vm, *c) || c.State.Rests():
		case c.State == hypervisor.Receiving || c.State == hypervisor.Received:
			c.State = hypervisor.Absent
		default:
			c.State = hypervisor.Crashed
		}
	}
}

// givenUp reports whether a copy stood between two hosts when the word that its host is off was found
// to be wrong, and its migration had been decided by that word: its agent gives it up, and never
// resumes it. Until then nothing is wrong with a migration that has failed meanwhile.
// Source: agent (Agent.closeUp).
func (s *invariantView) givenUp(vm hypervisor.VMID, c fake.Copy) bool {
	return handing(c.State) && s.watch.orphans[orphan{vm, c.Host}]
}

// handing reports whether a copy has stopped to be handed over, and is all that there is of it here.
func handing(s hypervisor.DomainState) bool {
	return s == hypervisor.HandingOver || s == hypervisor.HandedOver
}

// Disowned implements [InvariantWorld].
func (s *invariantView) Disowned(vm hypervisor.VMID, host hypervisor.HostName) bool {
	if s.watch.words[host] && !s.watch.powerless[host] {
		return true
	}
	if !s.watch.orphans[orphan{vm, host}] {
		return false
	}
	v := s.VM(vm)
	return v == nil || v.Host != host
}

// Down implements [InvariantWorld].
func (s *invariantView) Down(host hypervisor.HostName) bool {
	return s.down(host) || s.watch.words[host]
}
