package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Limits on YAML that is held in memory as a whole. The parser needs about 100
// bytes and a third of a microsecond for each byte of it.
const (
	// MaxSize is how long a document may be.
	MaxSize = 4 << 20
	// MaxDepth is how deep its values may be nested.
	MaxDepth = 100
)

// A Document is one YAML document that has been parsed and holds nothing
// dangerous: no anchors, aliases, tags, merge keys or deep nesting. It knows the
// lines of its fields.
type Document struct {
	name  string
	first int // the number of its first line in the file
	size  int
	root  ast.Node // nil when the document is empty
}

// ReadAll reads all of r, or fails when it is longer than limit bytes. It reads
// no further than one byte beyond.
func ReadAll(name string, r io.Reader, limit int) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case len(data) > limit:
		return nil, Problems{{File: name, Message: fmt.Sprintf(
			"it is longer than %d MiB", limit>>20)}}
	}
	return data, nil
}

// Parse parses one YAML document, which may be JSON. The first is the number of
// its first line in the named file: 1 for a whole file. Every error is
// [Problems].
func Parse(name string, first int, data []byte) (*Document, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // as Windows begins its files
	d := &Document{name: name, first: first, size: len(data)}
	if len(data) > MaxSize {
		return nil, d.problems(nil, "the document is longer than %d MiB", MaxSize>>20)
	}
	if i := bytes.IndexByte(data, 0); i >= 0 {
		line, what := first+bytes.Count(data[:i], []byte{'\n'}), "it contains a NUL byte"
		if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
			what = "it is UTF-16: save it as UTF-8"
		}
		return nil, Problems{{File: name, Line: line, Message: what}}
	}
	err := d.guard(func() error {
		tokens := lexer.Tokenize(string(data))
		if err := d.checkTokens(tokens); err != nil {
			return err
		}
		file, err := parser.Parse(tokens, 0)
		if err != nil {
			return d.translate(err)
		}
		return d.keep(file.Docs)
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// keep takes the body of the one document that has one.
func (d *Document) keep(docs []*ast.DocumentNode) error {
	for _, doc := range docs {
		switch {
		case doc.Body == nil || doc.Body.Type() == ast.CommentType:
		case d.root != nil:
			return d.problems(doc.Body.GetToken(), "there is a second document")
		default:
			d.root = doc.Body
		}
	}
	return nil
}

// checkTokens refuses what makes YAML dangerous before anything recurses into
// it: whatever expands, and nesting deeper than MaxDepth. In blocks each deeper
// column nests, in flows each open bracket.
func (d *Document) checkTokens(tokens token.Tokens) error {
	var columns []int
	flow := 0
	for _, t := range tokens {
		switch t.Type {
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType,
			token.DirectiveType:
			return d.problems(t, "YAML anchors, aliases, tags, merge keys and directives "+
				"are not accepted")
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow = max(0, flow-1)
		case token.CommentType:
			continue
		}
		if flow == 0 {
			for len(columns) > 0 && columns[len(columns)-1] >= t.Position.Column {
				columns = columns[:len(columns)-1]
			}
			columns = append(columns, t.Position.Column)
		}
		if len(columns)+flow > MaxDepth {
			return d.problems(t, "it is nested more than %d deep", MaxDepth)
		}
	}
	return nil
}

// Decode stores the document in what v points to, a struct with yaml tags, and
// refuses fields that the struct does not have. Its error is all [Problems] of a
// small document; of one that is larger than 50 KiB it may leave some out.
func (d *Document) Decode(v any) error {
	report := Report{File: d.name}
	if d.root == nil {
		return d.problems(nil, "it is empty")
	}
	d.asWritten()
	// The decoder stops at the first problem. So what it complains of is taken
	// out and it is asked again, as often as the size allows.
	for range d.attempts() {
		err := d.guard(func() error { return yaml.NodeToValue(d.root, v, yaml.Strict()) })
		if err == nil {
			break
		}
		where, message := complaint(err)
		line := 0
		if where != nil {
			line = d.line(where)
		}
		report.Errorf(line, d.field(where), "%s", message)
		if where == nil || !prune(d.root, where) {
			break
		}
	}
	if report.Err() == nil {
		if err := d.fractions(v, &report); err != nil {
			return err
		}
	}
	return report.Err()
}

// attempts is how often a document may be decoded, which takes long where it is large.
func (d *Document) attempts() int { return min(max(1, MaxSize/(d.size+1)), 4*MaxProblems) }

// complaint returns where a decoding error is, if it says so, and what it is, in
// words for people who do not know Go.
func complaint(err error) (*token.Token, string) {
	if e, ok := errors.AsType[*yaml.TypeError](err); ok {
		have := "a value"
		if e.SrcType != nil {
			have = kindName(e.SrcType.Kind().String())
		}
		return e.Token, fmt.Sprintf("needs %s, has %s", kindName(e.DstType.Kind().String()), have)
	}
	if e, ok := errors.AsType[*yaml.UnexpectedNodeTypeError](err); ok {
		return e.Token, fmt.Sprintf("needs %s, has %s",
			kindName(e.Expected.YAMLName()), kindName(e.Actual.YAMLName()))
	}
	if e, ok := errors.AsType[*yaml.OverflowError](err); ok {
		if strings.HasPrefix(e.DstType.Kind().String(), "uint") && strings.HasPrefix(e.SrcNum, "-") {
			return e.Token, fmt.Sprintf("needs %s of 0 or more, has %s", kindName(e.DstType.Kind().String()), e.SrcNum)
		}
		return e.Token, fmt.Sprintf("needs %s that is not so far from 0, has %s",
			kindName(e.DstType.Kind().String()), e.SrcNum)
	}
	if e, ok := errors.AsType[yaml.Error](err); ok {
		return e.GetToken(), e.GetMessage()
	}
	return nil, err.Error()
}

// kindName says what a kind of value is called in YAML.
func kindName(kind string) string {
	switch strings.TrimRight(kind, "0123456789") {
	case "struct", "map", "mapping":
		return "fields (name: value)"
	case "slice", "array", "sequence":
		return "a list"
	case "bool", "boolean":
		return "true or false"
	case "int", "uint", "integer":
		return "a whole number"
	case "float":
		return "a number"
	case "string":
		return "a text"
	}
	return kind
}

// translate turns an error of the parser into problems.
func (d *Document) translate(err error) error {
	where, message := complaint(err)
	return d.problems(where, "%s", message)
}

func (d *Document) problems(t *token.Token, format string, args ...any) error {
	report := Report{File: d.name}
	line := d.first
	if t != nil {
		line = d.line(t)
	}
	report.Errorf(line, "", format, args...)
	return report.Err()
}

// line returns the number of t's line in the file.
func (d *Document) line(t *token.Token) int {
	return d.first + max(1, t.Position.Line) - 1
}

// guard calls do and turns a panic of the YAML library into an error: it has had
// some on input that no fuzzing of ours can rule out.
func (d *Document) guard(do func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = d.problems(nil, "the YAML cannot be understood")
		}
	}()
	return do()
}

