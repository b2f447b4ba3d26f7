package lint_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/internal/tools/lint"
)

// A snippet is one file, and what the linter says about it: each finding as
// "line: rule", or nothing.
type snippet struct {
	name string
	file string
	code string
	want []string
}

func runSnippets(t *testing.T, snippets []snippet) {
	t.Helper()
	for _, s := range snippets {
		t.Run(s.name, func(t *testing.T) {
			fsys := fstest.MapFS{s.file: {Data: []byte(s.code)}}
			m, err := lint.Load(fsys, modulePath)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range m.Check() {
				got = append(got, fmt.Sprintf("%d: %s", f.Pos.Line, f.Rule))
			}
			if diff := cmp.Diff(s.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s%v", diff, m.Check())
			}
		})
	}
}

// in returns a documented file of a package, with these lines from line 3 on.
func in(pkg string, lines ...string) string {
	return "// Package " + pkg + " is an example.\npackage " + pkg + "\n" +
		strings.Join(lines, "\n") + "\n"
}

func importing(pkg, path string) string { return in(pkg, `import _ "`+path+`"`) }

func TestImports(t *testing.T) {
	const ours = modulePath + "/"
	runSnippets(t, []snippet{
		{"the core may import the vocabulary", "migration/placement/a.go",
			importing("placement", ours+"hypervisor"), nil},
		{"the vocabulary may not import the core", "hypervisor/a.go",
			importing("hypervisor", ours+"migration"), []string{"3: imports"}},
		{"placement may not import migration", "migration/placement/a.go",
			importing("placement", ours+"migration"), []string{"3: imports"}},
		{"its tests may", "migration/placement/a_test.go",
			importing("placement", ours+"migration"), nil},
		{"a controller may not import a backend", "controller/a.go",
			importing("controller", ours+"hypervisor/fake"), []string{"3: imports"}},
		{"the command may import anything", "cmd/godwit/a.go",
			importing("main", ours+"internal/config"), nil},
		{"a new package is allowed what is not forbidden", "sim/newcomer/a.go",
			importing("newcomer", ours+"store"), nil},
		{"and forbidden what all of its part are", "sim/newcomer/a.go",
			importing("newcomer", ours+"hypervisor/qmp"), []string{"3: imports"}},
		{"a name that only begins like a forbidden one is allowed", "sim/newcomer/a.go",
			importing("newcomer", ours+"hypervisor/qmpx"), nil},
		{"a backend may not import another", "hypervisor/qmp/a.go",
			importing("qmp", ours+"hypervisor/libvirt"), []string{"3: imports"}},
		{"nothing but a test may import the rules of the house", "evacuation/a.go",
			importing("evacuation", ours+"internal/tools/lint"), []string{"3: imports"}},
		{"an example of a public package may not import what is internal", "sim/run_example_test.go",
			importing("sim_test", ours+"internal/explore"), []string{"3: imports"}},
		{"other tests may", "sim/run_test.go", importing("sim_test", ours+"internal/explore"), nil},
		{"an example program may not, either", "examples/run/main.go",
			importing("main", ours+"internal/explore"), []string{"3: imports"}},
		{"libvirt is imported by its backend", "hypervisor/libvirt/a.go",
			importing("libvirt", "libvirt.org/go/libvirt"), nil},
		{"libvirt is imported by no other, tests included", "hypervisor/qmp/a_test.go",
			importing("qmp", "libvirt.org/go/libvirt"), []string{"3: imports"}},
		{"a dot import is found", "sim/a.go", in("sim", `import . "strings"`),
			[]string{"3: imports"}},
	})
}

func TestWalls(t *testing.T) {
	runSnippets(t, []snippet{
		{"the core may sort", "migration/a.go", importing("migration", "slices"), nil},
		{"the core may not log", "evacuation/a.go", importing("evacuation", "log/slog"),
			[]string{"3: walls"}},
		{"the core has no context", "migration/a.go", importing("migration", "context"),
			[]string{"3: walls"}},
		{"the port has one", "hypervisor/a.go", importing("hypervisor", "context"), nil},
		{"the core starts no goroutine", "migration/a.go",
			in("migration", "func f() { go f() }"), []string{"3: walls"}},
		{"a test may", "migration/a_test.go", in("migration", "func f() { go f() }"), nil},
		{"a controller has no channel", "controller/a.go",
			in("controller", "var c chan int"), []string{"3: walls"}},
		{"a controller neither sends, receives nor selects", "controller/a.go",
			in("controller", "func f() {", "c <- 1", "<-c", "select {}", "}"),
			[]string{"4: walls", "5: walls", "6: walls"}},
		{"a controller has no lock", "controller/a.go", importing("controller", "sync"),
			[]string{"3: walls"}},
		{"the loop of production may use all of it", "controller/loop.go",
			in("controller", `import "time"`, "func f(c chan int) { go f(c); time.Now() }"), nil},
		{"the core does not read the clock", "migration/a.go",
			in("migration", `import "time"`, "var t = time.Now()"), []string{"4: walls"}},
		{"by whatever name", "migration/a.go",
			in("migration", `import clock "time"`, "var t = clock.Since"), []string{"4: walls"}},
		{"a duration is no clock", "migration/a.go",
			in("migration", `import "time"`, "const t = time.Second"), nil},
		{"a local variable is no package", "migration/a.go",
			in("migration", "func f(time interface{ Now() }) { time.Now() }"), nil},
		{"the simulator draws from a seeded source", "sim/a.go",
			in("sim", `import "math/rand/v2"`, "var r = rand.New(rand.NewPCG(1, 2)).IntN(3)"), nil},
		{"and not from the global one", "sim/a.go",
			in("sim", `import "math/rand/v2"`, "var r = rand.IntN(3)"), []string{"4: walls"}},
		{"nor from the old one", "internal/config/a.go", importing("config", "math/rand"),
			[]string{"3: walls"}},
		{"the fake does not sleep", "hypervisor/fake/a.go",
			in("fake", `import "time"`, "func f() { time.Sleep(1) }"), []string{"4: walls"}},
		{"the core prints nothing", "migration/a.go",
			in("migration", `import "fmt"`, `func f() { fmt.Println("hello") }`),
			[]string{"4: walls"}},
	})
}

