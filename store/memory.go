package store

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Memory is a store that lives and dies with its process: for simulations and
// tests. It is not safe for concurrent use, not even for reads: an answer is valid until the next call.
// Goroutines that share one hold a lock over each call and over the use of its answer. The
// zero value is not ready; use [NewMemory].
type Memory struct {
	places   [len(kinds)]map[string]*place // by kind and name
	feeds    map[hypervisor.HostName]*feed // of hosts
	all      *feed                         // of Everything
	leases   *feed                         // of Leases
	revision Revision
	recent   []*place // by the last bits of the version that was stored there: what was written lately
	changed  []*feed
	answers  []Record        // room for the answers of Changes
	news     []ChangeTracker // what News answered last, to be used again
	told     []Feed          // what Changed did
	watch    func(old, now Record)
}

// place is where a record is stored. A record that is deleted leaves its place
// for good: a later record of the same key gets another one.
type place struct {
	record Record // a tomb if it was deleted
	seats  seats
}

// tomb is what is left of a record that was deleted.
type tomb Key

func (t tomb) Key() Key                          { return Key(t) }
func (tomb) RecordVersion() Version              { return 0 }
func (t tomb) WithVersion(Version) Record        { return t }
func (tomb) RelatedHosts() []hypervisor.HostName { return nil }

// now returns what is stored; nil is that it was deleted.
func (p *place) now() Record {
	if _, gone := p.record.(tomb); gone {
		return nil
	}
	return p.record
}

// seats are the feeds that a place is in, besides that of everything, and where it is among
// the members of each. Without a feed it is none.
type seats struct {
	feeds [2]*feed
	at    [2]int32
}

// feed is the log of one feed.
type feed struct {
	name    Feed
	log     []change
	keep    int      // of the log
	dropped Revision // changes up to here are no longer in the log
	members []*place // what is in the feed now, in no order; none of Everything
	told    bool     // it is in Memory.changed
	reader  any      // see Memory.Know
}

type change struct {
	at    Revision
	place *place
}

// keep is how many changes a feed remembers at least, and keepOfHost that of one host, of
// which there may be many; a reader that is further behind gets everything. That costs what there is:
// the feed of everything remembers a part of that at least, so that as many hosts as there
// may be can sign on at once. There is room for a part of them from the beginning.
const (
	keep       = 512
	keepOfHost = 64
	part       = 8
)

// NewMemory returns an empty store.
func NewMemory() *Memory {
	s := &Memory{all: newFeed(Everything, keep), leases: &feed{name: Leases, keep: keep},
		feeds: map[hypervisor.HostName]*feed{}, recent: make([]*place, keep)}
	for k := range s.places {
		s.places[k] = map[string]*place{}
	}
	return s
}

func newFeed(name Feed, keep int) *feed {
	return &feed{name: name, keep: keep, log: make([]change, 0, keep/part)}
}

// newHostFeed returns the log of a host's feed, with room for the few that are there.
func newHostFeed(host hypervisor.HostName) *feed {
	f := newFeed(Feed{Host: host}, keepOfHost)
	f.members = make([]*place, 0, 8)
	return f
}

// Grow makes room for so many VMs and as many migrations, in a store without any.
func (s *Memory) Grow(n int) {
	for len(s.recent) < min(n, mostRecent) {
		s.recent = make([]*place, 2*len(s.recent))
	}
	for _, k := range [...]Kind{VMKind, MigrationKind} {
		if len(s.places[k]) == 0 {
			s.places[k] = make(map[string]*place, n)
		}
	}
}

// Watch calls notify after every write, with the record before and now, of which one is nil when a
// record is created or deleted. notify must not change the store.
func (s *Memory) Watch(notify func(old, now Record)) { s.watch = notify }

// Get implements Store.
func (s *Memory) Get(_ context.Context, key Key) (Record, error) { return s.get(key), nil }

// shelf returns the places of a kind, by name. There is one for what is no kind.
func (s *Memory) shelf(k Kind) map[string]*place {
	if int(k) >= len(s.places) {
		k = 0
	}
	return s.places[k]
}

// mostRecent is of how many writings the places are remembered at most. A writing is nearly always of a
// record that was written a moment ago: its version finds it faster than its name.
const mostRecent = 1 << 13

