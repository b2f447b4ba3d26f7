package sweep_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/internal/sweep"
	"github.com/godwit-vm/godwit/sim"
)

func TestParseAxis(t *testing.T) {
	got, err := sweep.ParseAxis("policy=a.yaml,,b=c.yaml")
	want := sweep.Axis{Path: "policy", Values: []string{"a.yaml", "", "b=c.yaml"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	got, err = sweep.ParseAxis(`vary.dirty=,uniform(0.5, 2),triangular(1,2,3),"a,b",'c,(',d)`)
	want = sweep.Axis{Path: "vary.dirty", Values: []string{"", "uniform(0.5, 2)",
		"triangular(1,2,3)", `"a,b"`, "'c,('", "d)"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for text, want := range map[string]string{
		"limits.perCluster": "is no field with values: write limits.perCluster=2,5,10",
		"=2":                "is no field with values",
		"order=ByID,ByID":   `has the value "ByID" twice`,
	} {
		if _, err := sweep.ParseAxis(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseAxis(%q) = %v, want %q in it", text, err, want)
		}
	}
}

// TestTheGridHasEveryCombinationOnce: as nested loops would, the last axis inmost.
func TestTheGridHasEveryCombinationOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGrid(t, 4)
		want := [][]sweep.Setting{{}}
		for _, a := range g {
			var longer [][]sweep.Setting
			for _, settings := range want {
				for _, v := range a.Values {
					longer = append(longer, append(slices.Clone(settings),
						sweep.Setting{Path: a.Path, Value: v}))
				}
			}
			want = longer
		}
		var got [][]sweep.Setting
		for c := range g.Size() {
			got = append(got, g.At(c))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("combinations of %v (-want +got):\n%s", g, diff)
		}
	})
}

// drawGrid draws a grid of at most three axes with at most so many values each.
func drawGrid(t *rapid.T, most int) sweep.Grid {
	g := sweep.Grid{}
	for i := range rapid.IntRange(0, 3).Draw(t, "axes") {
		a := sweep.Axis{Path: fmt.Sprintf("axis%d", i)}
		for v := range rapid.IntRange(1, most).Draw(t, "values") {
			a.Values = append(a.Values, fmt.Sprint(v))
		}
		g = append(g, a)
	}
	return g
}

func TestRunsThatAreRefused(t *testing.T) {
	long := make([]string, 200)
	for i := range long {
		long[i] = fmt.Sprint(i)
	}
	tests := []struct {
		name string
		run  sweep.Run
		want string
	}{
		{"no samples", sweep.Run{}, "there must be 1 to 1000000 samples, there are 0"},
		{"too many samples", sweep.Run{Samples: math.MaxInt}, "there must be 1 to"},
		{"a path twice", sweep.Run{Samples: 1, Axes: sweep.Grid{{Path: "a", Values: []string{"1"}},
			{Path: "a", Values: []string{"2"}}}}, "a is given values twice"},
		{"an axis without values", sweep.Run{Samples: 1, Axes: sweep.Grid{{Path: "a"}}},
			"a has no values"},
		{"too many combinations", sweep.Run{Samples: 1, Axes: sweep.Grid{{Path: "a", Values: long},
			{Path: "b", Values: long}}}, "more than 10000 combinations"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.run.Check(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Check() = %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestSeedsAreTheScenariosAndThenDifferent(t *testing.T) {
	for _, own := range []uint64{0, 1, 2, 1 << 60, math.MaxUint64} {
		if got := sweep.Seed(own, 0); got != own {
			t.Errorf("the first sample of seed %d has seed %d", own, got)
		}
		seen := map[uint64]int{}
		for sample := range 20_000 {
			s := sweep.Seed(own, sample)
			if before, twice := seen[s]; twice {
				t.Fatalf("samples %d and %d of %d have the same seed %d", before, sample, own, s)
			}
			if seen[s] = sample; sample > 0 && s >= 1<<53 {
				t.Fatalf("sample %d of seed %d has the seed %d", sample, own, s)
			}
		}
	}
	if got, want := sweep.Seed(1, 3), uint64(1734417280172741); got != want {
		t.Errorf("Seed(1, 3) = %d, want %d: runs of before cannot be repeated", got, want)
	}
}

func TestParseShard(t *testing.T) {
	tests := []struct {
		text, index string
		want        sweep.Shard
		wrong       string
	}{
		{"1/1", "", sweep.Shard{Index: 1, Count: 1}, ""},
		{"3/8", "7", sweep.Shard{Index: 3, Count: 8}, ""},
		{"job/8", "0", sweep.Shard{Index: 1, Count: 8}, ""},
		{"job/8", "7", sweep.Shard{Index: 8, Count: 8}, ""},
		{"job/8", "8", sweep.Shard{}, `JOB_COMPLETION_INDEX is "8", not a number from 0 to 7`},
		{"job/8", "", sweep.Shard{}, "give the Job completionMode: Indexed and completions: 8"},
		{"job/8", "-1", sweep.Shard{}, "not a number from 0 to 7"},
		{"0/8", "", sweep.Shard{}, "the first number is 1 to 8"},
		{"9/8", "", sweep.Shard{}, "the first number is 1 to 8"},
		{"x/8", "", sweep.Shard{}, "the first number is 1 to 8"},
		{"3", "", sweep.Shard{}, "is no shard: write 1/8 to 8/8"},
		{"1/0", "", sweep.Shard{}, "is no shard"},
		{"1/1000000", "", sweep.Shard{}, "is no shard"},
	}
	for _, tt := range tests {
		got, err := sweep.ParseShard(tt.text, func(name string) string {
			if name != "JOB_COMPLETION_INDEX" {
				t.Errorf("it asks for %s", name)
			}
			return tt.index
		})
		if got != tt.want || (err == nil) != (tt.wrong == "") ||
			err != nil && !strings.Contains(err.Error(), tt.wrong) {
			t.Errorf("ParseShard(%q) with index %q = %v, %v", tt.text, tt.index, got, err)
		}
	}
}

// TestShardsDivideTheWorlds: every world is in one shard, and shards are equally
// large.
func TestShardsDivideTheWorlds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.IntRange(0, 200).Draw(t, "worlds")
		count := rapid.IntRange(1, 30).Draw(t, "shards")
		held := make([]int, all)
		for i := 1; i <= count; i++ {
			worlds := sweep.Shard{Index: i, Count: count}.Worlds(all)
			if n := len(worlds); n < all/count || n > all/count+1 {
				t.Errorf("shard %d/%d has %d of %d worlds", i, count, n, all)
			}
			for _, w := range worlds {
				held[w]++
			}
		}
		for w, n := range held {
			if n != 1 {
				t.Errorf("world %d is in %d shards", w, n)
			}
		}
		if got := (sweep.Shard{}).Worlds(all); len(got) != all {
			t.Errorf("no shard has %d of %d worlds", len(got), all)
		}
	})
}

func TestFillTakesTheMakespanFromTheDrains(t *testing.T) {
	never := []sim.RemainingVM{{VM: "default/a"}, {VM: "default/b"}}
	tests := []struct {
		name     string
		result   sim.Result
		makespan float64
		stayed   int
	}{
		{"without drains until nothing happens", sim.Result{VirtualSeconds: 12.5}, 12.5, 0},
		{"from the first drain to the last VM that left", sim.Result{VirtualSeconds: 1000,
			Evacuations: []sim.Evacuation{{StartSeconds: 20, LastSeconds: new(50.25)},
				{StartSeconds: 10, LastSeconds: new(45.0)}}}, 40.25, 0},
		{"VMs that stay are counted apart", sim.Result{VirtualSeconds: 1000,
			Evacuations: []sim.Evacuation{{StartSeconds: 10, LastSeconds: new(15.0), Left: never},
				{StartSeconds: 10, Left: never[:1]}}}, 5, 3},
		{"a drain that no VM leaves counts for nothing", sim.Result{VirtualSeconds: 4000,
			Evacuations: []sim.Evacuation{{StartSeconds: 0, LastSeconds: new(2.9)},
				{StartSeconds: 3600, Left: never[:1]}}}, 2.9, 1},
		{"none has left", sim.Result{VirtualSeconds: 4000,
			Evacuations: []sim.Evacuation{{StartSeconds: 10, Left: never[:1]}}}, 0, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s sweep.Sample
			s.Fill(tt.result)
			if s.Makespan != tt.makespan || s.Stayed != tt.stayed {
				t.Errorf("makespan %v, %d stayed; want %v, %d", s.Makespan, s.Stayed, tt.makespan,
					tt.stayed)
			}
		})
	}
	r := sim.Result{Violations: make([]sim.Violation, sweep.MaxViolations+5)}
	var s sweep.Sample
	if s.Fill(r); len(s.Violations) != sweep.MaxViolations {
		t.Errorf("%d violations are kept", len(s.Violations))
	}
}
