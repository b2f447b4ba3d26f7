// Package changes remembers what has changed in the feeds of a store, for stores that keep
// no history of their own.
//
// A [Log] knows which records are in each feed, and which were the last to change. It lives
// in memory: whoever read the store before it was opened is answered everything. It holds
// no records; whoever owns it does, and keeps others from it meanwhile.
package changes

import (
	"cmp"
	"maps"
	"slices"

	"github.com/godwit-vm/godwit/record"
)

// keep is how many changes a feed remembers at least; whoever is further behind gets
// everything.
const keep = 512

// A Log is the history of a store since it was opened. It belongs to one caller at a time.
type Log struct {
	began record.Revision
	at    record.Revision
	feeds map[record.Feed]*feed
}

// feed is the history of one feed.
type feed struct {
	changes []change
	dropped record.Revision     // what happened up to here is no longer in changes
	keys    map[record.Key]bool // what is in the feed now
}

type change struct {
	at  record.Revision
	key record.Key
}

// New begins a log at a revision, with the records that are stored then. It is one at
// least: zero is before everything.
func New(began record.Revision, stored func(yield func(record.Record) bool)) *Log {
	began = max(began, 1)
	l := &Log{began: began, at: began, feeds: map[record.Feed]*feed{}}
	for r := range stored {
		for _, f := range record.Feeds(r) {
			l.feed(f).keys[r.Key()] = true
		}
	}
	return l
}

// At is the revision of the last change.
func (l *Log) At() record.Revision { return l.at }

// feed returns the history of a feed, a new one if it has none.
func (l *Log) feed(f record.Feed) *feed {
	h := l.feeds[f]
	if h == nil {
		h = &feed{dropped: l.began, keys: map[record.Key]bool{}}
		l.feeds[f] = h
	}
	return h
}

// Enter adds the change of one record, at a revision above all before: old is what was
// stored, now what is; nil stands for nothing. It answers the feeds that it is in.
func (l *Log) Enter(at record.Revision, old, now record.Record) []record.Feed {
	l.at = at
	var key record.Key
	var before, after []record.Feed
	if old != nil {
		key, before = old.Key(), record.Feeds(old)
	}
	if now != nil {
		key, after = now.Key(), record.Feeds(now)
	}
	in := after
	for _, f := range before {
		if !slices.Contains(after, f) {
			in = append(in, f) // it has left the feed, which learns of it
		}
	}
	for i, f := range in {
		l.feed(f).enter(change{at, key}, i < len(after))
	}
	return in
}

// enter adds a change; there says whether the record is in the feed after it.
func (h *feed) enter(c change, there bool) {
	if there {
		h.keys[c.key] = true
	} else {
		delete(h.keys, c.key)
	}
	h.changes = append(h.changes, c)
	if len(h.changes) >= 2*keep {
		h.dropped = h.changes[keep-1].at
		h.changes = slices.Clone(h.changes[keep:])
	}
}

// Forget drops all that is remembered of what has changed until now.
func (l *Log) Forget() {
	l.began = l.at
	for _, h := range l.feeds {
		h.dropped, h.changes = l.at, nil
	}
}

// known reports whether the log knows all that has changed in a feed after a revision. It
// does not know of one that is still to come: an older copy of the store took its place.
func (l *Log) known(f record.Feed, since record.Revision) bool {
	dropped := l.began
	if h := l.feeds[f]; h != nil {
		dropped = h.dropped
	}
	return dropped <= since && since <= l.at
}

// Changed reports whether something in a feed has changed after a revision, or may have.
func (l *Log) Changed(f record.Feed, since record.Revision) bool {
	if !l.known(f, since) {
		return true
	}
	h := l.feeds[f]
	return h != nil && len(h.changes) > 0 && h.changes[len(h.changes)-1].at > since
}

// Since answers what has changed in a feed after a revision, each record once. get answers
// a record as it is stored now; nil says that it is gone.
func (l *Log) Since(f record.Feed, since record.Revision,
	get func(record.Key) record.Record) record.Changes {
	c := record.Changes{Next: l.at, Reset: !l.known(f, since)}
	for _, key := range l.keys(f, since, c.Reset) {
		if r := get(key); r != nil {
			c.Records = append(c.Records, r)
		} else {
			c.Gone = append(c.Gone, key)
		}
	}
	return c
}

// keys lists the records that changed, in order of their last change, or all.
func (l *Log) keys(f record.Feed, since record.Revision, all bool) []record.Key {
	h := l.feeds[f]
	if h == nil {
		return nil
	}
	if all {
		return slices.SortedFunc(maps.Keys(h.keys), func(a, b record.Key) int {
			return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
		})
	}
	var keys []record.Key
	seen := map[record.Key]bool{}
	for _, c := range slices.Backward(h.changes) {
		if c.at <= since {
			break
		}
		if !seen[c.key] {
			seen[c.key] = true
			keys = append(keys, c.key)
		}
	}
	slices.Reverse(keys)
	return keys
}
