package importer

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// SplitYAML takes a stream of YAML documents to pieces. kubectl prints a list
// in block style, with each item after a dash in the column of the first:
//
//	apiVersion: v1
//	items:
//	- apiVersion: v1
//	  kind: Node
//	kind: List
//
// In block style nothing inside an item, not even a line of a text, can begin in
// the dash's column. So lines are enough to take a list apart, in the memory of
// one item; any other document is one piece.
func SplitYAML(r *bufio.Reader, use func(Piece) error) error {
	s := yamlSplitter{use: use, dash: none}
	for {
		line, err := s.read(r)
		if err != nil && err != io.EOF {
			return err
		}
		if len(line) > 0 {
			if err := s.add(line); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return s.endDocument()
		}
	}
}

// What the column of the dashes is when there is none.
const (
	none    = -1 // not in the items of a list
	awaited = -2 // after "items:", before the first dash
)

type yamlSplitter struct {
	use       func(Piece) error
	line      int // the number of the line that was read last
	last      int // the number of the document's last line
	dash      int // the column of the dashes of the items
	item      []byte
	itemLine  int
	doc       []byte // the document without its items
	docLine   int
	listed    bool // the document had items
	startDone bool // docLine is set
}

// read returns the next line with its end; it fails when it is too long.
func (s *yamlSplitter) read(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		line = bytes.Clone(line)
		for err == bufio.ErrBufferFull && len(line) <= MaxPiece {
			var more []byte
			more, err = r.ReadSlice('\n')
			line = append(line, more...)
		}
	}
	s.line++
	if len(line) > MaxPiece {
		return nil, s.tooLong(s.line)
	}
	return line, err
}

func (s *yamlSplitter) add(line []byte) error {
	text := bytes.TrimLeft(line, " ")
	indent := len(line) - len(text)
	text = bytes.TrimSpace(text)
	empty := len(text) == 0
	switch {
	case indent == 0 && isMarker(text):
		return s.endDocument()
	}
	s.last = s.line
	switch {
	case s.dash == awaited && !empty && text[0] != '#':
		if isDash(text) {
			s.dash = indent
			s.listed = true
			return s.startItem(line)
		}
		s.dash = none
	case s.dash >= 0 && !empty && indent == s.dash && isDash(text):
		return s.startItem(line)
	case s.dash >= 0 && !empty && indent <= s.dash && text[0] != '#':
		s.dash = none
		if err := s.endItem(); err != nil {
			return err
		}
	case s.dash >= 0:
		return s.grow(&s.item, line, s.itemLine)
	}
	if indent == 0 && bytes.HasPrefix(text, []byte("items:")) {
		if rest := bytes.TrimSpace(text[len("items:"):]); len(rest) == 0 || rest[0] == '#' {
			s.dash = awaited
		}
	}
	if !s.startDone {
		s.docLine, s.startDone = s.line, true
	}
	return s.grow(&s.doc, line, s.docLine)
}

// startItem ends the item before and begins one; the dash becomes a space, so
// that columns stay as they are.
func (s *yamlSplitter) startItem(line []byte) error {
	if err := s.endItem(); err != nil {
		return err
	}
	s.itemLine = s.line
	s.item = append(s.item, line...)
	s.item[s.dash] = ' '
	return nil
}

func (s *yamlSplitter) endItem() error {
	if len(s.item) == 0 {
		return nil
	}
	text := s.item
	s.item = s.item[:0]
	return s.use(Piece{Line: s.itemLine, Text: text})
}

func (s *yamlSplitter) endDocument() error {
	if err := s.endItem(); err != nil {
		return err
	}
	text, listed := s.doc, s.listed
	s.doc, s.listed, s.dash, s.startDone = s.doc[:0], false, none, false
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	p := Piece{Line: s.docLine, Text: text, Rest: listed}
	if listed {
		p.End = s.last
	}
	return s.use(p)
}

func (s *yamlSplitter) grow(to *[]byte, line []byte, start int) error {
	if len(*to)+len(line) > MaxPiece {
		return s.tooLong(start)
	}
	*to = append(*to, line...)
	return nil
}

func (s *yamlSplitter) tooLong(line int) error {
	return Error{line, fmt.Sprintf("an object is longer than %d MiB", MaxPiece>>20)}
}

// isMarker: a line between documents.
func isMarker(text []byte) bool {
	return string(text) == "---" || string(text) == "..." ||
		bytes.HasPrefix(text, []byte("--- #"))
}

func isDash(text []byte) bool {
	return len(text) > 0 && text[0] == '-' && (len(text) == 1 || text[1] == ' ')
}
