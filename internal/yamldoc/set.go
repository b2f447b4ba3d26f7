package yamldoc

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Set gives a field another value before the document is decoded. The path is
// written as in [Document.Line], and [*] stands for every entry of a list; fields
// that are missing on the way are added, entries of lists are not. The value is
// one line of YAML and a scalar: a text, a number, true or false. Whether the
// field exists at all only decoding tells. Lines of what was set mean nothing.
//
// The error says what is wrong with the path or the value, without a place.
func (d *Document) Set(path, value string) error {
	names, err := parts(path)
	if err != nil {
		return err
	}
	if strings.ContainsAny(value, "\r\n") {
		return errors.New("the value has several lines")
	}
	if d.root == nil {
		d.root = &ast.MappingNode{BaseNode: &ast.BaseNode{}}
	}
	d.root, err = set(d.root, names, value)
	return err
}

// parts splits a path: a name, or the inside of brackets with the bracket before it.
func parts(path string) ([]string, error) {
	var all []string
	for _, name := range strings.Split(path, ".") {
		name, indexes, _ := strings.Cut(name, "[")
		if name == "" || strings.ContainsAny(name, " \t\r\n:#{}&*!|>'\"%@`,]") {
			return nil, fmt.Errorf("%q is no path: write limits.perCluster or hosts[0].link",
				printable(path))
		}
		all = append(all, name)
		for indexes != "" {
			inside, rest, closed := strings.Cut(indexes, "]")
			_, err := strconv.ParseUint(inside, 10, 31)
			if !closed || err != nil && inside != "*" || rest != "" && rest[0] != '[' {
				return nil, fmt.Errorf("%q has an index that is no number: "+
					"write hosts[0] or hosts[*]", printable(path))
			}
			all = append(all, "["+inside)
			indexes = strings.TrimPrefix(rest, "[")
		}
	}
	return all, nil
}

// set returns the node with the value at the path below it. It changes lists and
// mappings in place.
func set(node ast.Node, path []string, value string) (ast.Node, error) {
	if len(path) == 0 {
		return scalar(value)
	}
	if strings.HasPrefix(path[0], "[") {
		return node, setEntries(node, path, value)
	}
	fields := pairs(node)
	for _, pair := range fields {
		if key := pair.Key.GetToken(); key != nil && key.Value == path[0] {
			changed, err := set(pair.Value, path[1:], value)
			pair.Value = changed
			return node, err
		}
	}
	if _, isMap := node.(*ast.MappingNode); !isMap && len(fields) == 0 &&
		node.Type() != ast.NullType {
		return node, fmt.Errorf("there is a value where %q would be a field", path[0])
	}
	added, err := missing(path, value)
	if err != nil {
		return node, err
	}
	if mapping, isMap := node.(*ast.MappingNode); isMap {
		mapping.Values = append(mapping.Values, added...)
		return mapping, nil
	}
	return ast.Mapping(added[0].GetToken(), false, append(fields, added...)...), nil
}

func setEntries(node ast.Node, path []string, value string) error {
	list, isList := node.(*ast.SequenceNode)
	if !isList {
		return fmt.Errorf("there is no list for %s]", path[0])
	}
	first, last := 0, len(list.Values)
	if path[0] != "[*" {
		i, err := strconv.Atoi(path[0][1:])
		if err != nil || i >= len(list.Values) {
			return fmt.Errorf("there is no entry %s]: the list has %d", path[0], len(list.Values))
		}
		first, last = i, i+1
	}
	for i := first; i < last; i++ {
		changed, err := set(list.Values[i], path[1:], value)
		if err != nil {
			return err
		}
		list.Values[i] = changed
	}
	return nil
}

// missing returns the fields of a path that is not there yet.
func missing(path []string, value string) ([]*ast.MappingValueNode, error) {
	var text strings.Builder
	for depth, name := range path {
		if strings.HasPrefix(name, "[") {
			return nil, fmt.Errorf("there is no list for %s]", name)
		}
		fmt.Fprintf(&text, "\n%s%s:", strings.Repeat(" ", depth), name)
	}
	doc, err := fragment(text.String() + " " + value)
	if err != nil {
		return nil, err
	}
	if _, err := scalar(value); err != nil {
		return nil, err
	}
	return pairs(doc.root), nil
}

// scalar reads a value.
func scalar(value string) (ast.Node, error) {
	doc, err := fragment("value: " + value)
	if err != nil {
		return nil, err
	}
	if fields := pairs(doc.root); len(fields) == 1 {
		if _, plain := fields[0].Value.(ast.ScalarNode); plain {
			return fields[0].Value, nil
		}
	}
	return nil, fmt.Errorf("%q is no single text or number", printable(value))
}

// fragment parses a piece of YAML; what is wrong with it has no place.
func fragment(text string) (*Document, error) {
	doc, err := Parse("", 1, []byte(text))
	if problem, is := errors.AsType[Problem](err); is {
		return nil, errors.New(problem.Message)
	}
	return doc, err
}
