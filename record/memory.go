package record

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Memory is a store that lives and dies with its process: for simulations and
// tests. It belongs to one caller at a time. The zero value is not ready; use
// [NewMemory].
type Memory struct {
	records  map[Key]Record
	feeds    map[Feed]*feed
	revision Revision
	changed  []Feed
}

// feed is the log of one feed.
type feed struct {
	log     []change
	dropped Revision     // changes up to here are no longer in the log
	keys    map[Key]bool // what is in the feed now
	told    bool         // it is in Memory.changed
}

type change struct {
	at  Revision
	key Key
}

// keep is how many changes a feed remembers; who is further behind gets
// everything.
const keep = 512

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{records: map[Key]Record{}, feeds: map[Feed]*feed{}}
}

// Get implements Store.
func (s *Memory) Get(_ context.Context, key Key) (Record, error) {
	return s.records[key], nil // the nil interface when it is not there
}

// Put implements Store.
func (s *Memory) Put(_ context.Context, r Record, while ...Record) (Record, error) {
	key := r.Key()
	old := s.records[key]
	if versionOf(old) != r.At() {
		return nil, &StoreError{Op: "Put", Key: key, Kind: Stale}
	}
	if err := s.still("Put", while); err != nil {
		return nil, err
	}
	s.revision++
	r = r.With(Version(s.revision))
	s.records[key] = r
	s.tell(key, old, r)
	return r, nil
}

// Delete implements Store.
func (s *Memory) Delete(_ context.Context, r Record, while ...Record) error {
	key := r.Key()
	old := s.records[key]
	switch {
	case old == nil:
		return nil
	case old.At() != r.At():
		return &StoreError{Op: "Delete", Key: key, Kind: Stale}
	}
	if err := s.still("Delete", while); err != nil {
		return err
	}
	s.revision++
	delete(s.records, key)
	s.tell(key, old, nil)
	return nil
}

// still answers Stale unless every record is stored as it was read.
func (s *Memory) still(op string, read []Record) error {
	for _, r := range read {
		if key := r.Key(); versionOf(s.records[key]) != r.At() {
			return &StoreError{Op: op, Key: key, Kind: Stale}
		}
	}
	return nil
}

// Changes implements Store.
func (s *Memory) Changes(_ context.Context, f Feed, since Revision) (Changes, error) {
	c := Changes{Next: s.revision}
	log := s.feeds[f]
	if log == nil {
		return c, nil
	}
	if since < log.dropped || since == 0 {
		c.Reset = true
		for _, key := range slices.SortedFunc(maps.Keys(log.keys), byKey) {
			if r := s.records[key]; r != nil {
				c.Records = append(c.Records, r)
			}
		}
		return c, nil
	}
	first, _ := slices.BinarySearchFunc(log.log, since+1, func(e change, r Revision) int {
		return cmp.Compare(e.at, r)
	})
	for i, e := range log.log[first:] {
		switch r := s.records[e.key]; {
		case repeats(log.log[first+i+1:], e.key):
		case r == nil:
			c.Gone = append(c.Gone, e.key)
		default:
			c.Records = append(c.Records, r)
		}
	}
	return c, nil
}

// repeats reports whether key changes again soon: looking a little ahead finds
// most repetitions, and repeating a record does no harm.
func repeats(rest []change, key Key) bool {
	for _, e := range rest[:min(len(rest), 16)] {
		if e.key == key {
			return true
		}
	}
	return false
}

// Changed returns the feeds that changed since it was last called, in order.
func (s *Memory) Changed() []Feed {
	changed := s.changed
	for _, f := range changed {
		s.feeds[f].told = false
	}
	s.changed = nil
	return changed
}

// Len returns how many records there are.
func (s *Memory) Len() int { return len(s.records) }

// tell enters a change into every feed that it concerns.
func (s *Memory) tell(key Key, old, now Record) {
	if key.Kind == LeaseKind || key.Kind == LeaderKind {
		s.enter(Signs, key, now != nil)
		return
	}
	s.enter(Everything, key, now != nil)
	var before, after []hypervisor.HostName
	if old != nil {
		before = old.Concerns()
	}
	if now != nil {
		after = now.Concerns()
	}
	for _, h := range after {
		if h != "" {
			s.enter(Feed{Host: h}, key, true)
		}
	}
	for _, h := range before {
		if h != "" && !slices.Contains(after, h) {
			s.enter(Feed{Host: h}, key, false)
		}
	}
}

// enter adds a change to one feed; there says whether the record is in it now. A
// record that has left a feed is in its log, and not in its keys.
func (s *Memory) enter(f Feed, key Key, there bool) {
	log := s.feeds[f]
	if log == nil {
		log = &feed{keys: map[Key]bool{}}
		s.feeds[f] = log
	}
	if there {
		log.keys[key] = true
	} else {
		delete(log.keys, key)
	}
	log.log = append(log.log, change{s.revision, key})
	if len(log.log) >= 2*keep {
		log.dropped = log.log[keep-1].at
		log.log = append([]change(nil), log.log[keep:]...)
	}
	if !log.told {
		log.told = true
		s.changed = append(s.changed, f)
	}
}

func byKey(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

func versionOf(r Record) Version {
	if r == nil {
		return 0
	}
	return r.At()
}
