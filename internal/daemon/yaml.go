package daemon

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// UnmarshalYAML reads options as they are written: a password of digits is no number,
// and a plug 07 not the plug 7.
func (o *Options) UnmarshalYAML(n ast.Node) error {
	*o = Options{}
	var pairs []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		pairs = n.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{n}
	case *ast.NullNode:
	default:
		return at(n.GetToken(), "options are names with values")
	}
	for _, pair := range pairs {
		name := pair.Key.GetToken()
		value, ok := written(pair.Value)
		if !ok {
			return at(name, "the value of an option is one word or one text in quotes")
		}
		(*o)[name.Value] = value
	}
	return nil
}

// written returns a scalar as it is written.
func written(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return strings.TrimSpace(n.GetToken().Value), true
	}
	return "", false
}

// misplaced is an error at a place in a file. It quotes nothing of it.
type misplaced struct{ text string }

func (m *misplaced) Error() string { return m.text }

func at(t *token.Token, what string) error {
	if t == nil || t.Position == nil {
		return &misplaced{what}
	}
	return &misplaced{fmt.Sprintf("line %d, column %d: %s", t.Position.Line, t.Position.Column,
		what)}
}

// explain says where in a text an error is, and which. It leaves out the values, and the
// lines around, that the parser quotes: there are passwords in them.
func explain(err error) error {
	var ours *misplaced
	if errors.As(err, &ours) {
		return ours
	}
	var e yaml.Error
	if !errors.As(err, &e) {
		return &misplaced{"it is not as it should be"}
	}
	var unknown *yaml.UnknownFieldError
	if errors.As(err, &unknown) {
		return at(e.GetToken(), unknown.GetMessage())
	}
	return at(e.GetToken(), "what is here is not expected")
}

// checkSpans returns where a text has something else than a span of time: the decoder
// would not say where.
func checkSpans(text []byte) error {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return explain(err)
	}
	s := &spans{}
	for _, doc := range file.Docs {
		if doc.Body != nil {
			ast.Walk(s, doc.Body)
		}
	}
	return s.err
}

// spans looks for spans of time, outside of options, which mean what they like.
type spans struct{ err error }

// Visit implements ast.Visitor.
func (s *spans) Visit(n ast.Node) ast.Visitor {
	pair, ok := n.(*ast.MappingValueNode)
	if !ok {
		return s
	}
	switch pair.Key.GetToken().Value {
	case "options":
		return nil
	case "delay", "timeout":
		value, ok := written(pair.Value)
		if _, err := time.ParseDuration(value); s.err == nil && (!ok || err != nil) {
			s.err = at(pair.Key.GetToken(), "a span of time is expected, such as 30s or 2m")
		}
	}
	return s
}
