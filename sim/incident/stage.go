package incident

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/daemon/audit"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/lease"
	"github.com/godwit-vm/godwit/migration/placement/reserve"
	"github.com/godwit-vm/godwit/record"
)

// A stage is the store and the listener of a controller that is replayed: it answers as the
// log says, and notices the first writing that the log does not have.
type stage struct {
	brain lease.Participant
	known map[record.Key]record.Record // as the controller has read and written them
	look  *look
	read  bool // the look has read
	next  int  // writings of the look that were the same
	said  []string

	over    bool     // the log ends in the middle of the look
	attempt *attempt // the first that is not as it was recorded
	differs *Difference
}

var (
	_ record.Store   = (*stage)(nil)
	_ record.Auditor = (*stage)(nil)
)

// play lets the controller look once. The error says that it did something that none may.
func (s *stage) play(k *look) (wake time.Time, err error) {
	s.look, s.read, s.next, s.said, s.over = k, false, 0, nil, false
	defer func() {
		if wrong := recover(); wrong != nil {
			err = fmt.Errorf("the controller panics in look %d: %v", k.number, wrong)
		}
	}()
	wake, _ = s.brain.Reconcile(context.Background(), k.at)
	if s.attempt != nil || !s.over && s.next < len(k.deeds) {
		s.differs = s.difference(s.attempt)
	}
	return wake, nil
}

// Changes implements [record.Store]: it answers what the look has read.
func (s *stage) Changes(_ context.Context, f record.Feed, _ record.Revision) (
	record.Changes, error) {
	if f != record.Everything || s.read {
		return record.Changes{}, s.refuse("Changes", record.Key{}, record.Unavailable)
	}
	s.read = true
	if kind, failed := audit.FailureKind(s.look.failed); failed {
		return record.Changes{}, s.refuse("Changes", record.Key{}, kind)
	}
	c := s.look.changes
	if c.Reset {
		clear(s.known)
	}
	for _, r := range c.Records {
		s.known[r.Key()] = r
	}
	for _, key := range c.Gone {
		delete(s.known, key)
	}
	c.Next = record.Revision(s.look.number)
	return c, nil
}

// Get implements [record.Store]. Nobody who is recorded asks.
func (s *stage) Get(_ context.Context, key record.Key) (record.Record, error) {
	return nil, s.refuse("Get", key, record.Unavailable)
}

// Put implements [record.Store].
func (s *stage) Put(_ context.Context, r record.Record, _ ...record.Record) (
	record.Record, error) {
	d, err := s.meet("Put", &attempt{key: r.Key(), record: r, was: r.At()})
	if err != nil {
		return nil, err
	}
	s.known[r.Key()] = d.record
	return d.record, nil
}

// Delete implements [record.Store].
func (s *stage) Delete(_ context.Context, r record.Record, _ ...record.Record) error {
	_, err := s.meet("Delete", &attempt{key: r.Key(), was: r.At()})
	if err == nil {
		delete(s.known, r.Key())
	}
	return err
}

// An attempt is a writing of the controller that is replayed.
type attempt struct {
	key    record.Key
	record record.Record // nil: it is deleted
	was    record.Version
	said   []string // in the look before it
}

// meet compares a writing with the one in the log, and answers as the store did.
func (s *stage) meet(op string, a *attempt) (*deed, error) {
	none := s.refuse(op, a.key, record.Unavailable)
	switch {
	case s.attempt != nil || s.over:
		return nil, none
	case s.next == len(s.look.deeds) && s.look.outcome == nil:
		s.over = true // it may have been cut short here
		return nil, none
	case s.next == len(s.look.deeds) || !a.same(&s.look.deeds[s.next]):
		if s.attempt = a; a.record != nil {
			a.record = a.record.With(a.was) // its owner may use it again
		}
		a.said = slices.Clone(s.said)
		return nil, none
	}
	d := &s.look.deeds[s.next]
	s.next++
	if kind, failed := audit.FailureKind(d.failed); failed {
		return nil, s.refuse(op, a.key, kind)
	}
	return d, nil
}

// same reports whether an attempt is what the log says, byte for byte.
func (a *attempt) same(d *deed) bool {
	if a.key.Kind.String()+" "+a.key.Name != d.line.Record || uint64(a.was) != d.line.Was {
		return false
	}
	if a.record == nil || d.record == nil {
		return a.record == nil && d.record == nil
	}
	return bytes.Equal(text(a.record), text(d.record))
}

// text is a record as it is stored; nil for one that cannot be, or is not there.
func text(r record.Record) []byte {
	if r == nil {
		return nil
	}
	t, err := record.Encode(r)
	if err != nil {
		return nil
	}
	return t
}

func (s *stage) refuse(op string, key record.Key, kind record.StoreKind) error {
	return &record.StoreError{Op: op, Key: key, Kind: kind}
}

// Note implements [record.Noter].
func (s *stage) Note(at time.Time, who hypervisor.HostName, vm hypervisor.VMID, what string) {
	s.hear(audit.Noted(at, who, vm, what))
}

// Audit implements [record.Auditor].
func (s *stage) Audit(e reserve.Entry) { s.hear(audit.Booked(e)) }

func (s *stage) hear(l audit.Line) { s.said = append(s.said, telling(&l)) }
