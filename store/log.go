package store

import (
	"cmp"
	"maps"
	"slices"
)

// A Log is the history of a store since it was opened. It belongs to one caller at a time.
type ChangeLog struct {
	began Revision
	at    Revision
	feeds map[Feed]*changesFeed
}

// changesFeed is the history of one feed.
type changesFeed struct {
	changes []changesChange
	dropped Revision     // what happened up to here is no longer in changes
	keys    map[Key]bool // what is in the feed now
}

type changesChange struct {
	at  Revision
	key Key
}

// NewChangeLog begins a log at a revision, with the records that are stored then. It is one at
// least: zero is before everything.
func NewChangeLog(began Revision, stored func(yield func(Record) bool)) *ChangeLog {
	began = max(began, 1)
	l := &ChangeLog{began: began, at: began, feeds: map[Feed]*changesFeed{}}
	for r := range stored {
		for _, f := range Feeds(r) {
			l.feed(f).keys[r.Key()] = true
		}
	}
	return l
}

// feed returns the history of a feed, a new one if it has none.
func (l *ChangeLog) feed(f Feed) *changesFeed {
	h := l.feeds[f]
	if h == nil {
		h = &changesFeed{dropped: l.began, keys: map[Key]bool{}}
		l.feeds[f] = h
	}
	return h
}

// Enter adds the change of one record, at a revision above all before: old is what was
// stored, now what is; nil stands for nothing. It answers the feeds that it is in.
func (l *ChangeLog) Enter(at Revision, old, now Record) []Feed {
	l.at = at
	var key Key
	var before, after []Feed
	if old != nil {
		key, before = old.Key(), Feeds(old)
	}
	if now != nil {
		key, after = now.Key(), Feeds(now)
	}
	in := after
	for _, f := range before {
		if !slices.Contains(after, f) {
			in = append(in, f) // it has left the feed, which learns of it
		}
	}
	for i, f := range in {
		l.feed(f).enter(changesChange{at, key}, i < len(after))
	}
	return in
}

// enter adds a change; there says whether the record is in the feed after it.
func (h *changesFeed) enter(c changesChange, there bool) {
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
func (l *ChangeLog) Forget() {
	l.began = l.at
	for _, h := range l.feeds {
		h.dropped, h.changes = l.at, nil
	}
}

// known reports whether the log knows all that has changed in a feed after a revision. It
// does not know of one that is still to come: an older copy of the store took its place.
func (l *ChangeLog) known(f Feed, since Revision) bool {
	dropped := l.began
	if h := l.feeds[f]; h != nil {
		dropped = h.dropped
	}
	return dropped <= since && since <= l.at
}

// Changed reports whether something in a feed has changed after a revision, or may have.
func (l *ChangeLog) Changed(f Feed, since Revision) bool {
	if !l.known(f, since) {
		return true
	}
	h := l.feeds[f]
	return h != nil && len(h.changes) > 0 && h.changes[len(h.changes)-1].at > since
}

// Since answers what has changed in a feed after a revision, each record once. get answers
// a record as it is stored now; nil says that it is gone.
func (l *ChangeLog) Since(f Feed, since Revision,
	get func(Key) Record) Changes {
	c := Changes{Next: l.at, Reset: !l.known(f, since)}
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
func (l *ChangeLog) keys(f Feed, since Revision, all bool) []Key {
	h := l.feeds[f]
	if h == nil {
		return nil
	}
	if all {
		return slices.SortedFunc(maps.Keys(h.keys), func(a, b Key) int {
			return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
		})
	}
	var keys []Key
	seen := map[Key]bool{}
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
