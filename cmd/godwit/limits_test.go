package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/cli"
	sweeps "github.com/godwit-vm/godwit/internal/sweep"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/sim"
)

// examples lists the scenarios among the examples: all of them but the fleets
// that others name as their inventory.
func examples(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("examples %v: %v", paths, err)
	}
	all := ""
	for _, path := range paths {
		all += read(t, path)
	}
	return slices.DeleteFunc(paths, func(path string) bool {
		return strings.Contains(all, "inventory: "+filepath.Base(path))
	})
}

// TestExamples runs all examples. None takes long, and in none an invariant is
// violated.
func TestExamples(t *testing.T) {
	for _, path := range examples(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), testutil.Limit(testutil.DefaultLimit))
			defer cancel()
			var out bytes.Buffer
			err := simulateFile(ctx, &out, path)
			if status := exitStatus(err); status != 0 {
				t.Errorf("exit status %d: %v\n%s", status, err, out.String())
			}
			if out.Len() == 0 {
				t.Error("it prints nothing")
			}
		})
	}
}

// simulateFile runs godwit simulate on a file.
func simulateFile(ctx context.Context, out io.Writer, path string, flags ...string) error {
	c := simulateCommand()
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetOut(out)
	c.SetArgs(append(flags, path))
	return c.ExecuteContext(ctx)
}

// garbage writes a file of 100 MB that begins with some text, and then goes on
// with the same words for ever.
func garbage(t *testing.T, name, start, words string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(start); err != nil {
		t.Fatal(err)
	}
	block := []byte(strings.Repeat(words, 1+1<<20/len(words)))
	for size := len(start); size < 100e6; size += len(block) {
		if _, err := f.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// TestGarbageIsRefusedQuickly: 100 MB of anything, as a scenario and as an
// inventory, is bad input, at no more cost than a small file of it.
func TestGarbageIsRefusedQuickly(t *testing.T) {
	testutil.Unraced(t)
	tests := []struct{ name, start, words, want string }{
		{"noise", "", "\xff\x07}{ :\n", "it is longer than 4 MiB"},
		{"zeros", "", "\x00", "it is longer than 4 MiB"},
		{"brackets", "", "[", "it is longer than 4 MiB"},
		{"events", "events:\n", "- drain n1\n", "it is longer than 4 MiB"},
	}
	for _, tt := range tests {
		t.Run("a scenario of "+tt.name, func(t *testing.T) {
			refuses(t, garbage(t, "scenario.yaml", tt.start, tt.words), tt.want)
		})
	}
	inventories := []struct{ name, start, words, want string }{
		{"noise", "", "\xff\x07}{ :\n", "it is neither what kubectl"},
		{"JSON that never ends", `{"kind": "List", "items": [{"kind": "`, "x", "cluster"},
		{"brackets in JSON", `{"kind": "List", "items": [`, "[", "cluster"},
		{"text that no object holds", "kind: List\nitems:\n- kind: |\n", "    x\n", "cluster"},
		{"our own words", "hosts:\n", "- {name: n1}\n", "it is longer than 4 MiB"},
	}
	for _, tt := range inventories {
		t.Run("an inventory of "+tt.name, func(t *testing.T) {
			path := garbage(t, "cluster", tt.start, tt.words)
			scenario := filepath.Join(t.TempDir(), "scenario.yaml")
			text := fmt.Sprintf("inventory: %q\n", path)
			if err := os.WriteFile(scenario, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			refuses(t, scenario, tt.want)
		})
	}
}

// refuses checks that a scenario is bad input, found in a few seconds and in less
// memory than the file has.
func refuses(t *testing.T, path, want string) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	err := simulateFile(context.Background(), &bytes.Buffer{}, path)
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	if status := exitStatus(err); status != exitBadInput {
		t.Errorf("exit status %d, want %d", status, exitBadInput)
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %.500v, want in it %q", err, want)
	}
	if err != nil && len(err.Error()) > 10_000 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
	if took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	if grown := int64(after.Sys) - int64(before.Sys); grown > 200e6 {
		t.Errorf("it needed %d MB", grown/1e6)
	}
}

func TestExitStatus(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want int
	}{
		{"all is well", nil, 0},
		{"an invariant was violated", cli.ErrSweepViolated, 1},
		{"an invariant was violated, in more words", fmt.Errorf("run: %w", cli.ErrSweepViolated), 1},
		{"a violation among other errors", errors.Join(os.ErrClosed, cli.ErrSweepViolated), 1},
		{"anything else is bad input", errors.New("an invariant was violated"), 2},
		{"a file that is not there", os.ErrNotExist, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := exitStatus(tt.err); got != tt.want {
				t.Errorf("exit status %d, want %d", got, tt.want)
			}
		})
	}
}

