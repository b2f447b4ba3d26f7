package lint

import (
	"go/ast"
	"go/token"
	"strings"
	"unicode/utf8"
)

// The limits. Columns count characters, and a tab as four of them.
const (
	maxFunction   = 70   // lines
	maxFile       = 500  // lines
	maxWiring     = 200  // lines of a file in cmd, which only wires
	maxPackage    = 1500 // lines without tests
	maxParameters = 5
	maxColumns    = 100
	tabColumns    = 4
)

func findLargeCode(m *Module, report func(token.Pos, string, ...any)) {
	for _, u := range m.units {
		total := 0
		for _, f := range u.files {
			m.sizeOfFile(u, f, report)
			if !f.test {
				total += len(f.lines)
			}
		}
		if total > maxPackage {
			report(u.files[0].ast.Package, "package %s has %d lines without tests; %d are allowed",
				u.dir, total, maxPackage)
		}
	}
}

func (m *Module) sizeOfFile(u *unit, f *file, report func(token.Pos, string, ...any)) {
	limit := maxFile
	if strings.HasPrefix(u.dir, "cmd/") && !f.test {
		limit = maxWiring
	}
	if n := len(f.lines); n > limit {
		report(f.ast.Package, "the file has %d lines; %d are allowed", n, limit)
	}
	starts := m.fset.File(f.ast.Pos())
	for i, line := range f.lines {
		if n := columns(line); n > maxColumns {
			report(starts.LineStart(i+1), "the line has %d columns; %d are allowed", n, maxColumns)
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if fn, ok := n.(*ast.FuncDecl); ok {
			n := m.fset.Position(fn.End()).Line - m.fset.Position(fn.Pos()).Line + 1
			if n > maxFunction {
				report(fn.Pos(), "%s has %d lines; %d are allowed", fn.Name.Name, n, maxFunction)
			}
		}
		if fn, ok := n.(*ast.FuncType); ok && fn.Params.NumFields() > maxParameters {
			report(fn.Pos(), "%d parameters; %d are allowed", fn.Params.NumFields(), maxParameters)
		}
		return true
	})
}

func columns(line string) int {
	return utf8.RuneCountInString(line) + strings.Count(line, "\t")*(tabColumns-1)
}
