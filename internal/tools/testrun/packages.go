package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A pkg is a package of the module with tests.
type pkg struct {
	path    string
	dir     string
	module  string // the folder of its module; empty is the root
	kind    kind
	fuzz    []string // its fuzz targets
	benches bool     // it has benchmarks
	// unraced are its tests that the default tier runs without the race detector only
	// (testutil.Unraced). A package that has some is also tested as a plain one.
	unraced []string
	// samples tells whether its tests do less with the race detector (testutil.Raced).
	samples bool
	// shares tells whether it, its tests, or a package of the module that they import, start
	// goroutines or share memory between them.
	shares bool
}

// A kind says how the tests of a package sweep.
type kind int

const (
	plain  kind = iota // nothing in it is concurrent
	racing             // with the race detector
	real               // with it, and mostly waiting for processes of this machine
)

// realParts are the packages whose tests run QEMUs, libvirtds, stores, browsers or
// processes of godwit itself. Those of them that start no goroutine are plain.
var realParts = []string{"hypervisor/qmp", "hypervisor/libvirt", "internal/guest",
	"internal/boltstore", "internal/etcdstore", "cmd", "internal/daemon", "internal/backendtest",
	"internal/libvirttest", "internal/qemu", "internal/sweep",
	"examples/libvirt-drain"}

// listed is what go list says of a package.
type listed struct {
	Dir, ImportPath                              string
	Module                                       struct{ Path string }
	GoFiles, CgoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports           []string

	alone bool // nothing in it without its tests is concurrent
}

// packages finds the packages that have tests of the module in a folder; empty is the root.
func packages(ctx context.Context, folder, tags string) ([]pkg, error) {
	out, err := output(ctx, "go", "-C", cmp.Or(folder, "."), "list", "-tags", tags, "-json=Dir,ImportPath,Module,GoFiles,"+
		"CgoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports", "./...")
	if err != nil {
		return nil, err
	}
	all, module := []pkg{}, map[string]*listed{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		l := &listed{}
		if err := d.Decode(l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		p, err := l.inspect()
		if err != nil {
			return nil, err
		}
		p.module = folder
		module[l.ImportPath] = l
		if len(l.TestGoFiles)+len(l.XTestGoFiles) > 0 {
			all = append(all, p)
		}
	}
	for i := range all {
		l := module[all[i].path]
		tested := slices.Concat(l.Imports, l.TestImports, l.XTestImports)
		all[i].shares = all[i].kind != plain || reaches(module, tested, map[string]bool{})
	}
	return all, nil
}

// reaches tells whether one of some packages of the module, or what they import, is concurrent.
func reaches(module map[string]*listed, paths []string, seen map[string]bool) bool {
	for _, path := range paths {
		l := module[path]
		if l == nil || seen[path] {
			continue
		}
		seen[path] = true
		if !l.alone || reaches(module, l.Imports, seen) {
			return true
		}
	}
	return false
}

// inspect reads the files of a package.
func (l *listed) inspect() (pkg, error) {
	below := strings.TrimPrefix(l.ImportPath, l.Module.Path+"/")
	p := pkg{path: l.ImportPath, dir: l.Dir}
	isIn := func(part string) bool { return strings.HasPrefix(below, part) }
	shares := false
	l.alone = true
	for _, name := range slices.Concat(l.GoFiles, l.CgoFiles, l.TestGoFiles, l.XTestGoFiles) {
		source, err := os.ReadFile(filepath.Join(l.Dir, name))
		if err != nil {
			return p, err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
		if err != nil {
			return p, err
		}
		tests := strings.HasSuffix(name, "_test.go")
		if concurrent(f) {
			shares, l.alone = true, l.alone && tests
		}
		if tests {
			p.samples = p.samples || mentions(f, "Raced")
			p.targets(f)
		}
	}
	switch {
	case shares && slices.ContainsFunc(realParts, isIn):
		p.kind = real
	case shares:
		p.kind = racing
	}
	return p, nil
}

// targets notes the fuzz targets and benchmarks of a file, and its tests that call testutil.Unraced.
func (p *pkg) targets(f *ast.File) {
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv != nil {
			continue
		}
		if strings.HasPrefix(fn.Name.Name, "Fuzz") {
			p.fuzz = append(p.fuzz, fn.Name.Name)
		}
		p.benches = p.benches || strings.HasPrefix(fn.Name.Name, "Benchmark")
		if strings.HasPrefix(fn.Name.Name, "Test") && mentions(fn, "Unraced") {
			p.unraced = append(p.unraced, fn.Name.Name)
		}
	}
}

// mentions tells whether something of this name of another package is used in n.
func mentions(n ast.Node, name string) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		used, is := n.(*ast.SelectorExpr)
		found = found || is && used.Sel.Name == name
		return !found
	})
	return found
}

// concurrent reports whether a file starts goroutines or shares memory between them.
func concurrent(f *ast.File) (found bool) {
	for _, spec := range f.Imports {
		switch path, _ := strconv.Unquote(spec.Path.Value); path {
		case "sync", "sync/atomic", "testing/synctest", "golang.org/x/sync/errgroup",
			"golang.org/x/sync/semaphore":
			return true
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.SelectorExpr:
			found = found || n.Sel.Name == "Parallel" || n.Sel.Name == "RunParallel"
		}
		return !found
	})
	return found
}
