package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A Store keeps records. Every error is a *[StoreError].
type Store interface {
	// Get answers one record; one that is not there is nil and no error.
	Get(context.Context, Key) (Record, error)
	// Put stores a record on condition that the stored one still has its
	// version; version zero creates. It answers the record as stored. It writes
	// nothing and answers Stale unless each record in while is still stored as it
	// was read, too; one of version zero must not be there. What it stores and answers
	// is a copy: r is the caller's to be used again.
	Put(ctx context.Context, r Record, while ...Record) (Record, error)
	// Delete removes a record on the same conditions. One that is gone is no error.
	Delete(ctx context.Context, r Record, while ...Record) error
	// Changes answers what changed in a feed after a revision, in order and as it
	// is now; a record may be in it more than once. A record that no longer
	// concerns the feed's host is answered once more, as it is now, so that the
	// host learns of it. When the store no longer knows what changed since then,
	// it answers everything that is in the feed and says Reset.
	Changes(context.Context, Feed, Revision) (Changes, error)
}

// A Waiter is a store that can tell when to look.
type Waiter interface {
	// Wait returns nil when something in a feed has changed after a revision, or
	// may have. The error is a *[StoreError], or the context's.
	Wait(context.Context, Feed, Revision) error
}

// A Revision is a moment in the life of a store; zero is before everything.
type Revision uint64

// A Feed is a part of the records: those that concern one host, the heartbeats, or
// all others.
type Feed struct {
	Host   hypervisor.HostName
	Leases bool // leases and leaders, which other readers do not get
}

var (
	// Everything is the feed of all records but the heartbeats.
	Everything = Feed{}
	// Leases is the feed of leases and leaders.
	Leases = Feed{Leases: true}
)

// Check returns why there is no such feed, in words; nil is that there may be. Those of hosts are of other records
// than leases: one that is both is a mistake, or asks for what its reader may not follow.
func (f Feed) Check() error {
	if f.Host != "" && f.Leases {
		return fmt.Errorf("there is no feed of the leases of one host (%q): a feed is of a host, or of leases", f.Host)
	}
	return nil
}

// Feeds lists the feeds that a record is in.
func Feeds(r Record) []Feed {
	if k := r.Key().Kind; k == LeaseKind || k == LeaderKind {
		return []Feed{Leases}
	}
	feeds := []Feed{Everything}
	for _, h := range r.RelatedHosts() {
		if h != "" && !slices.Contains(feeds, Feed{Host: h}) {
			feeds = append(feeds, Feed{Host: h})
		}
	}
	return feeds
}

// Changes are what changed in a feed.
type Changes struct {
	Records []Record
	Gone    []Key
	Next    Revision // ask for what comes after this the next time
	Reset   bool     // Records is all there is; forget what is not in it
}

// StoreError is a store operation that failed.
type StoreError struct {
	Op   string // the method: "Put"
	Key  Key
	Kind StoreKind
	Err  error // the store's own words
}

// Error says what happened, to what, and why.
func (e *StoreError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("store: %s %s: %s", e.Op, e.Key.Name, e.Kind)
	}
	return fmt.Sprintf("store: %s %s: %s: %v", e.Op, e.Key.Name, e.Kind, e.Err)
}

// Unwrap returns the store's own error.
func (e *StoreError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, Stale) work.
func (e *StoreError) Is(target error) bool { return target == error(e.Kind) }

// A StoreKind says what may be done about an error.
type StoreKind uint8

// The kinds of errors.
const (
	// Unanswered: the operation may or may not have taken effect.
	Unanswered StoreKind = iota
	// Stale: another process wrote the record since it was read. Read and decide again.
	Stale
	// Unavailable: it did not take effect and may succeed later.
	Unavailable
	// Unreadable: what is stored is damaged, or of a newer version of godwit. Nothing
	// is done about it.
	Unreadable
	// Full: it did not take effect, because there is no room left.
	Full
	// SetBack: it did not take effect: the store is older than one that was seen. Nothing that
	// it says is acted upon until an operator has reconciled it.
	SetBack
	// Foreign: it did not take effect: the store is another cluster's.
	Foreign
	// Forbidden: it did not take effect: the client has no right to it.
	Forbidden
)

// Error names the kind.
func (k StoreKind) Error() string {
	switch k {
	case Stale:
		return "written by another process"
	case Unavailable:
		return "unavailable"
	case Unreadable:
		return "unreadable"
	case Full:
		return "full"
	case SetBack:
		return "older than it has been"
	case Foreign:
		return "of another cluster"
	case Forbidden:
		return "not allowed"
	}
	return "no answer"
}

// HostNamed reads what is stored about a host; of one that is not known there is only its
// name.
func HostNamed(ctx context.Context, s Store, name hypervisor.HostName) (*Host, error) {
	r, err := s.Get(ctx, Key{Kind: HostKind, Name: string(name)})
	if h, is := r.(*Host); is {
		return h, err
	}
	return &Host{Host: hypervisor.Host{Name: name}}, err
}

// VMNamed reads a VM's record; nil is none.
func VMNamed(ctx context.Context, s Store, id hypervisor.VMID) (*VM, error) {
	r, err := s.Get(ctx, Key{Kind: VMKind, Name: string(id)})
	v, _ := r.(*VM)
	return v, err
}
