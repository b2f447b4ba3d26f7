package yamldoc

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// JSON returns the document as JSON, in the order of its fields, for decoders
// that know no YAML. An empty document is null. What JSON cannot say (infinite
// numbers, keys that are lists) is [Problems].
func (d *Document) JSON() ([]byte, error) {
	if d.root == nil {
		return []byte("null"), nil
	}
	out := make([]byte, 0, d.size)
	out, err := appendJSON(out, d.root)
	if err != nil {
		where, _ := errors.AsType[*valueError](err)
		return nil, d.problems(where.at, "%s", err)
	}
	return out, nil
}

// A valueError is a value that JSON does not have.
type valueError struct {
	at      *token.Token
	message string
}

func (e *valueError) Error() string { return e.message }

// appendJSON recurses no deeper than MaxDepth, which Parse has checked.
func appendJSON(out []byte, node ast.Node) ([]byte, error) {
	switch n := node.(type) {
	case nil, *ast.NullNode:
		return append(out, "null"...), nil
	case *ast.StringNode:
		return appendValue(out, n.Value)
	case *ast.LiteralNode:
		return appendValue(out, n.Value.Value)
	case *ast.IntegerNode:
		return appendValue(out, n.Value)
	case *ast.BoolNode:
		return appendValue(out, n.Value)
	case *ast.FloatNode:
		if math.IsInf(n.Value, 0) || math.IsNaN(n.Value) {
			return nil, &valueError{n.Token, "a number is too large"}
		}
		return appendValue(out, n.Value)
	case *ast.SequenceNode:
		return appendList(out, n)
	case *ast.MappingNode, *ast.MappingValueNode:
		return appendFields(out, pairs(node))
	}
	return nil, &valueError{node.GetToken(), fmt.Sprintf(
		"a value of the type %s has no counterpart in JSON", node.Type().YAMLName())}
}

func appendList(out []byte, n *ast.SequenceNode) ([]byte, error) {
	out = append(out, '[')
	for i, value := range n.Values {
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = appendJSON(out, value); err != nil {
			return nil, err
		}
	}
	return append(out, ']'), nil
}

func appendFields(out []byte, fields []*ast.MappingValueNode) ([]byte, error) {
	out = append(out, '{')
	for i, pair := range fields {
		if i > 0 {
			out = append(out, ',')
		}
		key, isScalar := pair.Key.(ast.ScalarNode)
		if !isScalar {
			return nil, &valueError{pair.Key.GetToken(), "a key is no word"}
		}
		var err error
		if out, err = appendValue(out, key.GetToken().Value); err != nil {
			return nil, err
		}
		if out, err = appendJSON(append(out, ':'), pair.Value); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

// appendValue appends a text, a finite number or a truth value, which cannot fail.
func appendValue(out []byte, value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, &valueError{nil, err.Error()}
	}
	return append(out, text...), nil
}
