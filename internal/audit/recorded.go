package audit

import (
	"cmp"
	"context"
	"errors"

	"github.com/godwit-vm/godwit/store"
)

// recorded is the store of a participant whose looks are recorded.
type recorded struct {
	store.Store
	*Recorder
}

// Changes implements store.Store.
func (s *recorded) Changes(ctx context.Context, f store.Feed, since store.Revision) (
	store.Changes, error) {
	c, err := s.Store.Changes(ctx, f, since)
	look := Line{Kind: lookKind, At: s.began, What: "looks", Journal: &Journal{Before: s.last}}
	if err != nil {
		look.Journal.Failed = Failure(err)
		s.add(look)
		return c, err
	}
	lines := s.reads(&c)
	look.Journal.Changes, look.Journal.Reset = lines[len(lines)-1].Journal.Changes, c.Reset
	lines[len(lines)-1] = look
	s.add(lines...)
	return c, nil
}

// mostRead is about how many bytes of changes are on one line.
const mostRead = maxLine / 4

// reads returns the lines of what was read, one at least.
func (s *recorded) reads(c *store.Changes) []Line {
	lines, size := []Line{s.line()}, 0
	put := func(change Change) {
		if size += len(change.Text) + len(change.Patch) + len(change.Record); size > mostRead {
			lines, size = append(lines, s.line()), 0
		}
		j := lines[len(lines)-1].Journal
		j.Changes = append(j.Changes, change)
	}
	for _, r := range c.Records {
		change, err := s.told.Encode(r)
		s.broken = s.broken || err != nil
		s.told.Remember(r)
		put(change)
	}
	for _, key := range c.Gone {
		s.told.Forget(key)
		put(Change{Record: nameOf(key), Gone: true})
	}
	return lines
}

func (s *recorded) line() Line {
	return Line{Kind: readKind, At: s.began, What: "reads", Journal: &Journal{}}
}

// Put implements store.Store.
func (s *recorded) Put(ctx context.Context, r store.Record, while ...store.Record) (
	store.Record, error) {
	stored, err := s.Store.Put(ctx, r, while...)
	if err != nil {
		s.wrote(about(r), r, err)
		return stored, err
	}
	s.wrote(s.said.written(stored, r.RecordVersion()), stored, nil)
	s.told.Remember(stored)
	return stored, nil
}

// Delete implements store.Store.
func (s *recorded) Delete(ctx context.Context, r store.Record, while ...store.Record) error {
	err := s.Store.Delete(ctx, r, while...)
	l := s.said.deleted(r)
	l.Journal = &Journal{Write: &Change{Gone: true}, Failed: Failure(err)}
	if s.did(l); err == nil {
		s.told.Forget(r.Key())
	}
	return err
}

// wrote writes down that a record was written, or what the store has answered instead.
func (s *recorded) wrote(l Line, r store.Record, answer error) {
	c, err := s.told.Encode(r)
	s.broken = s.broken || err != nil
	c.Record, c.Version = "", 0 // the line says them
	l.Journal = &Journal{Write: &c, Failed: Failure(answer)}
	if answer != nil {
		l.Was, l.Version = uint64(r.RecordVersion()), 0
	}
	s.did(l)
}

// did writes the line of a writing.
func (s *recorded) did(l Line) {
	if l.Journal.Failed != "" {
		l.Kind = refusedKind
	}
	s.done.Lines++
	s.add(l)
}

// failures are the words for the kinds of a store's errors.
var failures = map[store.StoreKind]string{store.Unanswered: "unanswered",
	store.Stale: "stale", store.Unavailable: "unavailable", store.Unreadable: "unreadable",
	store.Full: "full", store.Forbidden: "forbidden", store.SetBack: "set-back", store.Foreign: "foreign"}

// Failure is the word of a log for an error of a store; "" for none.
func Failure(err error) string {
	if err == nil {
		return ""
	}
	if e, is := errors.AsType[*store.StoreError](err); is {
		return cmp.Or(failures[e.Kind], failures[store.Unanswered])
	}
	return failures[store.Unanswered]
}

// FailureKind is the kind of error that a word of [Failure] stands for.
func FailureKind(word string) (k store.StoreKind, known bool) {
	for k, w := range failures {
		if w == word {
			return k, true
		}
	}
	return 0, false
}
