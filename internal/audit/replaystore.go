package audit

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// A replayStore is the store and the event recorder of a controller that is replayed: it answers as the
// log says, and notices the first writing that the log does not have.
type replayStore struct {
	brain store.Participant
	known Records // as the controller has read and written them
	look  *look
	read  bool // the look has read
	said  []string
	loose bool // something has differed before: the order of writings does not count

	over    bool     // the log ends in the middle of the look
	attempt *attempt // the first that is not as it was recorded
	differs *Difference
}

var (
	_ store.Store   = (*replayStore)(nil)
	_ store.Auditor = (*replayStore)(nil)
)

// play lets the controller look once. The error says that it did something that none may.
func (s *replayStore) play(k *look) (wake time.Time, err error) {
	s.look, s.read, s.said, s.over = k, false, nil, false
	s.attempt, s.differs = nil, nil
	defer func() {
		if wrong := recover(); wrong != nil {
			err = fmt.Errorf("the controller panics in look %d: %v", k.number, wrong)
		}
	}()
	wake, _ = s.brain.Reconcile(context.Background(), k.at)
	if s.attempt != nil || !s.over && k.met < len(k.writes) {
		s.differs = s.difference(s.attempt)
	}
	return wake, nil
}

// Changes implements [store.Store]: it answers what the look has read.
func (s *replayStore) Changes(_ context.Context, f store.Feed, _ store.Revision) (
	store.Changes, error) {
	if f != store.Everything || s.read {
		return store.Changes{}, s.refuse("Changes", store.Key{}, store.Unavailable)
	}
	s.read = true
	if kind, failed := FailureKind(s.look.failed); failed {
		return store.Changes{}, s.refuse("Changes", store.Key{}, kind)
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
	c.Next = store.Revision(s.look.number)
	return c, nil
}

// Get implements [store.Store]. No recorded participant calls it.
func (s *replayStore) Get(_ context.Context, key store.Key) (store.Record, error) {
	return nil, s.refuse("Get", key, store.Unavailable)
}

// Put implements [store.Store].
func (s *replayStore) Put(_ context.Context, r store.Record, _ ...store.Record) (
	store.Record, error) {
	d, err := s.meet("Put", &attempt{key: r.Key(), record: r, was: r.RecordVersion()})
	if err != nil {
		return nil, err
	}
	s.known[r.Key()] = d.record
	return d.record, nil
}

// Delete implements [store.Store].
func (s *replayStore) Delete(_ context.Context, r store.Record, _ ...store.Record) error {
	_, err := s.meet("Delete", &attempt{key: r.Key(), was: r.RecordVersion()})
	if err == nil {
		delete(s.known, r.Key())
	}
	return err
}

// An attempt is a writing of the controller that is replayed.
type attempt struct {
	key    store.Key
	record store.Record // nil: it is deleted
	was    store.Version
	said   []string // in the look before it
}

// meet compares a writing with the one in the log, and answers as the store did.
func (s *replayStore) meet(op string, a *attempt) (*write, error) {
	at := s.look.find(a, s.loose || s.attempt != nil)
	switch {
	case s.over || s.look.outcome == nil && s.look.met == len(s.look.writes):
		s.over = true // it may have been cut short here
		return nil, s.refuse(op, a.key, store.Unavailable)
	case at < 0:
		return nil, s.refuse(op, a.key, s.miss(a))
	}
	d := &s.look.writes[at]
	d.met, s.look.met = true, s.look.met+1
	if kind, failed := FailureKind(d.failed); failed {
		return nil, s.refuse(op, a.key, kind)
	}
	return d, nil
}

// unmet returns which writing is the next that the controller has not made; -1 is none.
func (k *look) unmet() int {
	return slices.IndexFunc(k.writes, func(d write) bool { return !d.met })
}

// find returns which writing is made again by an attempt, the next one or any; -1 is none.
func (k *look) find(a *attempt, anyOrder bool) int {
	if at := k.unmet(); !anyOrder && (at < 0 || !a.same(&k.writes[at])) {
		return -1
	}
	return slices.IndexFunc(k.writes, func(d write) bool { return !d.met && a.same(&d) })
}

// miss notes a writing that the log does not have, and returns how the store answers: that
// another process was faster, if what was recorded is about the same record, or as it did then.
func (s *replayStore) miss(a *attempt) store.StoreKind {
	if s.attempt == nil {
		if s.attempt = a; a.record != nil {
			a.record = a.record.WithVersion(a.was) // its owner may use it again
		}
		a.said = slices.Clone(s.said)
	}
	at := s.look.unmet()
	if at < 0 || !a.isOf(&s.look.writes[at]) {
		return store.Unavailable // the record has not changed: it is tried again
	}
	if kind, failed := FailureKind(s.look.writes[at].failed); failed {
		return kind
	}
	return store.Stale
}

// same reports whether an attempt is what the log says, byte for byte.
func (a *attempt) same(d *write) bool {
	if !a.isOf(d) || uint64(a.was) != d.line.Was {
		return false
	}
	if a.record == nil || d.record == nil {
		return a.record == nil && d.record == nil
	}
	return bytes.Equal(text(a.record), text(d.record))
}

// isOf reports whether an attempt is of the record that the log says.
func (a *attempt) isOf(d *write) bool {
	return a.key.Kind.String()+" "+a.key.Name == d.line.Record
}

// text is a record as it is stored; nil for one that cannot be, or is not there.
func text(r store.Record) []byte {
	if r == nil {
		return nil
	}
	t, err := store.Encode(r)
	if err != nil {
		return nil
	}
	return t
}

func (s *replayStore) refuse(op string, key store.Key, kind store.StoreKind) error {
	return &store.StoreError{Op: op, Key: key, Kind: kind}
}

// Note implements [store.EventRecorder].
func (s *replayStore) Note(at time.Time, who hypervisor.HostName, vm hypervisor.VMID, what string) {
	s.say(noted(at, who, vm, what))
}

// Audit implements [store.Auditor].
func (s *replayStore) Audit(e placement.LedgerEntry) { s.say(Reserved(e)) }

func (s *replayStore) say(l Line) { s.said = append(s.said, telling(&l)) }
