package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/store"
)

// Read reads what is known.
func Read(ctx context.Context, records store.Store, now time.Time) (Input, error) {
	in := Input{Now: now.UTC().Round(0)}
	if past, is := records.(store.Historian); is {
		h, _, err := past.History(ctx)
		if err != nil {
			return in, err
		}
		in.Epoch = h.Epoch
	}
	changes, err := records.Changes(ctx, store.Everything, 0)
	for _, r := range changes.Records {
		in.Add(r)
	}
	return in, err
}

// Add takes in a record of the store, if it is of a kind that matters.
func (in *Input) Add(r store.Record) {
	switch r := r.(type) {
	case *store.VM:
		in.VMs = append(in.VMs, r)
	case *store.Host:
		in.Hosts = append(in.Hosts, r)
	case *store.Migration:
		in.Migrations = append(in.Migrations, r)
	case *store.Rebuild:
		in.Rebuilds = append(in.Rebuilds, r)
	case *store.Plan:
		in.Plans = append(in.Plans, r)
	case *store.Maintenance:
		in.Runs = append(in.Runs, r)
	}
}

// A RefusedError says why nothing was written.
type RefusedError struct{ Why string }

// Error says what is missing, and what to do.
func (e *RefusedError) Error() string { return "store reconcile: nothing was written: " + e.Why }

// Doubt stops all participants, so that they say what they have, by the word of an operator.
func Doubt(ctx context.Context, records store.Historian, by, why string, now time.Time) error {
	h, _, err := records.History(ctx)
	if err != nil || h.Doubt != nil {
		return err
	}
	h.Doubt = &store.Doubt{By: by, Why: why, At: now.UTC().Round(0)}
	_, err = records.Amend(ctx, h)
	return err
}

// Write writes the verdicts forward, and raises the epoch of the store: then its participants go
// on. The error is a *[RefusedError] while a host has not told, or a conflict is not decided. When
// it dies in the middle, the store is still not believed, and it may be asked again.
func (r *Result) Write(ctx context.Context, store store.Historian, in Input, by string,
	now time.Time) error {
	if len(r.Missing) > 0 {
		return &RefusedError{fmt.Sprintf("%s has not told what it has: start its agent, or, when it is "+
			"off and stays off, add --without HOST", and(r.Missing))}
	}
	if bad := r.Conflicts(); len(bad) > 0 {
		return &RefusedError{fmt.Sprintf("%d conflicts, the first: %s: %s: add --decide %s=HOST, or =none",
			len(bad), bad[0].VM, bad[0].Conflict, bad[0].VM)}
	}
	h, instance, err := store.History(ctx)
	if err != nil {
		return err
	}
	if err := r.Apply(ctx, store, in); err != nil {
		return fmt.Errorf("store reconcile: it is not finished, ask again: %w", err)
	}
	_, err = store.Amend(ctx, h.Raised(by, r.Clusters, instance, now))
	return err
}

// Apply writes the verdicts forward, without raising the epoch of the store.
func (r *Result) Apply(ctx context.Context, store store.Store, in Input) error {
	var bad []error
	for _, v := range r.Findings {
		bad = append(bad, v.write(ctx, store))
	}
	for _, m := range r.Ended {
		_, err := store.Put(ctx, m)
		bad = append(bad, err)
	}
	for _, l := range r.Left {
		_, err := store.Put(ctx, l)
		bad = append(bad, err)
	}
	for _, h := range r.Halted {
		_, err := store.Put(ctx, h)
		bad = append(bad, err)
	}
	for _, m := range r.Obsolete {
		bad = append(bad, store.Delete(ctx, m))
	}
	for _, host := range in.Hosts {
		bad = append(bad, settle(ctx, store, host))
	}
	return errors.Join(bad...)
}

func (v *Finding) write(ctx context.Context, store store.Store) error {
	switch {
	case v.next != nil:
		_, err := store.Put(ctx, v.next)
		return err
	case v.Deleted && v.old != nil:
		return store.Delete(ctx, v.old)
	}
	return nil
}

// settle takes back what a host has told.
func settle(ctx context.Context, records store.Store, h *store.Host) error {
	if h.Account == nil {
		return nil
	}
	next := *h
	next.Account = nil
	_, err := records.Put(ctx, &next)
	if errors.Is(err, store.Stale) {
		return nil // it has told once more, and takes that back itself
	}
	return err
}
