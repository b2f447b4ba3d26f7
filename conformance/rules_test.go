package conformance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// documentation is all that go doc shows of package hypervisor, in one line.
func documentation(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("../hypervisor/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("files %v: %v", files, err)
	}
	var b strings.Builder
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.FileExports(file)
		b.WriteString(file.Doc.Text())
		for _, group := range documents(file) {
			b.WriteString(" " + group.Text())
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// documents are the comments of a file that belong to a name.
func documents(file *ast.File) (all []*ast.CommentGroup) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			all = append(all, n.Doc)
		case *ast.FuncDecl:
			all = append(all, n.Doc)
			return false
		case *ast.TypeSpec:
			all = append(all, n.Doc, n.Comment)
		case *ast.ValueSpec:
			all = append(all, n.Doc, n.Comment)
		case *ast.Field:
			all = append(all, n.Doc, n.Comment)
		}
		return true
	})
	return all
}

// A backend that is written from the documentation of the port passes: the suite demands
// nothing that is not said there.
func TestEachCaseRestsOnASentenceOfTheDocumentation(t *testing.T) {
	text := documentation(t)
	var names []string
	for _, g := range groups() {
		for _, c := range g.Trials {
			names = append(names, c.Name)
			rule := rules[c.Name]
			switch {
			case rule == "":
				t.Errorf("case %q rests on no sentence of package hypervisor", c.Name)
			case !strings.Contains(text, rule):
				t.Errorf("case %q rests on %q, which package hypervisor does not say", c.Name, rule)
			}
		}
	}
	for name := range rules {
		if !slices.Contains(names, name) {
			t.Errorf("there is no case %q", name)
		}
	}
}
