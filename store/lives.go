package store

import (
	"cmp"
	"context"
)

// A Life tells a VM from others that had its name before and were deleted. It is made when the VM
// is added ([NewLife]) and never changed, except when a store is reconciled. Nil is the life of a VM
// that an earlier version of godwit has added: its agent gives it one when it sees it.
//
// Lives of one name are ordered: what was added later has a later epoch of the store, or a later
// revision in it. An agent that knows of a life does not start an earlier one on the word of a
// record from a restored backup.
type Life struct {
	ID    string `json:",omitempty"` // default: the agent gave it
	Epoch uint64 `json:",omitempty"` // of the store, when the VM was added
	// After is a revision of the store before the VM was added, and after those of its name that
	// were there before were deleted.
	After Revision `json:",omitempty"`
}

// NewLife returns the life of a VM that is about to be added, with an id.
func NewLife(ctx context.Context, s Store, id string) (*Life, error) {
	l := &Life{ID: id}
	if past, is := s.(Historian); is {
		h, _, err := past.History(ctx)
		if err != nil {
			return nil, err
		}
		l.Epoch = h.Epoch
	}
	c, err := s.Changes(ctx, Leases, 0) // the shortest feed: only the revision is asked for
	l.After = c.Next
	return l, err
}

// Is reports whether two lives are the same.
func (l *Life) Is(other *Life) bool {
	return l == other || l != nil && other != nil && *l == *other
}

// Follows reports whether l is known to be later than another.
func (l *Life) Follows(other *Life) bool {
	switch {
	case l == nil:
		return false
	case other == nil:
		return true
	}
	return cmp.Or(cmp.Compare(l.Epoch, other.Epoch), cmp.Compare(l.After, other.After)) > 0
}

// Precedes reports whether v is an earlier record of its VM than another by what outlives a restored
// backup: which life it is, and how often it has moved in it.
func (v *VM) Precedes(other *VM) bool {
	if v.Life.Is(other.Life) || v.Life == nil { // an earlier version of godwit may have dropped it
		return v.Moves < other.Moves
	}
	return !v.Life.Follows(other.Life)
}
