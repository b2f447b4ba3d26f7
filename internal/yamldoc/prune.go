package yamldoc

import (
	"fmt"
	"slices"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// prune takes the field, or the entry of a list, that t belongs to out of the
// tree, and reports whether it found it below the root.
func prune(node ast.Node, t *token.Token) bool {
	switch n := node.(type) {
	case *ast.MappingNode:
		for i, pair := range n.Values {
			if holds(pair, t) {
				n.Values = slices.Delete(n.Values, i, i+1)
				return true
			}
			if prune(pair.Value, t) {
				return true
			}
		}
	case *ast.MappingValueNode:
		return prune(n.Value, t)
	case *ast.SequenceNode:
		for i, value := range n.Values {
			if isAt(value, t) && len(pairs(value)) == 0 {
				n.Values = slices.Delete(n.Values, i, i+1)
				return true
			}
			if prune(value, t) {
				return true
			}
		}
	}
	return false
}

// holds reports whether t is the key of pair or begins its value.
func holds(pair *ast.MappingValueNode, t *token.Token) bool {
	return isAt(pair.Key, t) || isAt(pair.Value, t)
}

func isAt(node ast.Node, t *token.Token) bool { return node != nil && node.GetToken() == t }

// field returns the path to t, such as "vms[3].host", or "".
func (d *Document) field(t *token.Token) string {
	if t == nil {
		return ""
	}
	path, _ := find(d.root, t)
	if len(path) > 0 && path[0] == '.' {
		return path[1:]
	}
	return path
}

// find returns the path from node to t, with a point before each name.
func find(node ast.Node, t *token.Token) (string, bool) {
	for _, pair := range pairs(node) {
		name := pair.Key.GetToken().Value
		if holds(pair, t) {
			return "." + name, true
		}
		if path, found := find(pair.Value, t); found {
			return "." + name + path, true
		}
	}
	if list, isList := node.(*ast.SequenceNode); isList {
		for i, value := range list.Values {
			if path, found := find(value, t); found {
				return fmt.Sprintf("[%d]%s", i, path), true
			}
			if isAt(value, t) {
				return fmt.Sprintf("[%d]", i), true
			}
		}
	}
	return "", false
}
