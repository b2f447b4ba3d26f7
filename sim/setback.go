package sim

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/recovery"
	"github.com/godwit-vm/godwit/store"
)

// What becomes of the store, where [Config.Marks] is set; else they do nothing.
type (
	// Backup makes a copy of the store.
	Backup struct{}
	// SetBack restores the last copy. All processes are stopped for that, and start a second later.
	// The first that has seen a newer store says so, and from then on no participant acts until the store is
	// reconciled. Without that, what should be at rest is not asked any more.
	SetBack struct {
		Forgotten bool // on another machine: the controller remembers nothing of the store
	}
	// Reconcile lets an operator ask all hosts what they have, and write that to a store that is not
	// believed. It is asked again every few minutes while there is something that only an operator can
	// decide: none of these guesses.
	Reconcile struct{}
)

var (
	errNoMarks  = errors.New("the processes of this world remember nothing of the store: see Config.Marks")
	errNoBackup = errors.New("there is no backup")
	errDead     = errors.New("the process is dead")
)

// past is what is known of the past of the store.
type past struct {
	history  store.History
	backup   []store.Record
	saved    store.Revision // the last one when that was made
	back     bool           // the store was set back
	unmarked bool           // the controller remembers nothing of it
	muted    bool           // what is written is no decision
}

// cluster is the id of the only one.
const cluster = "c"

func (e Backup) happen(w *World) {
	if !w.config.Marks {
		w.tried(errNoMarks)
		return
	}
	c, _ := w.store.Changes(w.ctx, store.Everything, 0) // memory does not fail
	w.past.backup, w.past.saved = c.Records, c.Next
	w.say("", "", "a backup of the store is made")
}

func (e SetBack) happen(w *World) {
	switch {
	case !w.config.Marks:
		w.tried(errNoMarks)
		return
	case w.past.backup == nil:
		w.tried(errNoBackup)
		return
	}
	w.fault("", "the store is set back")
	lost := store.Jump{After: w.past.saved, Before: w.restore() + 1}
	w.past.history.Jumps, w.past.back = append(w.past.history.Jumps, lost), true
	if e.Forgotten {
		w.past.unmarked = true
		w.people[""].mark = store.Mark{}
	}
	for _, p := range w.living() {
		w.kill(p)
		w.wakes.Set(&p.alarm, w.now.Add(time.Second))
		p.reborn = true
	}
}

// living lists the processes that live, by name.
func (w *World) living() []*participant {
	all := maps.Clone(w.people)
	var list []*participant
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name].brain != nil {
			list = append(list, all[name])
		}
	}
	return list
}

// restore lets the store say what it said when the backup was made, and answers the last revision of
// before.
func (w *World) restore() store.Revision {
	w.past.muted = true
	defer func() { w.past.muted = false }()
	c, _ := w.store.Changes(w.ctx, store.Everything, 0)
	kept := map[store.Key]bool{}
	for _, r := range w.past.backup {
		kept[r.Key()] = true
		version := store.Version(0)
		if now, _ := w.store.Get(w.ctx, r.Key()); now != nil {
			version = now.RecordVersion()
		}
		w.put(r.WithVersion(version))
	}
	for _, r := range c.Records {
		if !kept[r.Key()] {
			w.tried(w.store.Delete(w.ctx, r))
		}
	}
	return c.Next
}

// refuse answers why a process refuses the store, which ends it, and all others; nil is that it does
// not.
func (w *World) refuse(p *participant) error {
	why := w.past.history.Judge(p.mark, "", math.MaxInt64)
	if why == nil {
		if epoch := w.past.history.Epoch; p.mark.Epoch < epoch {
			p.mark = store.Mark{Cluster: cluster, Epoch: epoch}
		}
		return nil
	}
	if w.past.history.Doubt == nil {
		w.past.history.Doubt = &store.Doubt{By: string(p.host), Why: why.Err.Error()}
		w.say(p.host, "", "does not believe the store: "+why.Err.Error())
	}
	w.later(0, func(w *World) {
		for _, q := range w.living() {
			w.kill(q)
		}
	})
	return why
}

// triesToReconcile is how often an operator asks, every triesEvery.
const (
	triesToReconcile = 12
	triesEvery       = 5 * time.Minute
)

func (e Reconcile) happen(w *World) { w.reconcile(1) }

// reconcile lets an operator ask for the given time.
func (w *World) reconcile(try int) {
	switch {
	case !w.config.Marks:
		w.tried(errNoMarks)
		return
	case w.past.history.Doubt == nil:
		w.say("", "", "reconcile: the store is believed")
		return
	}
	in, why := w.accounts()
	plan := recovery.Plan(in)
	if bad := plan.Conflicts(); len(bad) > 0 && why == "" {
		why = string(bad[0].VM) + ": " + bad[0].Conflict
	}
	if why != "" {
		w.say("", "", "reconcile: nothing is written: "+why)
		if try < triesToReconcile {
			w.later(triesEvery, func(w *World) { w.reconcile(try + 1) })
		}
		return
	}
	w.past.muted = true
	w.tried(plan.Apply(w.ctx, w.store, in))
	w.past.muted = false
	w.past.history = w.past.history.Raised("alice", nil, "", w.now)
	w.past.back, w.past.unmarked = false, false
	w.say("", "", "the store is reconciled")
	for _, name := range slices.Sorted(maps.Keys(w.people)) {
		if p := w.people[name]; p.brain == nil && !p.reborn && !p.ended && (name == "" || !w.down(name)) {
			w.wakes.Set(&p.alarm, w.now.Add(time.Second))
			p.reborn = true
		}
		if h := w.HostRecord(name); h != nil && h.Fenced && !w.down(name) {
			w.unfence(name)
		}
	}
}

