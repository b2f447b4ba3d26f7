package audit

import (
	"errors"
	"fmt"
	"io"
)

// A Wrong is a line of a log that makes no sense where it is.
type Wrong struct {
	Row int // in the file, from 1
	Err error
}

// Error says where, and what.
func (w *Wrong) Error() string { return fmt.Sprintf("line %d: %v", w.Row, w.Err) }

// Unwrap returns what is wrong.
func (w *Wrong) Unwrap() error { return w.Err }

// reader reads a log once, from its beginning to its end.
type reader struct {
	begun  func(*term) error        // a controller begins
	looked func(*term, *look) error // it has looked
	term   *term                    // nil before the first
	terms  int
	others int // lines that no replay needs
	// skipped counts lines of looks of a controller that began in another file.
	skipped int
}

// read reads a log. The error is a *[Wrong], or a failure to read.
func (r *reader) read(log io.Reader) error {
	row := 0
	_, err := Check(log, func(at int, l Line, wrong []Finding) error {
		if row = at; len(wrong) > 0 {
			return &Wrong{at, errors.New("the log was tampered with: " + wrong[0].What)}
		}
		if err := r.take(&l); err != nil {
			return &Wrong{at, err}
		}
		return nil
	})
	if err == nil {
		if err = r.end(); err == nil && r.terms == 0 {
			err = r.nothing()
		}
		if err != nil {
			err = &Wrong{max(row, 1), err}
		}
	}
	if long, is := errors.AsType[Finding](err); is {
		err = &Wrong{long.Row, errors.New(long.What)}
	}
	return err
}

// nothing says what is missing in a log in which nothing can be replayed.
func (r *reader) nothing() error {
	if r.skipped > 0 {
		return fmt.Errorf("no controller begins in this file: %d lines of looks go on from the "+
			"file before; a line of the kind start, with a journal, is missing", r.skipped)
	}
	return fmt.Errorf("nothing can be replayed: none of %d lines says what a controller has read; "+
		"a line of the kind start with the configuration, and lines of the kind look are "+
		"missing, as in logs of agents and of versions that did not write them", r.others)
}

// take takes in a line of the log.
func (r *reader) take(l *Line) error {
	if l.Journal != nil && l.Journal.Origin != nil {
		return r.begin(l)
	}
	if l.Look == 0 {
		r.others++
		return nil
	}
	if r.term == nil {
		r.skipped++
		return nil
	}
	done, err := r.term.take(l)
	if done == nil || err != nil {
		return err
	}
	return r.looked(r.term, done)
}

// begin lets a controller begin, after what is left of the one before.
func (r *reader) begin(l *Line) error {
	if err := r.end(); err != nil {
		return err
	}
	t, err := begin(l)
	if err != nil {
		return err
	}
	r.terms++
	r.term = t
	return r.begun(t)
}

// end ends the last look of a controller, as far as it was written down.
func (r *reader) end() error {
	if r.term == nil || r.term.look == nil {
		return nil
	}
	last := r.term.look
	r.term.look = nil
	return r.looked(r.term, last)
}