func TestWrittenVariables(t *testing.T) {
	runSnippets(t, []snippet{
		{"an assignment is found", "migration/a.go",
			in("migration", "var n int", "func f() { n = 1 }"), []string{"4: written"}},
		{"so are a count, an element, a field and a pointer", "migration/a.go",
			in("migration", "var n, m, s, p = 1, map[int]int{}, struct{ x int }{}, new(int)",
				"func f() {", "n++", "m[1] = 2", "s.x = 3", "*p = 4", "delete(m, 1)",
				"for n = range 3 {}", "}"),
			[]string{"5: written", "6: written", "7: written", "8: written", "9: written",
				"10: written"}},
		{"a local variable of the same name is not", "migration/a.go",
			in("migration", "var n int", "func f(m int) { n := 1; n = 2; m = n }"), nil},
		{"an initial value is not", "migration/a.go", in("migration", "var n = 1"), nil},
		{"outside of what decides it is allowed", "cmd/godwit/a.go",
			in("main", "var n int", "func f() { n = 1 }"), nil},
	})
}

func TestSources(t *testing.T) {
	const table = "var rules = []any{gone, %s}"
	source := "// gone: the VM is gone.\n// Source: KubeVirt."
	runSnippets(t, []snippet{
		{"a predicate with a source is fine", "migration/a.go",
			in("migration", "var rules = []any{gone}", source, "func gone() bool { return true }"),
			nil},
		{"one without is not", "migration/a.go",
			in("migration", "var filters = []any{gone}", "// gone: the VM is gone.",
				"func gone() bool { return true }"), []string{"5: source"}},
		{"one in another table need not have one", "migration/a.go",
			in("migration", "var words = []any{gone}", "func gone() bool { return true }"), nil},
		{"a verdict needs none", "migration/a.go",
			in("migration", "var rules = []any{fail}", "func fail() string { return \"\" }"), nil},
		{"what a reason comes with is a predicate, too", "migration/a.go",
			in("migration", "var checks = []any{fail}",
				"func fail() (string, bool) { return \"\", true }"), []string{"4: source"}},
		{"a method is a predicate, too", "migration/a.go",
			in("migration", "type phase int", "var rules = []any{phase.final}",
				"func (phase) final() bool { return true }"), []string{"5: source"}},
		{"a predicate without a name is not fine", "migration/a.go",
			in("migration", fmt.Sprintf(table, "func() bool { return true }"), source,
				"func gone() bool { return true }"), []string{"3: source"}},
	})
}

func TestDocs(t *testing.T) {
	runSnippets(t, []snippet{
		{"a package without a comment is found", "sim/a.go", "package sim\n", []string{"1: docs"}},
		{"a package of tests needs none", "sim/a_test.go", "package sim\n", nil},
		{"exported names without comments are found", "sim/a.go",
			in("sim", "type T int", "func F() {}", "func (T) M() {}", "var V int", "const C = 1"),
			[]string{"3: docs", "4: docs", "5: docs", "6: docs", "7: docs"}},
		{"others need none", "sim/a.go",
			in("sim", "type t int", "func f() {}", "func (t) M() {}", "var v int"), nil},
		{"a type parameter does not make a type exported", "sim/a.go",
			in("sim", "type t[K any] int", "func (t[K]) M() {}", "func (*t[K]) N() {}"), nil},
		{"a method of an exported generic type is found", "sim/a.go",
			in("sim", "// T is one.", "type T[K, V any] int", "func (*T[K, V]) M() {}"),
			[]string{"5: docs"}},
		{"one comment is enough for a group of constants", "sim/a.go",
			in("sim", "// The letters.", "const (", "A = 1", "B = 2", ")"), nil},
		{"one comment is not enough for a group of types", "sim/a.go",
			in("sim", "// The letters.", "type (", "A int", ")"), []string{"5: docs"}},
		{"types of a group need one each", "sim/a.go",
			in("sim", "type (", "// A is one.", "A int", "B int", ")"), []string{"6: docs"}},
	})
}

func TestWordsAndNames(t *testing.T) {
	later, vague := "TO"+"DO", "Some"+"body"
	runSnippets(t, []snippet{
		{"unfinished work is found in code", "sim/a.go", in("sim", "// "+later+": more."),
			[]string{"3: words"}},
		{"and in documents", "README.md", "One\n" + later + "\n", []string{"2: words"}},
		{"a word that hides the participant is found", "sim/a.go", in("sim", "// "+vague+" writes."),
			[]string{"3: words"}},
		{"a longer word is another word", "README.md", later + "S\n", nil},
		{"recordings are not read", "sim/testdata/a.md", later + "\n", nil},
		{"mixed names for source and target are found", "sim/a.go",
			in("sim", "var srcHost, hostDst, theDestination, DSTHost, my_src int // words"),
			[]string{"3: names", "3: names", "3: names", "3: names", "3: names"}},
		{"other words that contain them are not", "sim/a.go",
			in("sim", "var source, target, dstree int"), nil},
	})
}

func TestAFileThatDoesNotParseIsAnError(t *testing.T) {
	fsys := fstest.MapFS{"sim/a.go": {Data: []byte("package")}}
	if _, err := lint.Load(fsys, modulePath); err == nil {
		t.Error("Load accepted it")
	}
}
