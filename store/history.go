package store

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// A Mark is the newest moment in the life of a store that a participant has seen. It is kept on
// disk, and shown with every call (see [WithMark]). The zero value has seen nothing.
type Mark struct {
	Cluster string `json:",omitempty"` // the id of the cluster whose store it was
	Epoch   uint64 `json:",omitempty"`
	// Instance is what the software says of itself: the id of etcd's cluster. Default: nothing.
	Instance string `json:",omitempty"`
	// Revision is the highest version of a record that was read or written.
	Revision Revision `json:",omitempty"`
}

// A History is what a store knows of its own past. It tells a store that was set back, by a
// backup or a snapshot, from the one that others have seen.
type History struct {
	Version Version // the store's, for compare-and-swap
	Cluster string  // the id of the cluster: made once, with the store
	// Epoch is raised whenever an operator has reconciled the store with what the hosts say; it
	// never falls.
	Epoch uint64 `json:",omitempty"`
	// Former are the ids of clusters whose hosts belong to this one now.
	Former []string `json:",omitempty"`
	// Instance is in which instance of its software the store was when its epoch began.
	Instance string `json:",omitempty"`
	// Jumps are revisions that were never given, as far as this store knows. Who has seen one of
	// them has seen a newer store.
	Jumps []Jump `json:",omitempty"`
	// Doubt says that a participant has seen a newer store. Until it is reconciled no participant
	// reads or writes. Default: none.
	Doubt *Doubt `json:",omitempty"`
	// By is who has reconciled the store last, and At is when.
	By string    `json:",omitempty"`
	At time.Time `json:",omitzero"`
}

// A Jump is the revisions between two others, both excluded: the last one that a store had, and
// the first one that it gave after it was opened.
type Jump struct{ After, Before Revision }

// A Doubt is a participant's report that the store was newer before.
type Doubt struct {
	By   string // "agent/n1"
	Why  string // in words
	Seen Mark   // by the participant
	At   time.Time
}

// mostJumps is how many jumps are kept: there is one for each time that a store is opened.
const mostJumps = 4096

// Jumped returns h after one more jump. The oldest are forgotten: who has seen one of those is
// believed to have seen the store as it is.
func (h History) Jumped(after, before Revision) History {
	h.Jumps = append(slices.Clone(h.Jumps), Jump{after, before})
	h.Jumps = h.Jumps[max(0, len(h.Jumps)-mostJumps):]
	return h
}

// Raised returns h after an operator has reconciled the store: all marks from before are in its
// past. Former are clusters whose hosts belong to this one from now on.
func (h History) Raised(by string, former []string, instance string, now time.Time) History {
	h.Epoch++
	h.Doubt, h.By, h.At, h.Instance, h.Jumps = nil, by, now.UTC().Round(0), instance, nil
	for _, c := range former {
		if c != h.Cluster && !slices.Contains(h.Former, c) {
			h.Former = append(slices.Clone(h.Former), c)
		}
	}
	return h
}

// Advice is what an operator is to do about a store that was set back.
const Advice = "nothing is started, stopped or removed, and VMs run on: godwit store reconcile"

// Judge returns why a store with this history, which is now in an instance of its software and
// at a revision, must not be used by a reader that has seen a mark; nil is that it may. The kind of the
// error is SetBack or Foreign.
func (h *History) Judge(m Mark, instance string, now Revision) *StoreError {
	if m.Cluster != "" && m.Cluster != h.Cluster && !slices.Contains(h.Former, m.Cluster) {
		return &StoreError{Kind: Foreign, Err: fmt.Errorf("it is the store of the cluster %.8s, and "+
			"here the store of %.8s was used before: %s", h.Cluster, m.Cluster, Advice)}
	}
	if why := h.objection(m, instance, now); why != "" {
		return &StoreError{Kind: SetBack, Err: fmt.Errorf("%s: %s", why, Advice)}
	}
	return nil
}

// objection says why the store is older than one that a participant has seen; "" is that it is
// not.
func (h *History) objection(m Mark, instance string, now Revision) string {
	switch {
	case h.Doubt != nil:
		return h.Doubt.By + " says: " + h.Doubt.Why
	case h.Instance != instance:
		return fmt.Sprintf("it was restored from a snapshot: it was written in instance %s, and "+
			"this is %s", h.Instance, instance)
	case m.Cluster == "" || m.Cluster != h.Cluster || m.Epoch < h.Epoch:
		return ""
	case m.Epoch > h.Epoch:
		return fmt.Sprintf("its epoch is %d, and it has been %d", h.Epoch, m.Epoch)
	case m.Instance != instance:
		return fmt.Sprintf("it was restored from a snapshot: it was seen in instance %s, and this "+
			"is %s", m.Instance, instance)
	case m.Revision > now:
		return fmt.Sprintf("its revision is %d, and it has been %d", now, m.Revision)
	case h.forgot(m.Revision):
		return fmt.Sprintf("it does not know revision %d, which was seen", m.Revision)
	}
	return ""
}

// forgot reports whether a revision was given by a newer state of the store than this one.
func (h *History) forgot(r Revision) bool {
	return slices.ContainsFunc(h.Jumps, func(j Jump) bool { return j.After < r && r < j.Before })
}

// A Historian is a store that knows its past. Its calls answer SetBack or Foreign to a context
// that holds a [Mark] which is not in the past of the store, and do nothing.
type Historian interface {
	Store
	// History answers the history, and in which instance of its software the store is now. It
	// is answered whatever the context has seen.
	History(context.Context) (h History, instance string, err error)
	// Amend stores a history on condition that the stored one has its version, and answers it as
	// stored.
	Amend(context.Context, History) (History, error)
}

type markKey struct{}

// WithMark returns a context whose calls of a [Historian] are answered only while a mark is in
// the past of the store.
func WithMark(ctx context.Context, m Mark) context.Context {
	return context.WithValue(ctx, markKey{}, m)
}

// MarkOf returns the mark of a context. Without one a call is answered whatever the history is:
// that is for operators, who have to see what is there.
func MarkOf(ctx context.Context) (m Mark, is bool) {
	m, is = ctx.Value(markKey{}).(Mark)
	return m, is
}
