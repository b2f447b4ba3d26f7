package lint

import (
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// A prohibition says what packages must not import. Package names are those of
// the module, without its path; a name that ends in "/..." covers the packages
// below it as well.
type prohibition struct {
	of    []string // the packages that it is about
	never []string // what they must not import, their tests excepted
	why   string
}

// core is what decides.
var core = []string{"migration/...", "evacuation", "plan"}

// backends are the hypervisors that godwit knows.
var backends = []string{"hypervisor/fake", "hypervisor/qmp", "hypervisor/libvirt/..."}

// outer is what is built from participants: it reads files, runs in real time,
// or talks to people.
var outer = []string{"cmd/...", "examples/...", "internal/audit", "internal/boltstore",
	"internal/cli", "internal/client", "internal/config", "internal/daemon", "internal/etcdstore",
	"internal/importer"}

// prohibitions is the architecture: everything else is allowed.
var prohibitions = []prohibition{
	{[]string{"hypervisor"}, []string{"..."},
		"the vocabulary depends on nothing"},
	{core, join(backends, outer, []string{"agent", "controller", "store", "sim/..."}),
		"what decides knows neither what acts nor where records are kept"},
	{[]string{"migration/convergence", "migration/placement"},
		[]string{"migration", "evacuation"},
		"a part of the decision does not call the whole"},
	{[]string{"hypervisor/qmp"}, join([]string{"hypervisor/fake", "hypervisor/libvirt/...",
		"migration/...", "evacuation", "store"}, outer),
		"a backend knows neither the core nor another backend"},
	{[]string{"hypervisor/libvirt/..."}, join([]string{"hypervisor/fake", "hypervisor/qmp",
		"migration/...", "evacuation", "store"}, outer),
		"a backend knows neither the core nor another backend"},
	{[]string{"hypervisor/fake"}, join([]string{"hypervisor/qmp", "hypervisor/libvirt/...",
		"migration/...", "evacuation", "store"}, outer),
		"a backend knows neither the core nor another backend"},
	{[]string{"internal/backend"}, join(backends,
		[]string{"migration/...", "evacuation", "store"}, outer),
		"what the backends share knows none of them, nor the core"},
	{[]string{"controller", "agent"}, join(backends, outer, []string{"sim/...", "inventory"}),
		"a participant knows its hypervisor and its store by their ports only"},
	{[]string{"store"}, join(backends, outer, []string{"agent", "controller", "sim/..."}),
		"a record does not know who reads it"},
	{[]string{"sim/...", "internal/explore", "internal/sweep", "internal/whatif"},
		[]string{"hypervisor/qmp", "hypervisor/libvirt/..."},
		"the simulator runs without a real hypervisor"},
	{[]string{"internal/tools/lint", "internal/testutil"}, []string{"..."},
		"a helper of tests depends on nothing"},
	{[]string{"..."}, []string{"cmd/...", "examples/...", "internal/tools/lint"},
		"it is for programs and for tests"},
	{[]string{"examples/..."}, []string{"internal/..."}, exemplary},
}

// exemplary is why examples import nothing internal.
const exemplary = "an example is what other modules can write"

// confined names modules that only these packages and those below them, their tests
// included, may import.
var confined = map[string][]string{
	"libvirt.org/":                     {"hypervisor/libvirt", "internal/domxml"},
	"github.com/digitalocean/go-qemu/": {"hypervisor/qmp", "internal/qemu"},
	"go.etcd.io/bbolt":                 {"internal/boltstore"},
	"go.etcd.io/etcd/":                 {"internal/etcdstore", "internal/etcdtest", "internal/tools/etcdmember"},
	"github.com/chromedp/":             {"internal/tools/browser"},
}

func join(lists ...[]string) (all []string) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func findImports(m *Module, report func(token.Pos, string, ...any)) {
	m.each(true, func(u *unit, f *file) {
		for _, spec := range f.ast.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			if owners := ownersOf(name); owners != nil && !owns(owners, u.dir) {
				report(spec.Pos(), "only %s imports %s", strings.Join(owners, ", "), name)
			}
			if own, ours := strings.CutPrefix(name, m.path+"/"); ours && !f.test {
				if why := forbidden(u.dir, own); why != "" {
					report(spec.Pos(), "%s may not import %s: %s", u.dir, own, why)
				}
			}
			if strings.HasPrefix(name, m.path+"/internal/") && public(u.dir) &&
				strings.HasSuffix(f.path, "example_test.go") {
				report(spec.Pos(), "%s may not import %s: %s", f.path, name, exemplary)
			}
			if spec.Name != nil && spec.Name.Name == "." {
				report(spec.Pos(), "a dot import hides where names come from")
			}
		}
	})
}

// public tells whether other modules may import a package.
func public(dir string) bool {
	return !covers([]string{"cmd/...", "examples/...", "internal/..."}, dir) &&
		!strings.Contains(dir, "/internal")
}

// forbidden says why the package dir must not import another; it is empty if
// it may. What a prohibition is about may import what is in the same part of the module.
func forbidden(dir, imported string) (why string) {
	for _, p := range prohibitions {
		about := covers(p.of, dir)
		if about && covers(p.never, imported) && !samePart(dir, imported) {
			return p.why
		}
	}
	return ""
}

// samePart tells whether two packages are both programs or both examples.
func samePart(a, b string) bool {
	for _, part := range []string{"cmd/", "examples/"} {
		if strings.HasPrefix(a+"/", part) && strings.HasPrefix(b+"/", part) {
			return true
		}
	}
	return false
}

func covers(patterns []string, dir string) bool {
	for _, p := range patterns {
		below, deep := strings.CutSuffix(p, "...")
		if p == dir || deep && strings.HasPrefix(dir+"/", below) {
			return true
		}
	}
	return false
}

// ownersOf returns the packages that may import one of another module; nil is any.
func ownersOf(path string) []string {
	for prefix, owners := range confined {
		if strings.HasPrefix(path, prefix) {
			return owners
		}
	}
	return nil
}

func owns(owners []string, dir string) bool {
	return slices.ContainsFunc(owners, func(owner string) bool {
		return owner == dir || strings.HasPrefix(dir, owner+"/")
	})
}
