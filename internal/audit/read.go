package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// A Finding is what Verify found wrong with one line of a file.
type Finding struct {
	Row  int    `json:"row"` // in the file, from 1
	What string `json:"what"`
}

// Error says where, and what.
func (f Finding) Error() string { return fmt.Sprintf("line %d: %s", f.Row, f.What) }

// A Summary is what Verify read.
type Summary struct {
	Lines    int       `json:"lines"` // whole ones
	Torn     int       `json:"torn"`  // that a crash left unfinished
	First    uint64    `json:"first"`
	Last     uint64    `json:"last"`
	Findings []Finding `json:"findings,omitempty"` // nothing is wrong when there are none
}

// Read calls do with every whole line of a file, in order, until it returns an error, and
// tells how many were torn.
func Read(r io.Reader, do func(Line) error) (torn int, err error) {
	err = scan(r, func(_ int, text []byte) error {
		l, err := parse(text)
		if err != nil {
			torn++
			return nil
		}
		return do(l)
	})
	return torn, err
}

func scan(r io.Reader, do func(row int, text []byte) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	row := 0
	for s.Scan() {
		row++
		if err := do(row, s.Bytes()); err != nil {
			return err
		}
	}
	if errors.Is(s.Err(), bufio.ErrTooLong) {
		return Finding{row + 1, "it is too long for a line of an audit log"}
	}
	return s.Err()
}

// Verify reads a file and says what is missing, was put in or was changed. A line that was
// torn by a crash is counted: no whole line counts on it.
func Verify(r io.Reader) (Summary, error) {
	return Check(r, func(int, Line, []Finding) error { return nil })
}

// Check does what Verify does, and calls do with every whole line: its row in the file, and
// what is wrong with it. It ends with the first error of do, and returns that.
func Check(r io.Reader, do func(row int, l Line, wrong []Finding) error) (Summary, error) {
	var s Summary
	last := ""
	err := scan(r, func(row int, text []byte) error {
		l, err := parse(text)
		if err != nil {
			s.Torn++
			return nil
		}
		known := len(s.Findings)
		switch {
		case s.Lines == 0:
			s.First = l.Seq
		case l.Seq != s.Last+1:
			s.find(row, "number %d follows %d", l.Seq, s.Last)
		case l.Prev != last:
			s.find(row, "the line before number %d is not the one that was written", l.Seq)
		}
		s.Lines++
		s.Last, last = l.Seq, hash(text)
		return do(row, l, s.Findings[known:])
	})
	return s, err
}

func (s *Summary) find(row int, format string, args ...any) {
	s.Findings = append(s.Findings, Finding{row, fmt.Sprintf(format, args...)})
}
