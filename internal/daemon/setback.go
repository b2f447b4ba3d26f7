package daemon

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// errReconciled ends the waiting for a store that can be used.
var errReconciled = errors.New("the store may be used again")

// each runs a daemon over a store until ctx ends, and, when the store must not be used, waits until
// it may, and runs it anew: what it knew is of another store. The VMs run on meanwhile.
func (s *Dependencies) each(ctx context.Context, store store.Store, who string,
	host hypervisor.HostName, tell func(context.Context, error, time.Time) error,
	run func(context.Context) error) error {
	gate, gated := store.(*Gate)
	for {
		err := run(ctx)
		if !gated || ctx.Err() != nil || !Refused(err) {
			return err
		}
		t := s.trail(who, 0)
		noter := s.recorder(t)
		noter.Note(s.Now(), host, "", "does not believe the store: "+err.Error())
		if err := s.wait(ctx, gate, tell); err != nil || ctx.Err() != nil {
			return err
		}
		gate.Vouch() // an operator has asked all hosts
		noter.Note(s.Now(), host, "", "believes the store again: "+reconciled(ctx, gate))
	}
}

// reconciled says by whose word a store may be used again.
func reconciled(ctx context.Context, g *Gate) string {
	h, _, err := g.beyond().History(ctx)
	if err != nil || h.By == "" {
		return "it is the one that was seen"
	}
	return "it was reconciled by " + h.By
}

// wait looks again and again whether the store may be used, and tells what its operator has to
// know. It serves health and metrics.
func (s *Dependencies) wait(ctx context.Context, gate *Gate,
	tell func(context.Context, error, time.Time) error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	mute := *s
	mute.Ready = func(string) {}
	set := NewMetrics()
	if tell == nil { // a controller answers for the cluster
		set = NewMetrics(NewClusterMetrics(gate.beyond(), nil, nil, s.Now))
	}
	w := mute.watch(set, nil)
	defer s.Supervisor.follow(nil)
	s.Supervisor.Status("waits: the store was set back: see godwit status")
	loop := w.loop("store-check", &storeCheck{gate: gate, tell: tell, every: cmp.Or(s.HeartbeatInterval, checkInterval),
		end: end})
	done, err := w.serve()
	if err != nil {
		return err
	}
	err = errors.Join(run(ctx, loop), done())
	if errors.Is(context.Cause(ctx), errReconciled) {
		return nil
	}
	return err
}

// checkInterval is the default of how often a storeCheck looks: as often as heartbeats are sent.
const checkInterval = 5 * time.Second

// A storeCheck waits for a store that may be used.
type storeCheck struct {
	gate  *Gate
	tell  func(context.Context, error, time.Time) error
	every time.Duration
	end   context.CancelCauseFunc
}

// Reconcile looks once whether the store may be used. The error is why it may not.
func (w *storeCheck) Reconcile(ctx context.Context, now time.Time) (time.Time, error) {
	wake := now.Add(w.every)
	err := w.gate.check(ctx)
	switch {
	case err == nil:
		w.end(errReconciled)
	case Refused(err) && w.tell != nil:
		if told := w.tell(ctx, err, now); told != nil && !errors.Is(told, store.Stale) {
			err = errors.Join(err, told)
		}
	}
	return wake, err
}

// account stores what this host has, for godwit store reconcile.
func (a *Agent) account(ctx context.Context, why error, now time.Time) error {
	gate := a.Store.(*Gate)
	h, err := store.HostNamed(ctx, gate.beyond(), a.Host)
	if err != nil {
		return err
	}
	if errors.Is(why, store.Foreign) && h.Identity != nil && *h.Identity != a.Identity {
		return nil // it is another host, which has our name
	}
	vms, err := a.holdings(ctx)
	if err != nil {
		return err
	}
	next := *h
	next.Account = &store.HostInventory{At: now.UTC().Round(0), Seen: gate.Mark(), Why: why.Error(), VMs: vms}
	if h.Account != nil && same(h.Account, next.Account) {
		return nil
	}
	if h.Version == 0 { // nothing is placed on it before its agent has claimed it
		next.NotReady = true
		if next.Host, err = a.Hypervisor.Host(ctx); err != nil {
			return err
		}
		next.Host.Name = a.Host
	}
	if err := store.Fits(&next); err != nil {
		return tooMany(&next, err)
	}
	_, err = gate.beyond().Put(ctx, &next)
	return err
}

// tooMany says what to do about a host that knows of too many VMs.
func tooMany(h *store.Host, why error) error {
	left := 0
	for i := range h.Account.VMs {
		if h.Account.VMs[i].Left != nil {
			left++
		}
	}
	return fmt.Errorf("what %s knows of %d VMs cannot be stored, and operators do not see it: %w: %d of "+
		"them have left the host: start its agent anew without the oldest files of its ledger that say "+
		"Left, of VMs that run elsewhere", h.Host.Name, len(h.Account.VMs), why, left)
}

// same reports whether two accounts say the same, but for when.
func same(old, now *store.HostInventory) bool {
	at := *now
	at.At = old.At
	a, errA := json.Marshal(old)
	b, errB := json.Marshal(&at)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// holdings lists what is on this host, and what the ledger knows of VMs that have left.
func (a *Agent) holdings(ctx context.Context) ([]store.Holding, error) {
	domains, err := a.Hypervisor.Domains(ctx)
	if err != nil {
		return nil, err
	}
	all := map[hypervisor.VMID]store.Holding{}
	if l, is := a.Config.Ledger.(*Ledger); is {
		for _, h := range l.Holdings() {
			all[h.VM] = h
		}
	}
	for i := range domains {
		d := &domains[i]
		h := all[d.VM.ID]
		if h.VM, h.State, h.Job = d.VM.ID, d.State, d.Job; h.Record == nil {
			h.Record = &store.VM{VM: d.VM, Host: a.Host, Boots: 1, Moves: 1, Migratable: true}
		}
		all[d.VM.ID] = h
	}
	var list []store.Holding
	for _, h := range all {
		list = append(list, h)
	}
	slices.SortFunc(list, func(x, y store.Holding) int { return cmp.Compare(x.VM, y.VM) })
	return list, nil
}
