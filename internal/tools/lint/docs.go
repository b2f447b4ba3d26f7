package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// ruleTables are the names of variables that hold tables of rules.
var ruleTables = []string{"rules", "checks", "filters", "filterFilters"}

// findUnsourcedRules reports predicates, functions whose last result is a
// bool, that a table of rules refers to and whose comment cites no source.
func findUnsourcedRules(m *Module, report func(token.Pos, string, ...any)) {
	for _, u := range m.units {
		declared := u.functions()
		m.each(false, func(of *unit, f *file) {
			if of != u {
				return
			}
			for _, table := range tables(f.ast) {
				ast.Inspect(table, func(n ast.Node) bool {
					if literal, ok := n.(*ast.FuncLit); ok && isPredicate(literal.Type) {
						report(n.Pos(), "a predicate of a rule has a name and a source")
					}
					name, ok := n.(*ast.Ident)
					if !ok {
						return true
					}
					if fn := declared[u.info.Uses[name]]; fn != nil && !isSourced(fn) {
						report(fn.Pos(), "the rule %s cites no source", name.Name)
					}
					return true
				})
			}
		})
	}
}

// functions returns the declaration of each function and method of u.
func (u *unit) functions() map[types.Object]*ast.FuncDecl {
	declared := map[types.Object]*ast.FuncDecl{}
	for _, f := range u.files {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				declared[u.info.Defs[fn.Name]] = fn
			}
		}
	}
	delete(declared, nil)
	return declared
}

// tables returns the values of the file's variables that hold tables of rules.
func tables(f *ast.File) []ast.Expr {
	var values []ast.Expr
	for _, d := range f.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.VAR {
			continue
		}
		for _, s := range decl.Specs {
			spec := s.(*ast.ValueSpec)
			if slices.Contains(ruleTables, spec.Names[0].Name) {
				values = append(values, spec.Values...)
			}
		}
	}
	return values
}

// isSourced reports whether fn cites its source, or need not: it is no predicate.
func isSourced(fn *ast.FuncDecl) bool {
	return !isPredicate(fn.Type) || strings.Contains(fn.Doc.Text(), "Source:")
}

func isPredicate(t *ast.FuncType) bool {
	if t.Results.NumFields() == 0 {
		return false
	}
	last, ok := t.Results.List[len(t.Results.List)-1].Type.(*ast.Ident)
	return ok && last.Name == "bool"
}

func findUndocumented(m *Module, report func(token.Pos, string, ...any)) {
	for _, u := range m.units {
		code := slices.DeleteFunc(slices.Clone(u.files), func(f *file) bool { return f.test })
		if len(code) == 0 {
			continue
		}
		if !slices.ContainsFunc(code, func(f *file) bool { return f.ast.Doc.Text() != "" }) {
			report(code[0].ast.Package, "package %s has no comment", u.dir)
		}
		for _, f := range code {
			for _, d := range f.ast.Decls {
				findBare(d, report)
			}
		}
	}
}

// findBare reports exported declarations without a comment. A group of
// constants or variables is documented by one comment; types are not.
func findBare(d ast.Decl, report func(token.Pos, string, ...any)) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && receiverIsExported(d) && d.Doc.Text() == "" {
			report(d.Pos(), "%s has no comment", d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				own := s.Doc.Text() + s.Comment.Text()
				if !d.Lparen.IsValid() {
					own += d.Doc.Text()
				}
				if s.Name.IsExported() && own == "" {
					report(s.Pos(), "%s has no comment", s.Name.Name)
				}
			case *ast.ValueSpec:
				if d.Doc.Text()+s.Doc.Text()+s.Comment.Text() == "" {
					reportExported(s.Names, report)
				}
			}
		}
	}
}

func reportExported(names []*ast.Ident, report func(token.Pos, string, ...any)) {
	for _, name := range names {
		if name.IsExported() {
			report(name.Pos(), "%s has no comment", name.Name)
		}
	}
}

func receiverIsExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	receiver := d.Recv.List[0].Type
	for {
		switch r := receiver.(type) {
		case *ast.StarExpr:
			receiver = r.X
		case *ast.IndexExpr: // the type's parameter follows
			receiver = r.X
		case *ast.IndexListExpr:
			receiver = r.X
		case *ast.Ident:
			return r.IsExported()
		default:
			return false
		}
	}
}
