// Package mutants_test plants bugs, one by one, and lets package simtest look for them: in
// policies, stores, controller and agents. Each must be found in so many worlds, which a free processor plays in
// about a minute, and the world that shows it must be small.
//
//	GODWIT_MUTANTS=all go test -v -timeout 1h ./internal/mutant     every bug, and a table
//	GODWIT_MUTANTS=NAME go test -v ./internal/mutant                those with NAME in them
//
// The long tier plants one in three of each commit, and all with GODWIT_LONG=all; the default tier a few that cost
// little.
package mutant_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/mutant"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/sim/simtest"
)

// root is the module's directory.
const root = "../.."

// Each bug is to be found in so many worlds, and shown in one of so many commands. How fast the machine is
// does not matter: a search is given up as hung only after span.
const (
	worlds = 60_000
	small  = 15
	span   = 20 * time.Minute
)

// The environment says which bugs are planted and, to a process that looks for one, which that
// is and where it leaves what it has found.
const (
	which   = "GODWIT_MUTANTS"
	planted = "GODWIT_PLANTED"
	leave   = "GODWIT_LEAVE"
)

// A bug is a mistake, and the worlds in which it is looked for.
type bug struct {
	name  string
	where string // what it is in
	in    simtest.Generator
	scene string // where it is explored instead, step by step
	with  simtest.Option
	right simtest.Option // the same, without the bug; nil is godwit's own
	holds simtest.Option // an invariant of the owner's; nil: godwit's own find it
	// edit is the bug in what godwit itself does; nil: it is in the options.
	edit  *mutant.Mutant
	cheap bool // it is planted by default
}

func TestMutants(t *testing.T) {
	if os.Getenv(planted) != "" {
		t.Skip("this process looks for one bug")
	}
	asked := os.Getenv(which)
	for _, b := range bugs() {
		t.Run(b.name, func(t *testing.T) {
			if asked == "" && !b.cheap {
				testutil.SampleLong(t, 3)
			}
			if asked != "" && asked != "all" && !strings.Contains(b.name, asked) {
				t.Skipf("%s asks for others", which)
			}
			b.mustBeFound(t)
		})
	}
}

// mustBeFound looks for a bug in a process of its own, which may hang, die, or be another
// program.
func (b *bug) mustBeFound(t *testing.T) {
	dir := t.TempDir()
	program := b.program(t, dir)
	c := exec.CommandContext(t.Context(), program, "-test.v",
		"-test.run=^TestPlanted$", "-test.timeout="+(span+5*time.Minute).String())
	c.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, which+"=")
	}), planted+"="+b.name, leave+"="+dir)
	began := time.Now()
	out, err := c.CombinedOutput()
	took := time.Since(began)
	if err == nil {
		t.Fatalf("not found in %v:\n%s", took.Round(time.Second), out)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "simtest", "*", "*"))
	if len(files) != 1 {
		t.Fatalf("%d transcripts:\n%s", len(files), out)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	b.show(t, string(text), c.ProcessState.UserTime()+c.ProcessState.SystemTime(), took)
}

// show writes the bug's line of the table, and judges the transcript.
func (b *bug) show(t *testing.T, text string, used, took time.Duration) {
	by, what := "Check", strings.TrimPrefix(text[:strings.IndexByte(text, '\n')], "# ")
	if b.scene != "" {
		by = "Explore"
	}
	what = strings.TrimPrefix(what, "TestPlanted: ")
	n := commands(text)
	fmt.Printf("| %s | %s | %s: %s | %.1f | %.1f | %d |\n", b.name, b.where, by, what,
		used.Seconds(), took.Seconds(), n)
	if n > small {
		t.Errorf("the transcript has %d commands, more than %d:\n%s", n, small, text)
	}
}

// commands counts the lines of a transcript that one would type to play it by hand.
func commands(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		heading := strings.HasSuffix(line, ":")
		if line != "" && !heading && !strings.HasPrefix(line, "#") &&
			!strings.HasPrefix(line, "seed: ") {
			n++
		}
	}
	return n
}

// program returns what looks for the bug: this test, or one that was built with the bug in it.
func (b *bug) program(t *testing.T, dir string) string {
	if b.edit == nil {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		return self
	}
	overlay, err := b.edit.Plant(root, dir)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "planted.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", overlay,
		"-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// TestPlanted looks for one bug; it fails when it finds it.
func TestPlanted(t *testing.T) {
	name := os.Getenv(planted)
	if name == "" {
		t.Skip("TestMutants runs it, in a process of its own")
	}
	all := bugs()
	at := slices.IndexFunc(all, func(b bug) bool { return b.name == name })
	if at < 0 {
		t.Fatalf("no bug is called %q", name)
	}
	b := &all[at]
	options := append(set(b.with, b.holds), simtest.Runs(worlds), simtest.Within(span), simtest.DecisionTimeout(10*time.Second),
		simtest.Transcript(os.Getenv(leave)))
	if b.scene != "" {
		for faults := 1; faults <= 2; faults++ {
			options = append(options, simtest.Bounds(simtest.ExploreConfig{
				Faults: simtest.EveryFault | simtest.EveryMistake, Budget: faults, Odd: 1}))
		}
		simtest.Explore(t, b.scene, options...)
		return
	}
	simtest.Check(t, b.in, options...)
}

// set returns the options that are there.
func set(options ...simtest.Option) []simtest.Option {
	return slices.DeleteFunc(options, func(o simtest.Option) bool { return o == nil })
}

// What the bugs are found by holds in the same worlds where there is no bug.
func TestWithoutBugsNothingIsFound(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range bugs() {
		if worlds := b.in.String(); b.holds == nil {
			if b.scene != "" || seen[worlds] {
				continue
			}
			seen[worlds] = true
		}
		t.Run(b.name, func(t *testing.T) {
			simtest.Check(t, b.in, append(set(b.right, b.holds), simtest.Runs(8))...)
		})
	}
	simtest.Explore(t, oneMoves, simtest.Bounds(simtest.ExploreConfig{Faults: simtest.EveryFault,
		Budget: 1, Odd: 1, States: 1000}))
}
