package record

import (
	"cmp"
	"context"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Memory is a store that lives and dies with its process: for simulations and
// tests. It belongs to one caller at a time. The zero value is not ready; use
// [NewMemory].
type Memory struct {
	places   map[Key]*place
	feeds    map[Feed]*feed
	all      *feed // of Everything
	revision Revision
	changed  []Feed
	answers  []Record // room for the answers of Changes
	told     []Feed   // what Changed answered last, to be used again
}

// place is where a record is stored. A record that is deleted leaves its place
// for good: who comes later under the same key gets another one.
type place struct {
	key    Key
	record Record // nil: it was deleted
}

// feed is the log of one feed.
type feed struct {
	name    Feed
	log     []change
	keep    int                 // of the log
	dropped Revision            // changes up to here are no longer in the log
	members map[*place]struct{} // what is in the feed now; nil: everything that is stored
	told    bool                // it is in Memory.changed
}

type change struct {
	at    Revision
	place *place
}

// keep is how many changes a feed remembers at least, and keepOfHost that of one host, of
// which there may be many; who is further behind gets everything.
const (
	keep       = 512
	keepOfHost = 64
)

// NewMemory returns an empty store.
func NewMemory() *Memory {
	all := &feed{name: Everything, keep: keep}
	return &Memory{places: map[Key]*place{}, feeds: map[Feed]*feed{Everything: all}, all: all}
}

// Get implements Store.
func (s *Memory) Get(_ context.Context, key Key) (Record, error) { return s.get(key), nil }

// get returns the nil interface for a record that is not there.
func (s *Memory) get(key Key) Record {
	if p := s.places[key]; p != nil {
		return p.record
	}
	return nil
}

// Put implements Store.
func (s *Memory) Put(_ context.Context, r Record, while ...Record) (Record, error) {
	key := r.Key()
	p := s.places[key]
	if p == nil {
		p = &place{key: key}
	}
	old := p.record
	if versionOf(old) != r.At() {
		return nil, &StoreError{Op: "Put", Key: key, Kind: Stale}
	}
	if err := s.still("Put", while); err != nil {
		return nil, err
	}
	if old == nil {
		s.places[key] = p
	}
	s.revision++
	p.record = r.With(Version(s.revision))
	s.tell(p, old)
	return p.record, nil
}

// Delete implements Store.
func (s *Memory) Delete(_ context.Context, r Record, while ...Record) error {
	key := r.Key()
	p := s.places[key]
	switch {
	case p == nil:
		return nil
	case p.record.At() != r.At():
		return &StoreError{Op: "Delete", Key: key, Kind: Stale}
	}
	if err := s.still("Delete", while); err != nil {
		return err
	}
	s.revision++
	old := p.record
	p.record = nil
	delete(s.places, key)
	s.tell(p, old)
	return nil
}

// still answers Stale unless every record is stored as it was read.
func (s *Memory) still(op string, read []Record) error {
	for _, r := range read {
		if key := r.Key(); versionOf(s.get(key)) != r.At() {
			return &StoreError{Op: op, Key: key, Kind: Stale}
		}
	}
	return nil
}

// Changes implements Store.
func (s *Memory) Changes(_ context.Context, f Feed, since Revision) (Changes, error) {
	c := Changes{Next: s.revision}
	log := s.feeds[f]
	switch {
	case log == nil || since == s.revision && since > 0:
		return c, nil
	case since < log.dropped || since == 0:
		c.Reset, c.Records = true, s.members(log)
		return c, nil
	}
	rest := log.after(since)
	for i, e := range rest {
		switch {
		case repeats(rest[i+1:], e.place):
		case e.place.record != nil:
			if c.Records == nil {
				c.Records = s.room(len(rest) - i)
			}
			c.Records = append(c.Records, e.place.record)
		case s.places[e.place.key] != nil: // it was stored again, perhaps in another feed
			c.Records = append(c.Records, s.get(e.place.key))
		default:
			c.Gone = append(c.Gone, e.place.key)
		}
	}
	return c, nil
}

// room returns an empty slice for n records. Most answers hold one or two: they are cut
// from a larger piece, and each is its reader's for good.
func (s *Memory) room(n int) []Record {
	const piece = 128
	if n > piece/8 {
		return make([]Record, 0, n)
	}
	if len(s.answers) < n {
		s.answers = make([]Record, piece)
	}
	cut := s.answers[:0:n]
	s.answers = s.answers[n:]
	return cut
}

// members returns all records in a feed, in the order of their keys.
func (s *Memory) members(f *feed) []Record {
	var all []*place
	if f == s.all {
		for key, p := range s.places {
			if !isSign(key.Kind) {
				all = append(all, p)
			}
		}
	}
	for p := range f.members {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *place) int { return byKey(a.key, b.key) })
	records := make([]Record, len(all))
	for i, p := range all {
		records[i] = p.record
	}
	return records
}

