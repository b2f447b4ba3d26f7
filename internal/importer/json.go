package importer

import (
	"bufio"
	"fmt"
	"io"

	"github.com/godwit-vm/godwit/internal/yamldoc"
)

// SplitJSON takes a stream of JSON values to pieces: each element of "items" at
// the top of a value is one, and each value without its items. It checks nesting
// and lengths; whether the text between is JSON, the decoder of the pieces does.
func SplitJSON(r *bufio.Reader, use func(Piece) error) error {
	s := jsonSplitter{use: use, line: 1}
	for {
		c, err := r.ReadByte()
		switch {
		case err == io.EOF && s.depth > 0:
			return Error{s.line, "the JSON ends in the middle of an object"}
		case err == io.EOF && s.started():
			return s.emit(&s.doc)
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if err := s.add(c); err != nil {
			return err
		}
		if c == '\n' {
			s.line++
		}
	}
}

// buffer is a text that grows, and where it began.
type buffer struct {
	text []byte
	line int
}

type jsonSplitter struct {
	use      func(Piece) error
	line     int
	depth    int // open brackets
	inString bool
	escaped  bool
	name     []byte // the string that ended last, at depth 1, or its beginning
	inItems  bool
	listed   bool // the value had items
	doc      buffer
	item     buffer
}

// itemsDepth is the depth of the array of items: {"items":[
const itemsDepth = 2

func (s *jsonSplitter) started() bool { return len(s.doc.text) > 0 }

func (s *jsonSplitter) add(c byte) error {
	if s.inString {
		s.str(c)
		return s.put(c)
	}
	switch c {
	case '"':
		s.inString = true
		if s.depth == 1 {
			s.name = s.name[:0]
		}
	case '{', '[':
		s.depth++
		if s.depth > yamldoc.MaxDepth {
			return Error{s.line, fmt.Sprintf(
				"it is nested more than %d deep", yamldoc.MaxDepth)}
		}
		if s.depth == itemsDepth && c == '[' && string(s.name) == "items" {
			s.inItems, s.listed = true, true
			return s.append(&s.doc, c)
		}
	case '}', ']':
		return s.closing(c)
	case ',':
		if s.inItems && s.depth == itemsDepth {
			return s.emit(&s.item)
		}
	}
	return s.put(c)
}

// str follows a string that is open.
func (s *jsonSplitter) str(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped = true
	case c == '"':
		s.inString = false
		return
	}
	if s.depth == 1 && len(s.name) <= len("items") {
		s.name = append(s.name, c)
	}
}

// closing handles a closing bracket: it may end the items, or the value.
func (s *jsonSplitter) closing(c byte) error {
	if s.depth == 0 {
		return Error{s.line, fmt.Sprintf("a %c closes nothing", c)}
	}
	if s.inItems && s.depth == itemsDepth {
		if err := s.emit(&s.item); err != nil {
			return err
		}
		s.inItems = false
		s.name = s.name[:0]
	}
	s.depth--
	if err := s.put(c); err != nil {
		return err
	}
	if s.depth == 0 {
		return s.emit(&s.doc)
	}
	return nil
}

// put appends c to the item, or to the value when there is none.
func (s *jsonSplitter) put(c byte) error {
	if s.inItems {
		return s.append(&s.item, c)
	}
	return s.append(&s.doc, c)
}

// append leaves out the space before a text, so that the text knows its line, and
// indentation, which is half of what kubectl prints.
func (s *jsonSplitter) append(to *buffer, c byte) error {
	n := len(to.text)
	switch {
	case n == 0 && isSpace(c), c == ' ' && to.text[n-1] <= ' ' && !s.inString:
		return nil
	case n == 0:
		to.line = s.line
	}
	if len(to.text) >= MaxPiece {
		return Error{to.line, fmt.Sprintf("an object is longer than %d MiB", MaxPiece>>20)}
	}
	to.text = append(to.text, c)
	return nil
}

// emit hands a text over, if there is any, and begins a new one.
func (s *jsonSplitter) emit(from *buffer) error {
	if len(from.text) == 0 {
		return nil
	}
	p := Piece{Line: from.line, Text: from.text, JSON: true}
	if from == &s.doc {
		p.Rest, s.listed = s.listed, false
	}
	from.text = from.text[:0]
	return s.use(p)
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }
