package census

import (
	"go/ast"
	"io/fs"
	"strings"
)

// checkers are the functions that are given a property, and which argument it is.
var checkers = map[string]int{"rapid.Check": 1, "rapid.MakeCheck": 0, "rapid.MakeFuzz": 0,
	"f.Fuzz": 0, "simtest.Check": -1}

// Properties finds the properties of the module whose root is given. The error says which
// file could not be read, or is no Go.
func Properties(root fs.FS) ([]Item, error) {
	files, err := sources(root, ".", "rapid.", "simtest.", "testing.F")
	if err != nil {
		return nil, err
	}
	functions := map[string]part{} // by folder and name
	for _, s := range files {
		for _, d := range s.ast.Decls {
			if f, is := d.(*ast.FuncDecl); is && f.Recv == nil && f.Body != nil {
				functions[s.folder()+"."+f.Name.Name] = part{s, f.Body}
			}
		}
	}
	var all []Item
	seen := map[ast.Node]bool{}
	for _, s := range files {
		for _, d := range s.ast.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is || f.Body == nil {
				continue
			}
			for _, p := range s.given(f, functions) {
				if !seen[p.node] {
					seen[p.node] = true
					all = append(all, p.source.item("property", f.Name.Name, p.node))
				}
			}
		}
	}
	return all, nil
}

// few is how many tokens a property has at least that is told by its own text.
const few = 30

// A part is a piece of a source.
type part struct {
	source source
	node   ast.Node
}

// given returns the properties that a function gives to those who check them: a literal, a
// function of the package, or else all of the function itself.
func (s source) given(f *ast.FuncDecl, functions map[string]part) []part {
	var found []part
	ast.Inspect(f.Body, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		if !is {
			return true
		}
		at, checks := checkers[called(call)]
		switch {
		case !checks || at >= len(call.Args):
			return true
		case at < 0:
			found = append(found, part{s, f.Body})
			return true
		}
		switch what := call.Args[at].(type) {
		case *ast.FuncLit:
			if len(code(s.between(what.Body))) < few { // it calls what says it
				found = append(found, part{s, f.Body})
				break
			}
			found = append(found, part{s, what.Body})
		case *ast.CallExpr: // f.Fuzz(rapid.MakeFuzz(…)): found on the way down
			if called(what) != "rapid.MakeFuzz" {
				found = append(found, part{s, f.Body})
			}
		case *ast.Ident:
			if named, known := functions[s.folder()+"."+what.Name]; known {
				found = append(found, named)
				break
			}
			found = append(found, part{s, f.Body})
		default:
			found = append(found, part{s, f.Body})
		}
		return true
	})
	return found
}

// called returns package.Function, or receiver.Method, of a call.
func called(c *ast.CallExpr) string {
	selected, is := c.Fun.(*ast.SelectorExpr)
	if !is {
		return ""
	}
	of, is := selected.X.(*ast.Ident)
	if !is {
		return ""
	}
	return strings.Join([]string{of.Name, selected.Sel.Name}, ".")
}
