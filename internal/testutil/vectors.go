package testutil

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Outcome is what a replayed vector came to: "" passed, Skip(reason) is out of
// the library's scope, anything else is a difference.
type Outcome struct{ diff, skip string }

// Pass says that the decision equals the recording.
var Pass = Outcome{}

// Diff says how the decision differs; an empty text passes.
func Diff(text string) Outcome { return Outcome{diff: text} }

// Skip says why a vector is out of scope.
func Skip(reason string) Outcome { return Outcome{skip: reason} }

// Dir returns where the recordings are: $GODWIT_VECTORS, or the project's own.
func Dir() string {
	if dir := os.Getenv("GODWIT_VECTORS"); dir != "" {
		return dir
	}
	dir, err := os.Getwd() // a test runs in the folder of its package
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			break
		}
	}
	return filepath.Join(dir, "internal", "testutil", "testdata", "vectors")
}

// Replay decides every line of the files that match pattern and prints, for
// each file, "KIND: N passed, M failed, K skipped (REASONS)". A line that does
// not parse is a failure.
func Replay[In, Out any](t *testing.T, pattern string, decide func(In, Out) Outcome) {
	t.Helper()
	ReplayEach(t, pattern, func(string) func(In, Out) Outcome { return decide })
}

// ReplayEach is Replay for recordings of one form and several rules: decider is
// asked once for each file, with its KIND, for what decides that file's lines.
func ReplayEach[In, Out any](t *testing.T, pattern string,
	decider func(kind string) func(In, Out) Outcome) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(Dir(), pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors match %s in %s (%v)", pattern, Dir(), err)
	}
	for _, file := range files {
		kind := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		t.Run(kind, func(t *testing.T) { replayFile(t, kind, file, decider(kind)) })
	}
}

func replayFile[In, Out any](t *testing.T, kind, file string, decide func(In, Out) Outcome) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	passed, failed := 0, 0
	skipped := map[string]int{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for n := 1; lines.Scan(); n++ {
		switch v := replayLine(lines.Bytes(), decide); {
		case v.skip != "":
			skipped[v.skip]++
		case v.diff != "":
			if failed++; failed <= 20 {
				t.Errorf("%s:%d: %s\nvector: %s", file, n, v.diff, lines.Bytes())
			}
		default:
			passed++
		}
	}
	if err := lines.Err(); err != nil {
		t.Errorf("%s: %v", file, err)
	}
	if failed > 0 {
		t.Fail()
	}
	fmt.Printf("%s: %d passed, %d failed, %s\n", kind, passed, failed, skips(skipped))
}

func replayLine[In, Out any](line []byte, decide func(In, Out) Outcome) Outcome {
	var v struct {
		In  In
		Out Out
	}
	if err := json.Unmarshal(line, &v); err != nil {
		return Diff(err.Error())
	}
	return decide(v.In, v.Out)
}

func skips(by map[string]int) string {
	total := 0
	var reasons []string
	for reason, n := range by {
		total += n
		reasons = append(reasons, fmt.Sprintf("%s: %d", reason, n))
	}
	slices.Sort(reasons)
	if total == 0 {
		return "0 skipped"
	}
	return fmt.Sprintf("%d skipped (%s)", total, strings.Join(reasons, "; "))
}
