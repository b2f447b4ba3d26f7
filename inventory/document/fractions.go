package document

import (
	"errors"
	"math"
	"strconv"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// A stand-in is a number that no whole one is, in whose place is an infinite one.
type standIn struct {
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
	all := map[*token.Token]standIn{}
	collect(d.root, func(ast.Node) {}, all)
	if len(all) == 0 {
		return nil
	}
	decode := func() error {
		return d.guard(func() error { return yaml.NodeToValue(d.root, v, yaml.Strict()) })
	}
	for _, s := range all {
		s.set(&ast.InfinityNode{BaseNode: &ast.BaseNode{}, Token: s.at, Value: math.Inf(1)})
	}
	for {
		err := decode()
		if err == nil {
			break
		}
		where, _ := complaint(err)
		s, is := all[where]
		if !is {
			break
		}
		if _, is := errors.AsType[*yaml.OverflowError](err); is && !report.Full() {
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

// collect finds the numbers below a node that are not whole; set replaces the node itself.
func collect(node ast.Node, set func(ast.Node), all map[*token.Token]standIn) {
	if t := fraction(node); t != nil {
		all[t] = standIn{t, node, set}
	}
	for _, pair := range pairs(node) {
		collect(pair.Value, func(n ast.Node) { pair.Value = n }, all)
	}
	if list, isList := node.(*ast.SequenceNode); isList {
		for i, value := range list.Values {
			collect(value, func(n ast.Node) { list.Values[i] = n }, all)
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