// TestAViolationIsShownAndIsTheVerdict: godwit itself has none to show, so an
// answer with one is made up.
func TestAViolationIsShownAndIsTheVerdict(t *testing.T) {
	good := answer{Scenario: "made up", Seed: 1}
	if err := good.verdict(); err != nil {
		t.Errorf("without violations the verdict is %v", err)
	}
	bad := good
	bad.Violations = []sim.Violation{{Invariant: "runs-once", AtSeconds: 12.5,
		Detail: "default/web runs on [n1 n2]"}}
	if status := exitStatus(bad.verdict()); status != exitViolated {
		t.Errorf("exit status %d, want %d", status, exitViolated)
	}
	var text, object bytes.Buffer
	if err := bad.print(&text, false, sim.AtRest); err != nil {
		t.Fatal(err)
	}
	want := "\nVIOLATED at 12.5s: runs-once: default/web runs on [n1 n2]\n"
	if !strings.HasSuffix(text.String(), want) {
		t.Errorf("the table is\n%s\nwant it to end with%s", text.String(), want)
	}
	if err := bad.print(&object, true, sim.AtRest); err != nil {
		t.Fatal(err)
	}
	want = `"invariantViolations":[{"invariant":"runs-once","atSeconds":12.5,` +
		`"detail":"default/web runs on [n1 n2]"}]`
	if !strings.Contains(object.String(), want) {
		t.Errorf("the object is\n%s\nwant in it\n%s", object.String(), want)
	}
}

func TestTheTableNamesTheFirstWhoStay(t *testing.T) {
	e := sim.Evacuation{Host: "n1"}
	for n := range 2 * (mostLeft + 5) { // two each have the same reason
		why := placement.Reason{Check: "memory", Need: fmt.Sprint(n/2, "GiB"), Have: "none"}
		e.Left = append(e.Left, sim.RemainingVM{VM: hypervisor.VMID(fmt.Sprintf("default/v%02d", n)),
			Reasons: []placement.Reason{why}})
	}
	e.Left = append(e.Left[:3], e.Left[4:]...) // one is alone
	a := answer{Result: sim.Result{Evacuations: []sim.Evacuation{e}}}
	var out bytes.Buffer
	if err := a.print(&out, false, sim.Futile); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nv00 and 1 more stay on n1\n  memory: needs 0GiB, has none\n",
		"\nv02 stays on n1\n", "\nv38 and 1 more stay on n1\n",
		"\n… and 10 more; --json lists them all\n", "\nended early: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "v40") {
		t.Error("the table names more than it should")
	}
}

func TestAnInterruptedRunSaysWhy(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("interrupt"))
	var out bytes.Buffer
	err := simulateFile(ctx, &out, "../../examples/drain-host.yaml")
	if err == nil || err.Error() != "interrupt" || out.Len() > 0 {
		t.Errorf("the error is %v, the answer %q", err, out.String())
	}
}

func TestAnInterruptedSweepPrintsWhatIsComplete(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	var out bytes.Buffer
	err := simulateFile(ctx, &out, "../../examples/drain-host.yaml", "--samples=1000000", "--json")
	var d sweeps.Document
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("interrupted: the output has the %d of 1000000 worlds that were complete",
		len(d.Samples))
	if fmt.Sprint(err) != want || d.Complete != len(d.Samples) || d.Complete == d.Worlds {
		t.Errorf("the error is %v, %d of %d worlds are complete", err, d.Complete, d.Worlds)
	}
}