// at returns where the record of a key is stored, if it has a version; nil is that it may be anywhere.
func (s *Memory) at(key Key, v Version) *place {
	p := s.recent[int(v)&(len(s.recent)-1)]
	if v == 0 || p == nil || p.record.RecordVersion() != v || p.record.Key() != key {
		return nil
	}
	return p
}

// get returns the nil interface for a record that is not there.
func (s *Memory) get(key Key) Record {
	if p := s.shelf(key.Kind)[key.Name]; p != nil {
		return p.record
	}
	return nil
}

// Put implements Store.
func (s *Memory) Put(_ context.Context, r Record, while ...Record) (Record, error) {
	key := r.Key()
	p := s.at(key, r.RecordVersion())
	if p == nil {
		p = s.shelf(key.Kind)[key.Name]
	}
	var old Record
	if p != nil {
		old = p.record
	}
	if versionOf(old) != r.RecordVersion() {
		return nil, &StoreError{Op: "Put", Key: key, Kind: Stale}
	}
	if err := s.still("Put", while); err != nil {
		return nil, err
	}
	if p == nil {
		p = new(place)
		s.shelf(key.Kind)[key.Name] = p
	}
	s.revision++
	p.record = r.WithVersion(Version(s.revision))
	s.recent[int(s.revision)&(len(s.recent)-1)] = p
	s.tell(p, old)
	return p.record, nil
}

// Delete implements Store.
func (s *Memory) Delete(_ context.Context, r Record, while ...Record) error {
	key := r.Key()
	p := s.shelf(key.Kind)[key.Name]
	switch {
	case p == nil:
		return nil
	case p.record.RecordVersion() != r.RecordVersion():
		return &StoreError{Op: "Delete", Key: key, Kind: Stale}
	}
	if err := s.still("Delete", while); err != nil {
		return err
	}
	s.revision++
	old := p.record
	p.record = tomb(key)
	delete(s.shelf(key.Kind), key.Name)
	s.tell(p, old)
	return nil
}

// still answers Stale unless every record is stored as it was read.
func (s *Memory) still(op string, read []Record) error {
	for _, r := range read {
		key, at := r.Key(), r.RecordVersion()
		if s.at(key, at) == nil && versionOf(s.get(key)) != at {
			return &StoreError{Op: op, Key: key, Kind: Stale}
		}
	}
	return nil
}

// Changes implements Store.
func (s *Memory) Changes(_ context.Context, f Feed, since Revision) (Changes, error) {
	c := Changes{Next: s.revision}
	log := s.all
	switch {
	case f == Leases:
		log = s.leases
	case f != Everything:
		log = s.feeds[f.Host]
	}
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
		case e.place.now() != nil:
			if c.Records == nil {
				c.Records = s.room(len(rest) - i)
			}
			c.Records = append(c.Records, e.place.record)
		default:
			key := e.place.record.Key()
			again := s.get(key)
			if again == nil {
				c.Gone = append(c.Gone, key)
				continue
			}
			c.Records = append(c.Records, again) // it was stored again, perhaps elsewhere
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
	if f == s.all {
		return s.everything()
	}
	all := slices.Clone(f.members)
	slices.SortFunc(all, func(a, b *place) int { return byKey(a.record.Key(), b.record.Key()) })
	records := make([]Record, len(all))
	for i, p := range all {
		records[i] = p.record
	}
	return records
}

// everything returns all records but the heartbeats, in the order of their keys.
func (s *Memory) everything() []Record {
	type named struct {
		name  string
		place *place
	}
	records, all := make([]Record, 0, s.Len()), []named(nil)
	for _, kind := range Kinds() {
		if isSign(kind) {
			continue
		}
		all = slices.Grow(all[:0], len(s.places[kind]))
		for name, p := range s.places[kind] {
			all = append(all, named{name, p})
		}
		slices.SortFunc(all, func(a, b named) int { return strings.Compare(a.name, b.name) })
		for _, n := range all {
			records = append(records, n.place.record)
		}
	}
	return records
}

// after returns what changed after a revision that the log still knows. A reader
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

// Len returns how many records there are.
func (s *Memory) Len() int {
	n := 0
	for kind := range s.places {
		n += len(s.places[kind])
	}
	return n
}

