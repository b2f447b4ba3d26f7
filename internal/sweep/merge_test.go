package sweep_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/sweep"
	"github.com/godwit-vm/godwit/sim"
)

// drawRun draws a run and what came out of all its worlds.
func drawRun(t *rapid.T) (sweep.Run, []sweep.Sample) {
	r := sweep.Run{Version: "v1", Scenario: "a <drain>", Digest: "d",
		Seed:    rapid.Uint64().Draw(t, "seed"),
		Samples: rapid.IntRange(1, 5).Draw(t, "samples"), Axes: drawGrid(t, 2)}
	var all []sweep.Sample
	for w := range r.Worlds() {
		c, n := r.World(w)
		s := sweep.Sample{Combination: c, Sample: n, Seed: sweep.Seed(r.Seed, n), Ending: "at rest",
			Makespan: float64(rapid.IntRange(0, 10000).Draw(t, "makespan")) / 1000,
			Retries:  rapid.IntRange(0, 3).Draw(t, "retries"),
			Bytes:    hypervisor.Bytes(rapid.Int64Range(0, 1<<60).Draw(t, "bytes"))}
		s.Violations = []sim.Violation{}
		if rapid.IntRange(0, 9).Draw(t, "violated") == 0 {
			s.Violations = append(s.Violations, sim.Violation{Invariant: "runs-once",
				AtSeconds: 12.5, Detail: "x \u2028 & y"})
			s.Ending = "futile"
		}
		all = append(all, s)
	}
	return r, all
}

// written returns the file of a shard.
func written(run sweep.Run, s sweep.Shard, all []sweep.Sample) []byte {
	var out bytes.Buffer
	worlds := s.Worlds(run.Worlds())
	_ = sweep.WriteHead(&out, run, s)
	for _, w := range worlds {
		_ = sweep.WriteSample(&out, &all[w])
	}
	_ = sweep.WriteEnd(&out, len(worlds), true)
	return out.Bytes()
}

func document(t interface{ Fatal(...any) }, d *sweep.Document) string {
	var out bytes.Buffer
	if err := d.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestMergedShardsAreTheWholeRun, byte for byte, however many there are and in
// whatever order they come.
func TestMergedShardsAreTheWholeRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run, all := drawRun(t)
		shuffled := rapid.Permutation(all).Draw(t, "order of the worlds")
		want := document(t, sweep.Summarize(run, slices.Clone(shuffled)))
		count := rapid.IntRange(1, 12).Draw(t, "shards")
		var parts []*sweep.Part
		for i := 1; i <= count; i++ {
			data := written(run, sweep.Shard{Index: i, Count: count}, all)
			p, err := sweep.ReadPart(fmt.Sprint(i), bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, p)
		}
		d, err := sweep.Merge(rapid.Permutation(parts).Draw(t, "order of the shards"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, document(t, d)); diff != "" {
			t.Errorf("%d shards (-whole +merged):\n%s", count, diff)
		}
	})
}

var plain = sweep.Run{Version: "v1", Scenario: "drain", Digest: "d", Seed: 1, Samples: 4,
	Axes: sweep.Grid{{Path: "order", Values: []string{"ByID", "Adaptive"}}}}

// samplesOf returns a sample of every world of a run.
func samplesOf(run sweep.Run) []sweep.Sample {
	var all []sweep.Sample
	for w := range run.Worlds() {
		c, n := run.World(w)
		all = append(all, sweep.Sample{Combination: c, Sample: n, Ending: "at rest"})
	}
	return all
}

func TestMergeRefuses(t *testing.T) {
	other := func(change func(*sweep.Run)) sweep.Run {
		r := plain
		change(&r)
		return r
	}
	type shard struct {
		run   sweep.Run
		index int
		count int
	}
	tests := []struct {
		name   string
		shards []shard
		want   string
	}{
		{"nothing", nil, "there are no shards"},
		{"a shard twice", []shard{{plain, 1, 2}, {plain, 1, 2}}, "f0 and f1 are both shard 1/2"},
		{"a shard is missing", []shard{{plain, 1, 3}, {plain, 3, 3}}, "missing: shard 2/3"},
		{"many are missing", []shard{{plain, 20, 20}},
			"missing: shard 1/20, 2/20, 3/20, 4/20, 5/20, 6/20, 7/20, 8/20, 9/20, 10/20, " +
				"and 9 more"},
		{"another number of shards", []shard{{plain, 1, 2}, {plain, 2, 3}},
			"f0 and f1 are not of the same run: the numbers of shards differ, 2 and 3"},
		{"another version", []shard{{plain, 1, 2},
			{other(func(r *sweep.Run) { r.Version = "v2" }), 2, 2}},
			"the versions of godwit differ, v1 and v2"},
		{"another scenario", []shard{{plain, 1, 2},
			{other(func(r *sweep.Run) { r.Scenario = "x" }), 2, 2}},
			"the scenarios differ, drain and x"},
		{"the scenario was edited", []shard{{plain, 1, 2},
			{other(func(r *sweep.Run) { r.Digest = "e" }), 2, 2}},
			"the contents of the files that they read differ"},
		{"another seed", []shard{{plain, 1, 2},
			{other(func(r *sweep.Run) { r.Seed = 2 }), 2, 2}}, "the seeds differ, 1 and 2"},
		{"more samples", []shard{{plain, 1, 2},
			{other(func(r *sweep.Run) { r.Samples = 5 }), 2, 2}},
			"the numbers of samples differ, 4 and 5"},
		{"another sweep", []shard{{plain, 1, 2},
			{other(func(r *sweep.Run) { r.Axes = nil }), 2, 2}}, "the sweeps differ"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var parts []*sweep.Part
			for i, s := range tt.shards {
				data := written(s.run, sweep.Shard{Index: s.index, Count: s.count},
					samplesOf(s.run))
				p, err := sweep.ReadPart(fmt.Sprintf("f%d", i), bytes.NewReader(data))
				if err != nil {
					t.Fatal(err)
				}
				parts = append(parts, p)
			}
			_, err := sweep.Merge(parts)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Merge() = %v, want %q in it", err, tt.want)
			}
		})
	}
}

