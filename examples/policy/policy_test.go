package policy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/examples/policy"
	"github.com/godwit-vm/godwit/sim/simtest"
)

// goal is what the policy promises.
var goal = simtest.Always("each migration has a lane", policy.EachHasALane)

// naive is the policy as it was written first, and mended as it is right.
var (
	naive = []simtest.Option{simtest.Evacuation("largest first", policy.LargestFirst{}),
		simtest.Weigher(policy.BigHosts)}
	mended = append(slices.Clone(naive), simtest.Filter(policy.FreeLane))
)

// A recorder is a test that keeps what is said against it: this one is to fail.
type recorder struct {
	testing.TB
	said []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

// Step 2 of README.md: whatever the seed, the naive policy is caught, in a small world.
func TestTheNaivePolicyIsCaught(t *testing.T) {
	dir := t.TempDir()
	r := &recorder{TB: t}
	simtest.Check(r, simtest.Calm(), append(slices.Clone(naive), goal, simtest.Runs(2000),
		simtest.Transcript(dir))...)
	if len(r.said) != 1 || !strings.Contains(r.said[0], "each migration has a lane") {
		t.Fatalf("said of it: %q", r.said)
	}
	files, err := filepath.Glob(filepath.Join(dir, "simtest", "*", "*.yaml"))
	if err != nil || len(files) != 1 {
		t.Fatalf("transcripts %q, %v", files, err)
	}
	if n := commands(t, files[0]); n > 15 {
		t.Errorf("its transcript has %d commands, more than a reader takes in", n)
	}
}

// commands counts the commands of a transcript.
func commands(t *testing.T, file string) int {
	t.Helper()
	w, err := simtest.Parse(file, read(t, file))
	if err != nil {
		t.Fatal(err)
	}
	return w.Commands()
}

// caught is the transcript that README.md shows.
const caught = "testdata/naive.yaml"

// Step 3: the transcript that the text shows fails with the naive policy, for what it says.
func TestTheTranscriptReplays(t *testing.T) {
	r := &recorder{TB: t}
	simtest.Replay(r, caught, append(slices.Clone(naive), goal)...)
	if len(r.said) != 1 || !strings.Contains(r.said[0], "2 VMs are on their way to n3") {
		t.Errorf("said of it: %q", r.said)
	}
	if n := commands(t, caught); n > 15 {
		t.Errorf("it has %d commands", n)
	}
}

// Step 4: the mended policy passes that world and all others, also when things break.
func TestTheMendedPolicyIsRight(t *testing.T) {
	simtest.Replay(t, caught, append(slices.Clone(mended), goal)...)
	simtest.Check(t, simtest.Calm(), append(slices.Clone(mended), goal)...)
	broken := simtest.Of(simtest.Roomy(simtest.Small), simtest.Converging(), simtest.Drain(),
		simtest.Swarm(simtest.Faults(), 1, 6))
	simtest.Check(t, broken, append(slices.Clone(mended), goal, simtest.Runs(30))...)
}

// large are worlds in which a link matters. A part of one's own: the first host has a fast link
// and is drained, all others are slow.
var large = simtest.Of(simtest.Roomy(simtest.Large), simtest.Converging(), simtest.Part{
	Name: "a fast host is drained into slow ones", Add: func(m *simtest.Builder) {
		for i := range m.World.Hosts {
			m.World.Hosts[i].Link = "1Gbit/s"
		}
		m.World.Hosts[0].Link = "10Gbit/s"
		m.Event("0s", "drain "+m.World.Hosts[0].Name)
	}})

// Step 5: what the mended policy gains, and what it costs.
func TestTheMendedPolicyIsBetter(t *testing.T) {
	c := simtest.Compare(t, large, simtest.As("mended", mended...),
		simtest.As("naive", naive...), simtest.Runs(40))
	if err := c.Better(simtest.TimeToEmpty); err != nil {
		t.Error(err)
	}
	c = simtest.Compare(t, large, simtest.As("mended", mended...),
		simtest.As("godwit's"), simtest.Runs(20))
	if err := c.NotWorse(simtest.TimeToEmpty, simtest.Failures, simtest.Left); err != nil {
		t.Error(err)
	}
}

// TestTheTextIsWhatRuns: every piece of code and every transcript in README.md is, line by line,
// in one of the files that are run here.
func TestTheTextIsWhatRuns(t *testing.T) {
	var run []string
	for _, name := range []string{"policy.go", "mine_test.go", "policy_test.go", caught} {
		run = append(run, string(read(t, name)))
	}
	text := string(read(t, "README.md"))
	if n := strings.Count(text, "\n"); n > 150 {
		t.Errorf("README.md has %d lines", n)
	}
	for i, block := range strings.Split(text, "```") {
		kind, code, _ := strings.Cut(block, "\n")
		if i%2 == 0 || kind != "go" && kind != "yaml" {
			continue
		}
		if !slices.ContainsFunc(run, func(s string) bool { return strings.Contains(s, code) }) {
			t.Errorf("no file has this:\n%s", code)
		}
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