// tell enters a change into every feed that it concerns: those that the record is in, and
// those that it has left.
func (s *Memory) tell(p *place, old Record) {
	if !isSign(p.record.Key().Kind) {
		s.enter(s.all, p)
	}
	left := s.move(p, s.concerned(p))
	for _, feeds := range [...][2]*feed{p.seats.feeds, left} {
		for _, f := range feeds {
			if f != nil {
				s.enter(f, p)
			}
		}
	}
	if s.watch != nil {
		s.watch(old, p.now())
	}
}

// concerned returns the feeds that a place is to be in, besides that of everything, each
// once. No record concerns more than a source and a target. Most records stay where they
// are: then no feed is looked for.
func (s *Memory) concerned(p *place) (feeds [2]*feed) {
	if p.now() != nil && isSign(p.record.Key().Kind) {
		feeds[0] = s.leases
		return feeds
	}
	hosts := hostsOf(p.now())
	if hosts[1] == hosts[0] {
		hosts[1] = ""
	}
	for i, h := range hosts {
		switch was := p.seats.feeds[i]; {
		case h == "":
		case was != nil && was.name.Host == h:
			feeds[i] = was
		default:
			feeds[i] = s.feed(h)
		}
	}
	return feeds
}

// move seats a place in other feeds than before, and returns those that it has left.
func (s *Memory) move(p *place, to [2]*feed) (left [2]*feed) {
	if p.seats.feeds == to {
		return left
	}
	for i, was := range p.seats.feeds {
		if was == nil {
			continue
		}
		was.leave(p)
		if was != to[0] && was != to[1] {
			left[i] = was
		}
	}
	p.seats = seats{feeds: to}
	for i, f := range to {
		if f != nil {
			p.seats.at[i] = int32(len(f.members))
			f.members = append(f.members, p)
		}
	}
	return left
}

// leave takes a place out of the members of a feed; the last of them takes its seat.
func (f *feed) leave(p *place) {
	free, last := *p.seats.in(f), f.members[len(f.members)-1]
	f.members[free] = last
	*last.seats.in(f) = free
	f.members[len(f.members)-1] = nil
	f.members = f.members[:len(f.members)-1]
}

// in returns where the seat in a feed is.
func (s *seats) in(f *feed) *int32 {
	if s.feeds[0] == f {
		return &s.at[0]
	}
	return &s.at[1]
}

// hostsOf returns the hosts that a record concerns, without allocating them.
func hostsOf(r Record) (hosts [2]hypervisor.HostName) {
	switch r := r.(type) {
	case nil:
	case *Migration:
		return r.hosts()
	case *VM:
		hosts[0] = r.Host
	case *Host:
		hosts[0] = r.Host.Name
	default:
		copy(hosts[:], r.RelatedHosts())
	}
	return hosts
}

// feed returns the log of a host's feed, a new one for the first that is in it.
func (s *Memory) feed(host hypervisor.HostName) *feed {
	f := s.feeds[host]
	if f == nil {
		f = newHostFeed(host)
		s.feeds[host] = f
	}
	return f
}

// enter adds a change to one feed. A record that has left a feed is in its log once
// more, and not among its members.
func (s *Memory) enter(f *feed, p *place) {
	if f.log = append(f.log, change{s.revision, p}); len(f.log) >= 2*f.keep {
		s.cut(f)
	}
	if !f.told {
		f.told = true
		s.changed = append(s.changed, f)
	}
}

// cut drops the older half of a long log, unless it is to be longer.
func (s *Memory) cut(f *feed) {
	if f == s.all {
		f.keep = max(f.keep, s.Len()/part)
	}
	if old := len(f.log) - f.keep; old >= f.keep {
		f.dropped = f.log[old-1].at
		clear(f.log[copy(f.log, f.log[old:]):])
		f.log = f.log[:f.keep]
	}
}

func isSign(k Kind) bool { return k == LeaseKind || k == LeaderKind }

func byKey(a, b Key) int {
	if a.Kind != b.Kind {
		return cmp.Compare(a.Kind, b.Kind)
	}
	return strings.Compare(a.Name, b.Name)
}

func versionOf(r Record) Version {
	if r == nil {
		return 0
	}
	return r.RecordVersion()
}