// Line returns the line of a field, such as "vms[3].host": of the deepest part
// of the path that is there. It is 0 when the document is empty.
func (d *Document) Line(path string) int {
	if d == nil || d.root == nil {
		return 0
	}
	node, at := d.root, d.root.GetToken()
	for path != "" && node != nil {
		var entry ast.Node
		entry, node, path = step(node, path)
		if entry != nil {
			at = entry.GetToken()
		}
	}
	if at == nil {
		return d.first
	}
	return d.line(at)
}

// step follows the first part of path, ".name" or "[3]". It returns the node that
// marks the place, the one to go on from, or nil, and the rest of the path.
func step(node ast.Node, path string) (entry, next ast.Node, rest string) {
	path = strings.TrimPrefix(path, ".")
	if strings.HasPrefix(path, "[") {
		inside, rest, _ := strings.Cut(path[1:], "]")
		list, isList := node.(*ast.SequenceNode)
		i, err := strconv.Atoi(inside)
		if !isList || err != nil || i < 0 || i >= len(list.Values) {
			return nil, nil, ""
		}
		return list.Values[i], list.Values[i], rest
	}
	name := path
	if i := strings.IndexAny(path, ".["); i >= 0 {
		name, rest = path[:i], path[i:]
	}
	for _, pair := range pairs(node) {
		if key := pair.Key.GetToken(); key != nil && key.Value == name {
			return pair.Key, pair.Value, rest
		}
	}
	return nil, nil, ""
}

// pairs returns the fields of a mapping; of anything else there are none.
func pairs(node ast.Node) []*ast.MappingValueNode {
	switch n := node.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}