// after returns what changed after a revision that the log still knows. Whoever asks
// is seldom far behind.
func (f *feed) after(since Revision) []change {
	for ahead := 1; ahead <= min(8, len(f.log)); ahead++ {
		if at := len(f.log) - ahead; f.log[at].at <= since {
			return f.log[at+1:]
		}
	}
	first, _ := slices.BinarySearchFunc(f.log, since+1, func(e change, r Revision) int {
		return cmp.Compare(e.at, r)
	})
	return f.log[first:]
}

// repeats reports whether a place changes again soon: looking a little ahead finds
// most repetitions, and repeating a record does no harm.
func repeats(rest []change, p *place) bool {
	for i := range rest[:min(len(rest), 16)] {
		if rest[i].place == p {
			return true
		}
	}
	return false
}

// Changed returns the feeds that changed since it was last called, in order. The
// answer is valid until it is called again.
func (s *Memory) Changed() []Feed {
	for _, f := range s.changed {
		s.feeds[f].told = false
	}
	s.changed, s.told = s.told[:0], s.changed
	return s.told
}

// Len returns how many records there are.
func (s *Memory) Len() int { return len(s.places) }

// tell enters a change into every feed that it concerns.
func (s *Memory) tell(p *place, old Record) {
	if isSign(p.key.Kind) {
		s.enter(s.feed(Signs), p, p.record != nil)
		return
	}
	s.enter(s.all, p, p.record != nil)
	before, after := concerned(old), concerned(p.record)
	for i, h := range after {
		if h != "" && !slices.Contains(after[:i], h) {
			s.enter(s.feed(Feed{Host: h}), p, true)
		}
	}
	for i, h := range before {
		if h != "" && !slices.Contains(after[:], h) && !slices.Contains(before[:i], h) {
			s.enter(s.feed(Feed{Host: h}), p, false)
		}
	}
}

// concerned returns the hosts that a record concerns, without allocating them. No
// record concerns more than a source and a target.
func concerned(r Record) (hosts [2]hypervisor.HostName) {
	switch r := r.(type) {
	case nil:
	case *Migration:
		hosts = [2]hypervisor.HostName{r.State.Source, r.State.Target}
	case *VM:
		hosts[0] = r.Host
	default:
		copy(hosts[:], r.Concerns())
	}
	return hosts
}

// feed returns the log of a feed, a new one for the first that is in it.
func (s *Memory) feed(name Feed) *feed {
	f := s.feeds[name]
	if f == nil {
		f = &feed{name: name, keep: keep, members: map[*place]struct{}{}}
		if name.Host != "" {
			f.keep = keepOfHost
		}
		s.feeds[name] = f
	}
	return f
}

// enter adds a change to one feed; there says whether the record is in it now. A
// record that has left a feed is in its log, and not among its members.
func (s *Memory) enter(f *feed, p *place, there bool) {
	switch {
	case f == s.all:
	case there:
		f.members[p] = struct{}{}
	default:
		delete(f.members, p)
	}
	if f.log = append(f.log, change{s.revision, p}); len(f.log) == 2*f.keep {
		f.dropped = f.log[f.keep-1].at
		clear(f.log[copy(f.log, f.log[f.keep:]):])
		f.log = f.log[:f.keep]
	}
	if !f.told {
		f.told = true
		s.changed = append(s.changed, f.name)
	}
}

func isSign(k Kind) bool { return k == LeaseKind || k == LeaderKind }

func byKey(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

func versionOf(r Record) Version {
	if r == nil {
		return 0
	}
	return r.At()
}