// accounts is what an operator knows who has asked all hosts; why is what keeps a host from telling.
func (w *World) accounts() (in recovery.Input, why string) {
	in.Epoch, in.Now = w.past.history.Epoch, w.now
	c, _ := w.store.Changes(w.ctx, store.Everything, 0) // memory does not fail
	for _, r := range c.Records {
		if r.Key().Kind != store.HostKind { // hosts tell below
			in.Add(r)
		}
	}
	for _, name := range w.order {
		h := *w.HostRecord(name)
		switch p := w.people[name]; {
		case w.down(name):
			in.Without = append(in.Without, name)
		case p.empty:
			why = string(name) + " has an empty directory"
		default:
			vms, err := p.holdings(w.ctx)
			if err != nil {
				why = string(name) + ": " + err.Error()
			}
			h.Account = &store.HostInventory{At: w.now, VMs: vms}
		}
		in.Hosts = append(in.Hosts, &h)
	}
	return in, why
}

// holdings is what the agent of a host says that it has.
// Source: internal/daemon (Agent.holdings).
func (p *participant) holdings(ctx context.Context) ([]store.Holding, error) {
	domains, err := p.real.Domains(ctx)
	all := maps.Clone(p.pages[0])
	if all == nil {
		all = pages{}
	}
	for i := range domains {
		d := &domains[i]
		h := all[d.VM.ID]
		if h.VM, h.State, h.Job = d.VM.ID, d.State, d.Job; h.Record == nil {
			h.Record = &store.VM{VM: d.VM, Host: p.host, Boots: 1, Moves: 1, Migratable: true}
		}
		all[d.VM.ID] = h
	}
	var list []store.Holding
	for _, vm := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[vm])
	}
	return list, err
}

// pages are what a ledger says.
type pages map[hypervisor.VMID]store.Holding

// agentLedger is the ledger of an agent, in the directory that it has now.
type agentLedger struct{ p *participant }

// number is that of the directory.
func (b agentLedger) number() int {
	if b.p.empty {
		return 1
	}
	return 0
}

// Holding implements [agent.Ledger].
func (b agentLedger) Holding(vm hypervisor.VMID) (store.Holding, bool) {
	h, known := b.p.pages[b.number()][vm]
	return h, known
}

// Keep implements [agent.Ledger]. A process that has died in the middle of its work keeps nothing.
func (b agentLedger) Keep(h store.Holding) error {
	if b.p.line.Died {
		return errDead
	}
	at := &b.p.pages[b.number()]
	if *at == nil {
		*at = pages{}
	}
	(*at)[h.VM] = h
	return nil
}

// vouch says that a leader has heard every host that could know a newer store.
func (w *World) vouch() { w.past.unmarked = false }

// admit lets the leader admit the agents that wait, where nothing else does, as package controller has
// it: those that live are heard.
func (w *World) admit() {
	boss := w.people[""]
	if !w.config.Marks || w.config.Beside != nil || boss.brain == nil || w.past.history.Doubt != nil {
		return
	}
	c := controller.FailoverConfig{Unmarked: w.past.unmarked}.Complete()
	h := controller.HeartbeatObservation{Lasted: w.now.Sub(boss.born)}
	var wait []hypervisor.HostName
	for _, name := range w.order {
		rec := w.HostRecord(name)
		if rec.Unadmitted() {
			wait = append(wait, name)
		}
		if w.people[name].brain == nil && rec.Proof().Proof == hypervisor.NoProof {
			h.Unheard = append(h.Unheard, name)
		}
	}
	if len(wait) == 0 {
		return
	}
	for _, p := range w.living() {
		if w.refuse(p) != nil {
			return
		}
	}
	if c.Doubts(&h) != "" {
		return
	}
	w.vouch()
	for _, name := range wait {
		w.changeHost(name, func(h *store.Host) { h.Admitted = h.Session })
		boss.saw(w.HostRecord(name).Version)
	}
}

// saw takes in that a process has seen a version of a record.
func (p *participant) saw(v store.Version) {
	p.mark.Cluster, p.mark.Revision = cluster, max(p.mark.Revision, store.Revision(v))
}

// remembering is a store that a process uses and remembers, as internal/daemon.Gate does.
type remembering struct {
	store.Store
	w *World
	p *participant
}

// Get implements [store.Store].
func (s *remembering) Get(ctx context.Context, key store.Key) (store.Record, error) {
	if err := s.w.refuse(s.p); err != nil {
		return nil, err
	}
	r, err := s.Store.Get(ctx, key)
	if r != nil && err == nil {
		s.p.saw(r.RecordVersion())
	}
	return r, err
}

// Put implements [store.Store].
func (s *remembering) Put(ctx context.Context, r store.Record, while ...store.Record) (store.Record,
	error) {
	if err := s.w.refuse(s.p); err != nil {
		return nil, err
	}
	stored, err := s.Store.Put(ctx, r, while...)
	if err == nil {
		s.p.saw(stored.RecordVersion())
	}
	return stored, err
}

// Delete implements [store.Store].
func (s *remembering) Delete(ctx context.Context, r store.Record, while ...store.Record) error {
	if err := s.w.refuse(s.p); err != nil {
		return err
	}
	return s.Store.Delete(ctx, r, while...)
}

// Changes implements [store.Store].
func (s *remembering) Changes(ctx context.Context, f store.Feed, since store.Revision) (store.Changes,
	error) {
	if err := s.w.refuse(s.p); err != nil {
		return store.Changes{}, err
	}
	c, err := s.Store.Changes(ctx, f, since)
	for _, r := range c.Records {
		s.p.saw(r.RecordVersion())
	}
	return c, err
}
