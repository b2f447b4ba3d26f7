package audit

import (
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/store"
)

// A look is one look of the controller, as the log tells it.
type look struct {
	number  uint64
	line    uint64 // its number in the log
	at      time.Time
	changes store.Changes
	failed  string // what the store has answered instead
	writes  []write
	met     int // writes that the controller that is replayed has done, too
	said    []string
	lines   int      // of what was done and said
	outcome *Outcome // as the next look tells it; nil when there was none
}

// A write is a writing of the controller, or an attempt.
type write struct {
	line   Line
	record store.Record // as it was to be stored, with its version; nil is a deletion
	failed string
	said   int  // how much was said in the look before it
	met    bool // by the controller that is replayed
}

// A term is what one controller has done, from its beginning to its end.
type term struct {
	origin Origin
	begin  Line
	told   DeltaLog
	read   []Change // by the look that is to come
	look   *look    // that is being read; nil before the first
	looks  uint64
}

// begin takes in the line with which a controller begins.
func begin(l *Line) (*term, error) {
	o := l.Journal.Origin
	if o.Format != journalFormat || o.Records > store.Format || o.Records < 1 {
		return nil, fmt.Errorf("it was written by %.100q in format %d with records of format %d; "+
			"this godwit replays format %d with records of format %d at most: use that version",
			o.Build, o.Format, o.Records, journalFormat, store.Format)
	}
	return &term{origin: *o, begin: *l}, nil
}

// take takes in a line. It returns a look when it is complete.
func (t *term) take(l *Line) (done *look, err error) {
	if l.Journal == nil && (l.Kind != NoteKind && l.Kind != reservationKind) {
		return nil, fmt.Errorf("what was read or written in look %d was too long to be kept",
			l.Look)
	}
	switch l.Kind {
	case readKind, lookKind:
		if l.Look != t.looks+1 {
			return nil, fmt.Errorf("look %d follows look %d: what is between is missing",
				l.Look, t.looks)
		}
		t.read = append(t.read, l.Journal.Changes...)
		if l.Kind == readKind {
			return nil, nil
		}
		return t.next(l)
	}
	if t.look == nil || l.Look != t.look.number {
		return nil, fmt.Errorf("it belongs to look %d, which has not begun, or is over", l.Look)
	}
	return nil, t.look.add(l, &t.told, t.origin.Records)
}

// next begins a look, which ends the one before.
func (t *term) next(l *Line) (*look, error) {
	done, before := t.look, l.Journal.Before
	switch {
	case done == nil && before == nil:
	case done == nil || before == nil:
		return nil, fmt.Errorf("look %d does not say how the one before has ended", l.Look)
	case done.lines != before.Lines:
		return nil, fmt.Errorf("look %d was told in %d lines, and %d are left", done.number,
			before.Lines, done.lines)
	default:
		done.outcome = before
	}
	t.looks = l.Look
	t.look = &look{number: l.Look, line: l.Seq, at: l.At, failed: l.Journal.Failed}
	// What the look before has done was taken in with its lines: this is read after it.
	t.look.changes.Reset = l.Journal.Reset
	read := t.read
	t.read = nil
	return done, t.hear(read)
}

// hear takes in what the look has read.
func (t *term) hear(read []Change) error {
	c := &t.look.changes
	for _, change := range read {
		r, err := t.told.Decode(change, t.origin.Records)
		if err != nil {
			return err
		}
		if r == nil {
			key, _ := Key(change.Record)
			t.told.Forget(key)
			c.Gone = append(c.Gone, key)
			continue
		}
		t.told.Remember(r)
		c.Records = append(c.Records, r)
	}
	return nil
}

// add takes in what was done or said in a look.
func (k *look) add(l *Line, told *DeltaLog, format int) error {
	k.lines++
	switch l.Kind {
	case NoteKind, reservationKind:
		k.said = append(k.said, telling(l))
		return nil
	case writeKind, refusedKind:
	default:
		return fmt.Errorf("%.100q is no kind of line of a look", l.Kind)
	}
	w := l.Journal.Write
	if w == nil {
		return fmt.Errorf("what was written in look %d is missing", l.Look)
	}
	c := *w
	c.Record, c.Version = l.Record, l.Version
	r, err := told.Decode(c, format)
	if err != nil {
		return err
	}
	key, err := Key(l.Record)
	if err != nil {
		return err
	}
	failed := l.Journal.Failed
	if _, known := FailureKind(failed); failed != "" && !known {
		return fmt.Errorf("%.100q is no answer of a store", failed)
	}
	switch {
	case failed != "":
	case r == nil:
		told.Forget(key)
	default:
		told.Remember(r)
	}
	k.writes = append(k.writes, write{line: *l, record: r, failed: failed, said: len(k.said)})
	return nil
}

// telling is what a line says to people.
func telling(l *Line) string {
	text := string(l.VM)
	if l.Host != "" {
		text += " " + string(l.Host)
	}
	return text + ": " + l.What
}
