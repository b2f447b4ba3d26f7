package yamldoc

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// A placeholder is a number that no whole one is, in whose place is an infinite one.
type placeholder struct {
	at  *token.Token
	was ast.Node
	set func(ast.Node)
}

// fractions reports the fields that need a whole number and have 0.5 or the like. The decoder
// leaves off what is behind the point, and a limit of 0.5 would be one of 0; but it refuses what
// is too large for a whole number. So every such number becomes infinite once, and what is
// complained of then is one of them in the wrong place. The document is sound otherwise: v holds
// what it says, and again in the end.
func (d *Document) fractions(v any, report *Report) error {
	all := map[*token.Token]placeholder{}
	each(d.root, func(node ast.Node, set func(ast.Node)) {
		if t := fraction(node); t != nil {
			all[t] = placeholder{t, node, set}
		}
	})
	if len(all) == 0 {
		return nil
	}
	decode := func() error {
		return d.guard(func() error { return yaml.NodeToValue(d.root, v, yaml.Strict()) })
	}
	for _, s := range all {
		s.set(&ast.InfinityNode{BaseNode: &ast.BaseNode{}, Token: s.at, Value: math.Inf(1)})
	}
	for range d.attempts() {
		err := decode()
		if err == nil {
			break
		}
		where, _ := complaint(err)
		s, is := all[where]
		if !is {
			break
		}
		if _, is := errors.AsType[*yaml.OverflowError](err); is {
			report.Errorf(d.line(where), d.field(where), "needs a whole number, has %s",
				where.Value)
		}
		s.set(s.was)
		delete(all, where)
	}
	for _, s := range all {
		s.set(s.was)
	}
	return decode()
}

// asWritten makes texts of numbers that would be written otherwise than they are: a label 1.10
// is not 1.1, and a host 010 is not 8. As numbers they are what they were, but for 010, which is
// ten since YAML 1.2.
func (d *Document) asWritten() {
	each(d.root, func(node ast.Node, set func(ast.Node)) {
		t := node.GetToken()
		switch n := node.(type) {
		case *ast.FloatNode:
			x, err := strconv.ParseFloat(t.Value, 64)
			if err == nil && x == n.Value && fmt.Sprint(x) != t.Value {
				set(ast.String(t))
			}
		case *ast.IntegerNode:
			if len(t.Value) > 1 && strings.Trim(t.Value, "0123456789") == "" && t.Value[0] == '0' {
				set(ast.String(t))
			}
		}
	})
}

// each calls do with the values below a node, and with what puts another in the place of one.
func each(node ast.Node, do func(node ast.Node, set func(ast.Node))) {
	visit := func(value ast.Node, set func(ast.Node)) {
		if value != nil {
			do(value, set)
			each(value, do)
		}
	}
	for _, pair := range pairs(node) {
		visit(pair.Value, func(n ast.Node) { pair.Value = n })
	}
	if list, isList := node.(*ast.SequenceNode); isList {
		for i, value := range list.Values {
			visit(value, func(n ast.Node) { list.Values[i] = n })
		}
	}
}

// fraction returns the token of a number that is not whole, or no number at all; otherwise nil.
// The decoder takes texts for numbers, too.
func fraction(node ast.Node) *token.Token {
	x, err := 0.0, error(nil)
	switch n := node.(type) {
	case *ast.FloatNode:
		x = n.Value
	case *ast.InfinityNode:
		x = n.Value
	case *ast.StringNode:
		x, err = strconv.ParseFloat(n.Value, 64)
	}
	if err != nil || x == math.Trunc(x) && math.Abs(x) < 1<<63 {
		return nil
	}
	return node.GetToken()
}
