package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// module writes a module with one package in the folder p, and makes it the working folder.
func module(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example.org/m\n\ngo 1.26\n"
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOWORK", "off")
}

const tests = `package p

import ("os"; "testing")

func long(t *testing.T) bool {
	if os.Getenv("GODWIT_LONG") != "" { return true }
	t.Log("more in the long tier (GODWIT_LONG=1)")
	return false
}

func TestQuick(t *testing.T) {}
func TestScaled(t *testing.T) { long(t) }
func TestCases(t *testing.T) {
	t.Run("short", func(t *testing.T) {
		if os.Getenv("GODWIT_LONG") != "" { t.Error("repeated") }
	})
	t.Run("a.b|c", func(t *testing.T) { if !long(t) { t.Skip("it runs in the long tier (GODWIT_LONG=1)") } })
}
func TestNoKVM(t *testing.T) { t.Skip("no KVM here: /dev/kvm is missing") }
func FuzzText(f *testing.F) { f.Fuzz(func(*testing.T, []byte) {}) }
func BenchmarkNothing(b *testing.B) {}
`

// runTier runs one kind of tests and returns the suite and whether it passed.
func runTier(t *testing.T, run func(*suite, context.Context) (bool, error)) (*suite, bool) {
	t.Helper()
	s := newSuite(options{out: t.TempDir(), fuzz: time.Second})
	s.w = io.Discard
	ok, err := run(s, t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s, ok
}

func TestTheLongTierRepeatsOnlyWhatDoesMoreThere(t *testing.T) {
	module(t, map[string]string{"p/p_test.go": tests})
	s, ok := runTier(t, func(s *suite, ctx context.Context) (bool, error) { return s.each(ctx, plain) })
	if !ok || s.passed != 5 { // the target of the fuzzer with its seeds is one
		t.Errorf("passed %d of 5, failed %v", s.passed, s.failed)
	}
	want := map[string][]string{"example.org/m/p": {"TestScaled", "TestCases/a.b|c"}}
	if diff := cmp.Diff(want, s.long); diff != "" {
		t.Errorf("tests of the long tier (-want +got):\n%s", diff)
	}
	skips := map[string]int{"no KVM here: /dev/kvm is missing": 1, "it belongs to the long tier": 1}
	if diff := cmp.Diff(skips, s.skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
	long := newSuite(options{out: t.TempDir()})
	long.w = io.Discard
	long.long = s.long
	if ok, err := long.longTests(t.Context()); !ok || err != nil {
		t.Errorf("the long tier: %v, %v", err, long.failed)
	}
	if long.passed != 3 { // TestScaled, TestCases and its one case
		t.Errorf("the long tier ran %d tests, want 3", long.passed)
	}
}

func TestAFailureAPanicAndABuildErrorAreFailures(t *testing.T) {
	for name, text := range map[string]string{
		"failure": `func TestA(t *testing.T) { t.Error("seven is wrong") }`,
		"panic":   `func TestA(t *testing.T) { panic("seven is wrong") }`,
		"exit":    "func TestA(t *testing.T) { os.Exit(3) }",
		"build":   `func TestA(t *testing.T) { seven() }`,
	} {
		t.Run(name, func(t *testing.T) {
			imports := "import \"testing\"\n"
			if name == "exit" {
				imports = "import (\"os\"; \"testing\")\n"
			}
			module(t, map[string]string{"p/p_test.go": "package p\n" + imports + text,
				"q/q_test.go": "package q\nimport \"testing\"\nfunc TestB(*testing.T) {}\n"})
			s, ok := runTier(t, func(s *suite, ctx context.Context) (bool, error) {
				return s.each(ctx, plain)
			})
			if ok || len(s.failed) == 0 {
				t.Errorf("ok %v, failed %v", ok, s.failed)
			}
			if s.passed != 1 {
				t.Errorf("the other package passed %d tests, want 1", s.passed)
			}
		})
	}
}

func TestPackagesWithGoroutinesAreTestedWithTheRaceDetector(t *testing.T) {
	file := func(code string) string { return "package p\nimport \"testing\"\n" + code }
	module(t, map[string]string{
		"plain/p_test.go": tests,
		"goes/p.go":       "package p\nfunc f() { go f() }\n",
		"goes/p_test.go":  file("func TestA(*testing.T) {}\n"),
		"walks/p_test.go": file("func TestA(t *testing.T) { t.Parallel() }\n" +
			"func TestB(t *testing.T) { t.Run(\"c\", func(t *testing.T) { testutil.Unraced(t) }) }\n"),
		"locks/p_test.go": "package p\nimport (\"testing\"; \"sync\")\nvar _ sync.Mutex\nfunc TestA(*testing.T) {}\n",
		"cmd/x/p_test.go": file("func TestA(t *testing.T) { t.Parallel() }\n"),
		"empty/p.go":      "package p\n",
		"over/p.go":       "package p\nimport _ \"example.org/m/goes\"\n",
		"far/p_test.go":   file("import _ \"example.org/m/over\"\nfunc TestA(*testing.T) {}\n"),
	})
	all, err := packages(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	got, shares, s := map[string]kind{}, map[string]bool{}, suite{}
	for _, p := range all {
		shares[strings.TrimPrefix(p.path, "example.org/m/")] = p.shares
		got[strings.TrimPrefix(p.path, "example.org/m/")] = p.kind
		if strings.HasSuffix(p.path, "plain") && (!p.benches || len(p.fuzz) != 1) {
			t.Errorf("its benchmark and its fuzz target are not found: %+v", p)
		}
		if is := strings.HasSuffix(p.path, "walks"); is != slices.Equal(p.unraced, []string{"TestB"}) {
			t.Errorf("%s runs %v without the race detector only", p.path, p.unraced)
		}
		s.packages = append(s.packages, p)
	}
	want := map[string]kind{"plain": plain, "goes": racing, "walks": racing, "locks": racing, "cmd/x": real,
		"far": plain}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	wanted := []string{"example.org/m/far", "example.org/m/plain", "example.org/m/walks"}
	if diff := cmp.Diff(wanted, s.of(plain)); diff != "" {
		t.Errorf("tested without the race detector (-want +got):\n%s", diff)
	}
	if shares["plain"] || !shares["far"] {
		t.Errorf("what shares memory, over imports too: %v", shares)
	}
}

func TestPatternsMatchNothingElse(t *testing.T) {
	p := only([]string{"TestA", "TestB/x_(y)/z"})
	if p != `^TestA$|^TestB$/^x_\(y\)$/^z$` {
		t.Errorf("the pattern is %s", p)
	}
	for part := range strings.FieldsFuncSeq(p, func(r rune) bool { return r == '/' || r == '|' }) {
		regexp.MustCompile(part)
	}
}

// TestAConformanceSuiteRunsBesideTheOtherTestsOfItsPackage: where tests start real processes.
func TestAConformanceSuiteRunsBesideTheOtherTestsOfItsPackage(t *testing.T) {
	var suite []string
	for i := range large {
		suite = append(suite, fmt.Sprintf("TestConformance/kvm/%d", i))
	}
	tests := append([]string{"TestCrash", "TestZoo/a"}, suite...)
	others := []string{"TestCrash", "TestZoo/a"}
	for k, want := range map[kind][][]string{real: {suite, others}, racing: {tests}, plain: {tests}} {
		if got := (pkg{kind: k}).parts(tests); !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("kind %d: %q, want %q", k, got, want)
		}
	}
	if got := (pkg{kind: real}).parts(others); len(got) != 1 || !slices.Equal(got[0], others) {
		t.Errorf("few cases are split: %q", got)
	}
}

// What runs without the race detector in the default tier does so in the long one, whatever its
// package starts.
func TestLongTestsAreThoseOfTheirKind(t *testing.T) {
	tests := []string{"TestA", "TestB/c"}
	for _, row := range []struct {
		pkg  pkg
		want map[kind][]string
	}{
		{pkg{kind: plain}, map[kind][]string{plain: tests}},
		{pkg{kind: racing}, map[kind][]string{plain: tests}},
		{pkg{kind: real}, map[kind][]string{real: tests}},
		{pkg{kind: real, unraced: []string{"TestB"}}, map[kind][]string{real: {"TestA"}, plain: {"TestB/c"}}},
	} {
		if got := row.pkg.byKind(tests); !reflect.DeepEqual(got, row.want) {
			t.Errorf("%+v: %v, want %v", row.pkg, got, row.want)
		}
	}
}

func TestOnlyTheSameCommitIsTakenAsPassed(t *testing.T) {
	t.Chdir(t.TempDir())
	git := func(args ...string) {
		t.Helper()
		all := append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)
		if out, err := exec.CommandContext(t.Context(), "git", all...).CombinedOutput(); err != nil {
			t.Skipf("git does not work here: %v: %s", err, out)
		}
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "one")
	record := filepath.Join(t.TempDir(), "passed.json")
	first := treeID(t.Context())
	writePassed(record, passedTier{Tree: first, Long: map[string][]string{"p": {"TestA"}}})
	if p, ok := readPassed(record, first); !ok || len(p.Long) != 1 {
		t.Errorf("the same commit: %v %v", p, ok)
	}
	if err := os.WriteFile("new", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, ok := readPassed(record, treeID(t.Context())); ok {
		t.Error("a changed file is taken as passed")
	}
	git("add", "new")
	git("commit", "-q", "-m", "two")
	if _, ok := readPassed(record, treeID(t.Context())); ok {
		t.Error("another commit is taken as passed")
	}
}

// What Go 1.26 prints when its own deadline ends a fuzz target, and what it prints of an input that fails.
func TestAFuzzTargetThatEndsLateHasNotFailed(t *testing.T) {
	const late = "fuzz: elapsed: 2s, execs: 4264 (2104/sec)\n--- FAIL: FuzzCheck (2.04s)\n    context deadline exceeded\nFAIL\n"
	for said, want := range map[string]bool{late: true, late + "Failing input written to testdata/fuzz/FuzzCheck/1\n": false,
		"--- FAIL: FuzzCheck (0.04s)\n    got: context deadline exceeded\nFAIL\n": false, "PASS\n": false} {
		if got := endsLate([]byte(said)); got != want {
			t.Errorf("%v for %q", got, said)
		}
	}
}

func TestASkipIsCountedByItsReason(t *testing.T) {
	for _, row := range []struct{ want, said string }{
		{"no KVM here", "    kvm_test.go:12: no KVM here\n"},
		{"it belongs to the long tier", "    a_test.go:12: it runs in the long tier (GODWIT_LONG=1)\n"},
		{"no QEMU runs here", "    testscript.go:609: WORK=$WORK\n" +
			"            > [!qemu] skip 'no QEMU runs here'\n"},
		{"it belongs to the long tier", "    testscript.go:609: WORK=$WORK\n" +
			"            > [!qemu] skip 'no QEMU runs here'\n" +
			"            > [!sample:word] skip 'it runs in the long tier (GODWIT_LONG=1)'\n"},
		{"it gives no reason", "--- SKIP: TestIt (0.00s)\n"},
	} {
		if got := reasonOf(strings.SplitAfter(row.said, "\n")); got != row.want {
			t.Errorf("%q is counted as %q, want %q", row.said, got, row.want)
		}
	}
}

func TestStagesRunBesideThoseThatAreAside(t *testing.T) {
	begun, ended := make(chan bool), make(chan bool)
	var order []string
	step := func(name string, ok bool) func(context.Context) (bool, error) {
		return func(context.Context) (bool, error) {
			order = append(order, name)
			return ok, nil
		}
	}
	results, ok := runStages(t.Context(), []stage{
		{name: "slow", aside: true, run: func(context.Context) (bool, error) {
			begun <- true
			<-ended // the last stage lets it end
			return false, nil
		}},
		{name: "first", run: step("first", true)},
		{name: "last", run: func(ctx context.Context) (bool, error) {
			<-begun
			ended <- true
			return step("last", true)(ctx)
		}},
	})
	if ok {
		t.Error("a stage that fails aside is not seen")
	}
	if diff := cmp.Diff([]string{"first", "last"}, order); diff != "" {
		t.Errorf("the others (-want +got):\n%s", diff)
	}
	var names []string
	for _, r := range results {
		names = append(names, r.name)
	}
	if diff := cmp.Diff([]string{"slow", "first", "last"}, names); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}
