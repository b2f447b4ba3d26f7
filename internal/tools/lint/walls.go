package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A wall is what keeps time, chance and the world out of a package.
type wall struct {
	only       []string // the packages outside the module that may be imported; nil: any
	never      []string // those that may not
	concurrent bool     // goroutines, channels and select are allowed
}

// pure lists the only packages that code which decides may import.
var pure = []string{"bytes", "cmp", "container/heap", "encoding/json", "errors", "fmt", "iter",
	"maps", "math", "math/bits", "slices", "sort", "strconv", "strings", "time", "unicode",
	"unicode/utf8"}

var (
	deciding   = wall{only: pure}
	vocabulary = wall{only: append([]string{"context"}, pure...)} // the port names it
	acting     = wall{never: []string{"sync", "sync/atomic", "os", "os/exec", "net", "net/http",
		"math/rand", "math/rand/v2"}}
	simulated = wall{never: []string{"math/rand"}, concurrent: true}
)

// participating is what runs in production as in the simulator.
var participating = []string{"agent", "controller", "internal/workqueue", "store"}

// checks begins the names of the files that check a plan without the planner's code.
const checks = "internal/whatif/verify_"

// loops are the files of participants that run them in real time: goroutines and the clock
// are there and nowhere else.
var loops = []string{"controller/loop.go", "controller/watchloop.go", "controller/group.go",
	"controller/runner.go", "store/changes.go"}

// simulating is what runs in virtual time.
var simulating = []string{"hypervisor/fake", "sim", "internal/maxmin", "internal/explore",
	"internal/config", "internal/bench", "internal/predict", "internal/whatif",
	"internal/sweep"}

// wallOf returns the wall around a file.
func wallOf(f *file) (w wall, ok bool) {
	switch dir := path.Dir(f.path); {
	case slices.Contains(loops, f.path):
		return wall{}, false
	case dir == "hypervisor":
		return vocabulary, true
	case dir == "migration", strings.HasPrefix(dir, "migration/"), dir == "evacuation",
		dir == "plan", strings.HasPrefix(f.path, checks):
		return deciding, true
	case slices.Contains(participating, dir):
		return acting, true
	case slices.Contains(simulating, dir):
		return simulated, true
	}
	return wall{}, false
}

// clocks lists what reads the clock, starts a timer, draws from the global
// source of chance, or prints, by package.
var clocks = map[string][]string{
	"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer",
		"NewTicker"},
	"context": {"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause",
		"AfterFunc"},
	"math/rand/v2": {"Int", "IntN", "Int32", "Int32N", "Int64", "Int64N", "Uint32", "Uint32N",
		"Uint64", "Uint64N", "Uint", "UintN", "N", "Float32", "Float64", "NormFloat64",
		"ExpFloat64", "Perm", "Shuffle"},
	"fmt": {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
}

func findBreaches(m *Module, report func(token.Pos, string, ...any)) {
	m.each(false, func(u *unit, f *file) {
		w, ok := wallOf(f)
		if !ok {
			return
		}
		for _, spec := range f.ast.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			outside := !strings.HasPrefix(name, m.path+"/")
			if outside && (w.only != nil && !slices.Contains(w.only, name) ||
				slices.Contains(w.never, name)) {
				report(spec.Pos(), "%s may not import %s", u.dir, name)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if what := concurrency(n); what != "" && !w.concurrent {
				report(n.Pos(), "%s in %s", what, u.dir)
			}
			if call := u.clockOf(n); call != "" {
				report(n.Pos(), "%s in %s: time and chance are arguments", call, u.dir)
			}
			return true
		})
	})
}

func concurrency(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "a goroutine"
	case *ast.ChanType:
		return "a channel type"
	case *ast.SelectStmt:
		return "a select"
	case *ast.SendStmt:
		return "a send"
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			return "a receive"
		}
	}
	return ""
}

// clockOf returns the name of the forbidden function that n mentions, if any.
func (u *unit) clockOf(n ast.Node) string {
	selector, ok := n.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	from, ok := selector.X.(*ast.Ident)
	if !ok {
		return ""
	}
	pkg, ok := u.info.Uses[from].(*types.PkgName)
	if !ok || !slices.Contains(clocks[pkg.Imported().Path()], selector.Sel.Name) {
		return ""
	}
	return from.Name + "." + selector.Sel.Name
}

// findWrittenVariables reports assignments to package variables in code that
// decides: a decision would depend on what was decided before.
func findWrittenVariables(m *Module, report func(token.Pos, string, ...any)) {
	m.each(false, func(u *unit, f *file) {
		if w, ok := wallOf(f); !ok || w.concurrent {
			return
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			for _, target := range written(n) {
				if name := u.packageVariable(target); name != "" {
					report(n.Pos(), "the package variable %s is written", name)
				}
			}
			return true
		})
	})
}

// written returns the expressions that n assigns to.
func written(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		return n.Lhs
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.RangeStmt:
		return []ast.Expr{n.Key, n.Value}
	case *ast.CallExpr:
		called, ok := n.Fun.(*ast.Ident)
		if ok && (called.Name == "delete" || called.Name == "clear") && len(n.Args) > 0 {
			return n.Args[:1]
		}
	}
	return nil
}

// packageVariable returns the name of the package variable that e is, or is a
// part of.
func (u *unit) packageVariable(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		v, ok := u.info.Uses[e].(*types.Var)
		if ok && u.pkg != nil && v.Parent() == u.pkg.Scope() {
			return e.Name
		}
	case *ast.IndexExpr:
		return u.packageVariable(e.X)
	case *ast.SelectorExpr:
		return u.packageVariable(e.X)
	case *ast.StarExpr:
		return u.packageVariable(e.X)
	case *ast.ParenExpr:
		return u.packageVariable(e.X)
	}
	return ""
}