// TestAFileThatWasCutOffIsRefused, wherever it was cut.
func TestAFileThatWasCutOffIsRefused(t *testing.T) {
	data := written(plain, sweep.Shard{Index: 2, Count: 3}, samplesOf(plain))
	for n := range len(data) - 1 { // without the last newline nothing is missing
		_, err := sweep.ReadPart("f", bytes.NewReader(data[:n]))
		if err == nil || !strings.HasPrefix(err.Error(), "f") {
			t.Fatalf("cut after %d of %d bytes: %v", n, len(data), err)
		}
	}
	if _, err := sweep.ReadPart("f", bytes.NewReader(data)); err != nil {
		t.Error(err)
	}
}

func TestReadPartRefuses(t *testing.T) {
	good := string(written(plain, sweep.Shard{Index: 1, Count: 2}, samplesOf(plain)))
	lines := strings.SplitAfter(good, "\n")
	tests := []struct{ name, text, want string }{
		{"nothing", "", "f:1: it is no shard of a sweep"},
		{"a long line", strings.Repeat("{", 5<<20), "f:1: it is no shard of a sweep"},
		{"a long line later", lines[0] + strings.Repeat(" ", 5<<20),
			"f: a line is longer than 4 MiB"},
		{"another document", "{}\n", "f:1: it is no shard of a sweep"},
		{"a whole run", document(t, sweep.Summarize(plain, samplesOf(plain))),
			"f:1: it is no shard of a sweep"},
		{"an impossible shard", strings.Replace(good, `"index":1`, `"index":3`, 1),
			"f:1: there is no shard 3/2"},
		{"a run of no samples", strings.Replace(good, `"samples":4`, `"samples":0`, 1),
			"f:1: there must be 1 to"},
		{"a line that is no sample", lines[0] + "x\n" + strings.Join(lines[1:], ""), "f: line 2: "},
		{"an unknown field", strings.Replace(good, `"retries"`, `"retrys"`, 1),
			"f: line 2: "},
		{"two samples in a line", lines[0] + strings.TrimSpace(lines[1]) +
			strings.Join(lines[2:], ""), "f: line 2: there is more than one value in the line"},
		{"a sample of another shard", strings.Replace(good, `"sample":2`, `"sample":1`, 1),
			"f: it does not have the 4 samples of shard 1/2"},
		{"a shard that was interrupted", strings.Replace(good, "true", "false", 1),
			"f: shard 1/2 was interrupted after 4 samples: run it again"},
		{"a sample is missing", lines[0] + strings.Join(lines[2:], ""),
			"f: the file of shard 1/2 is cut off"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := sweep.ReadPart("f", strings.NewReader(tt.text))
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("ReadPart() = %v, want %q", err, tt.want)
			}
		})
	}
}

// FuzzReadPart: whatever the file, there is an answer, and errors name it.
func FuzzReadPart(f *testing.F) {
	f.Add(written(plain, sweep.Shard{Index: 1, Count: 2}, samplesOf(plain)))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := sweep.ReadPart("f", bytes.NewReader(data))
		if err != nil && !strings.HasPrefix(err.Error(), "f") {
			t.Errorf("error %q does not name the file", err)
		}
		if err == nil && len(p.Samples) > len(data) {
			t.Errorf("%d samples", len(p.Samples))
		}
	})
}

// TestAnInterruptedRunComparesWhatItHas: pairs only.
func TestAnInterruptedRunComparesWhatItHas(t *testing.T) {
	all := samplesOf(plain)
	all[6].Ending = "futile"
	d := sweep.Summarize(plain, slices.Delete(all, 1, 5)) // sample 0; and 1, 2, 3 of the other
	if d.Worlds != 8 || d.Complete != 4 || d.Combinations[0].Samples != 1 ||
		d.Combinations[1].Samples != 3 || d.Combinations[1].NotAtRest != 1 ||
		len(d.Comparisons) != 0 {
		t.Errorf("without a pair: %+v", d)
	}
	d = sweep.Summarize(plain, slices.Delete(samplesOf(plain), 2, 5))
	if n := len(d.Comparisons); n == 0 {
		t.Fatal("with a pair nothing is compared")
	}
	for _, c := range d.Comparisons {
		if c.Same != 1 || c.Less+c.More != 0 || c.Combination != 1 || c.Against != 0 {
			t.Errorf("one pair: %+v", c)
		}
	}
}
