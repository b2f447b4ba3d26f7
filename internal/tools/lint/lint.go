// Package lint enforces the house rules of the module: which package may import which,
// what may not happen in code that decides, and what
// must be documented. Its test runs all of it on the module. It reads syntax
// only and knows nothing about packages outside the module.
package lint

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// A Finding is one place where a rule is broken.
type Finding struct {
	Pos  token.Position
	Rule string // the name of the rule
	Text string
}

// String says where, which rule and what, in the form that editors understand.
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", f.Pos.Filename, f.Pos.Line, f.Rule, f.Text)
}

// A Module is the source of a Go module.
type Module struct {
	path  string // "github.com/godwit-vm/godwit"
	fset  *token.FileSet
	texts []text
	units []*unit
}

// A text is any file that people read.
type text struct {
	path  string
	lines []string
}

// A unit is what the compiler sees as one package: the files of a folder,
// those of its tests included, that name the same package.
type unit struct {
	dir, name string
	files     []*file
	pkg       *types.Package
	info      *types.Info
}

type file struct {
	text
	test bool
	ast  *ast.File
}

// rule finds the places where one rule is broken.
type rule struct {
	name string
	find func(*Module, func(token.Pos, string, ...any))
}

// all lists the rules that need syntax; the rules of plain text are in texts.go.
var all = []rule{
	{"imports", findImports},
	{"walls", findBreaches},
	{"written", findWrittenVariables},
	{"source", findUnsourcedRules},
	{"docs", findUndocumented},
	{"names", findMixedNames},
}

// Load reads all Go files and documents below the root of fsys, except those
// in folders named testdata and in folders whose name begins with a dot other
// than .ci. It fails if a Go file does not parse.
func Load(fsys fs.FS, modulePath string) (*Module, error) {
	m := &Module{path: modulePath, fset: token.NewFileSet()}
	units := map[string]*unit{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		base := path.Base(name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (base == "testdata" || hidden(base)):
			return fs.SkipDir
		case d.IsDir() || !readByPeople(name):
			return nil
		}
		return m.read(fsys, name, units)
	})
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(units)) {
		units[key].resolve(m.fset)
		m.units = append(m.units, units[key])
	}
	return m, nil
}

func hidden(base string) bool { return base != "." && base != ".ci" && base[0] == '.' }

func readByPeople(name string) bool {
	if path.Base(name) == "Makefile" || path.Dir(name) == ".ci" {
		return true
	}
	return slices.Contains([]string{".go", ".md", ".txt", ".yaml", ".yml"}, path.Ext(name))
}

func (m *Module) read(fsys fs.FS, name string, units map[string]*unit) error {
	source, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	t := text{path: name, lines: strings.Split(strings.TrimSuffix(string(source), "\n"), "\n")}
	m.texts = append(m.texts, t)
	if path.Ext(name) != ".go" {
		return nil
	}
	parsed, err := parser.ParseFile(m.fset, name, source, parser.ParseComments)
	if err != nil {
		return err
	}
	dir, pkg := path.Dir(name), parsed.Name.Name
	u := units[dir+" "+pkg]
	if u == nil {
		u = &unit{dir: dir, name: pkg}
		units[dir+" "+pkg] = u
	}
	test := strings.HasSuffix(name, "_test.go")
	u.files = append(u.files, &file{text: t, test: test, ast: parsed})
	return nil
}

// resolve finds out which declaration each identifier means. Imported packages
// are taken as empty, so that nothing need be compiled; the errors that follow
// from it are of no interest.
func (u *unit) resolve(fset *token.FileSet) {
	u.info = &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	var files []*ast.File
	for _, f := range u.files {
		files = append(files, f.ast)
	}
	conf := types.Config{Importer: emptyPackages{}, Error: func(error) {}}
	u.pkg, _ = conf.Check(u.dir, fset, files, u.info)
}

// emptyPackages imports every package as an empty one.
type emptyPackages struct{}

// Import returns an empty package named after the last part of its path that
// is no version.
func (emptyPackages) Import(p string) (*types.Package, error) {
	name := path.Base(p)
	if strings.HasPrefix(name, "v") && strings.Trim(name[1:], "0123456789") == "" {
		name = path.Base(path.Dir(p))
	}
	pkg := types.NewPackage(p, name)
	pkg.MarkComplete()
	return pkg, nil
}

// Check returns every finding, ordered by place.
func (m *Module) Check() []Finding {
	found := m.checkTexts()
	for _, r := range all {
		r.find(m, func(at token.Pos, format string, args ...any) {
			said := fmt.Sprintf(format, args...)
			found = append(found, Finding{m.fset.Position(at), r.name, said})
		})
	}
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.Pos.Filename, b.Pos.Filename),
			cmp.Compare(a.Pos.Line, b.Pos.Line),
		)
	})
	return found
}

// each calls do with every file that matches.
func (m *Module) each(tests bool, do func(*unit, *file)) {
	for _, u := range m.units {
		for _, f := range u.files {
			if tests || !f.test {
				do(u, f)
			}
		}
	}
}
