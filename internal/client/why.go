package client

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/store"
)

// An Explanation says why a VM is where it is.
type Explanation struct {
	VM      VM                  `json:"vm"`
	Moves   []MoveReport        `json:"migrations"` // oldest first, as far as they are kept
	Reasons []hypervisor.Reason `json:"reasons"`    // what keeps it there
}

// Explain returns what a controller would decide about a VM now, and why. It writes nothing.
func Explain(ctx context.Context, records store.Store, config controller.Config,
	vm hypervisor.VMID, now time.Time) (*Explanation, error) {
	var c Cluster
	if err := c.Pull(ctx, records); err != nil {
		return nil, err
	}
	v := c.VM(vm)
	if v == nil {
		return nil, &store.StoreError{Op: "Get", Kind: store.Stale,
			Key: store.Key{Kind: store.VMKind, Name: string(vm)}} // it has just been deleted
	}
	e := &Explanation{VM: OfVM(&c, v), Moves: []MoveReport{}, Reasons: []hypervisor.Reason{}}
	for _, m := range c.Migrations() {
		if m.Spec.VM == vm {
			e.Moves = append(e.Moves, OfMove(m, now))
		}
	}
	f := &frozen{readOnly: readOnly{records}}
	boss := controller.New(config, f, store.DiscardEvents{})
	_, _ = boss.Reconcile(ctx, now) // it cannot write anything
	if f.err != nil {
		return nil, f.err
	}
	e.Reasons = append(e.Reasons, boss.Why(vm, now)...)
	return e, nil
}

// ReadOnly returns a store that answers what s answers, and refuses writes.
func ReadOnly(s store.Store) store.Store {
	if h, is := s.(store.Historian); is {
		return readOnlyHistorian{readOnly{s}, h}
	}
	return readOnly{s}
}

// readOnly is a store that refuses writes.
type readOnly struct{ store.Store }

// Put refuses.
func (r readOnly) Put(_ context.Context, record store.Record, _ ...store.Record) (store.Record,
	error) {
	return nil, &store.StoreError{Op: "Put", Key: record.Key(), Kind: store.Unavailable}
}

// Delete refuses.
func (r readOnly) Delete(_ context.Context, record store.Record, _ ...store.Record) error {
	return &store.StoreError{Op: "Delete", Key: record.Key(), Kind: store.Unavailable}
}

// readOnlyHistorian is a readOnly that knows its past.
type readOnlyHistorian struct {
	readOnly
	past store.Historian
}

var _ store.Historian = readOnlyHistorian{}

// History implements store.Historian.
func (r readOnlyHistorian) History(ctx context.Context) (store.History, string, error) {
	return r.past.History(ctx)
}

// Amend refuses.
func (r readOnlyHistorian) Amend(context.Context, store.History) (store.History, error) {
	return store.History{}, &store.StoreError{Op: "Amend", Kind: store.Unavailable}
}

// frozen refuses writes, and keeps an error of reading. It has one user.
type frozen struct {
	readOnly
	err error
}

// Changes reads, and keeps an error.
func (f *frozen) Changes(ctx context.Context, feed store.Feed, since store.Revision) (
	store.Changes, error) {
	c, err := f.Store.Changes(ctx, feed, since)
	if err != nil {
		f.err = err
	}
	return c, err
}

// Table prints an explanation.
func (e *Explanation) Table(out io.Writer, now time.Time) error {
	where := "on " + string(e.VM.Host)
	if e.VM.Host == "" {
		where = "on no host"
	}
	fmt.Fprintf(out, "%s is %s: %s", Plain(string(e.VM.Name)), Plain(where), e.VM.State)
	if e.VM.Why != "" {
		fmt.Fprintf(out, ": %s", Plain(e.VM.Why))
	}
	fmt.Fprintln(out)
	if len(e.Moves) > 0 {
		fmt.Fprintln(out)
		if err := Moves(out, e.Moves, now); err != nil {
			return err
		}
		for _, m := range e.Moves {
			reasons(out, string(m.Name), m.Reasons)
		}
	}
	if len(e.Reasons) == 0 {
		_, err := fmt.Fprintln(out, "\nno request moves it elsewhere")
		return err
	}
	reasons(out, "it stays because of", e.Reasons)
	return nil
}

func reasons(out io.Writer, title string, list []hypervisor.Reason) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s\n", Plain(title))
	for _, r := range list {
		fmt.Fprintf(out, "  %s\n", Plain(humanize.Unmet(r.Check, r.Need, r.Have)))
	}
}
