package sweep_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/sweep"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const varied = `
name: two hosts are drained
hosts:
- {name: "n[1-5]", memory: 128GiB, cpus: 64, link: 10Gbit/s}
vms:
- {name: "web-[1-8]", host: "n[1-2]", memory: 8GiB, cpus: 2, class: web}
- {name: db, host: n1, memory: 16GiB, cpus: 4, class: database}
vary:
  dirty: lognormal(0.5)
  link: uniform(0.5, 1)
  faults: [50% within 2m crash-agent any-host for=20s, 2x within 1m reset any-host any-host]
events:
- 0s drain n1
- 5s drain n2
`

var plan = sweep.Run{Version: "v", Scenario: "two hosts are drained", Seed: 1, Samples: 3,
	Axes: sweep.Grid{{Path: "limits.perCluster", Values: []string{"1", "4"}},
		{Path: "order", Values: []string{"ByID", "Adaptive"}}}}

// load returns the scenario of a combination of the plan.
func load(combination int) (*config.Scenario, error) {
	var overrides []config.Override
	for _, s := range plan.Axes.At(combination) {
		if s.Value != "" {
			overrides = append(overrides, config.Override(s))
		}
	}
	return config.Parse("f", []byte(varied), overrides...)
}

// samples simulates a shard of the plan.
func samples(t *testing.T, shard sweep.Shard, workers int) []sweep.Sample {
	t.Helper()
	var all []sweep.Sample
	s := sweep.Sweep{Run: plan, Shard: shard, Workers: workers, Load: load,
		Sample: func(s *sweep.Sample) error { all = append(all, *s); return nil }}
	if err := s.Simulate(context.Background()); err != nil {
		t.Fatal(err)
	}
	return all
}

func text(t *testing.T, d *sweep.Document) string {
	t.Helper()
	var out bytes.Buffer
	if err := d.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestTheBytesAreTheSame: on one core or on several, whole or in shards.
func TestTheBytesAreTheSame(t *testing.T) {
	whole := samples(t, sweep.Shard{}, 1)
	want := text(t, sweep.Summarize(plan, slices.Clone(whole)))
	if got := text(t, sweep.Summarize(plan, samples(t, sweep.Shard{}, 3))); got != want {
		t.Errorf("one at a time and three at once differ (-one +three):\n%s", cmp.Diff(want, got))
	}
	var parts []*sweep.Part
	for i := range 3 {
		shard := sweep.Shard{Index: i + 1, Count: 3}
		parts = append(parts, &sweep.Part{Name: shard.String(), Run: plan, Shard: shard,
			Samples: samples(t, shard, 2)})
	}
	merged, err := sweep.Merge(parts)
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, merged); got != want {
		t.Errorf("the whole and its shards differ (-whole +shards):\n%s", cmp.Diff(want, got))
	}
	// The same sample has the same seed in every combination, and samples differ.
	seen := map[float64]bool{}
	for i, s := range whole {
		if s.Seed != whole[i%plan.Samples].Seed {
			t.Errorf("combination %d, sample %d has seed %d", s.Combination, s.Sample, s.Seed)
		}
		seen[s.Makespan] = true
	}
	if len(seen) < len(whole)/2 {
		t.Errorf("%d worlds have only %d makespans", len(whole), len(seen))
	}
}

// TestASampleIsWhatOneSimulationIs, and its own figures are those of the trace.
func TestASampleIsWhatOneSimulationIs(t *testing.T) {
	for _, got := range samples(t, sweep.Shard{Index: 2, Count: 4}, 2) {
		base, err := load(got.Combination)
		if err != nil {
			t.Fatal(err)
		}
		s, err := base.Draw(got.Seed)
		if err != nil {
			t.Fatal(err)
		}
		config := s.Config(got.Seed)
		began, took, ends := map[string]time.Duration{}, []float64{}, []float64{}
		config.Trace = func(e sim.Entry) {
			switch {
			case strings.Contains(e.What, "→ Running"):
				began[string(e.VM)] = e.At
			case strings.Contains(e.What, "→ Succeeded"):
				took = append(took, (e.At - began[string(e.VM)]).Seconds())
				ends = append(ends, e.At.Seconds())
			}
		}
		w, err := s.Build(config)
		if err != nil {
			t.Fatal(err)
		}
		ending := w.Run(s.Until)
		w.CheckAtRest()
		r := w.Result()
		want := sweep.Sample{Combination: got.Combination, Sample: got.Sample, Seed: got.Seed,
			Ending: ending.String(), Retries: retries(w)}
		want.Fill(r)
		slices.Sort(took)
		want.Duration = sweep.SpreadOf(took)
		for share := range 51 { // as many ends as are this share of all, and who stayed has none
			all := float64(len(ends) + want.Stayed)
			at, n := math.Inf(1), int(math.Ceil(all*float64(share)/50-1e-9))
			if n == 0 {
				at = 0
			} else if n <= len(ends) {
				at = ends[n-1]
			}
			want.Completion = append(want.Completion, float32(at))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-alone +in the sweep):\n%s", diff)
		}
		if len(took) != r.Migrations.Succeeded || len(took) < 9 || got.Duration.P50 <= 0 {
			t.Errorf("%d migrations have a duration, %d succeeded", len(took),
				r.Migrations.Succeeded)
		}
	}
}

// retries counts from the records that are kept.
func retries(w *sim.World) (n int) {
	for _, vm := range w.VMs() {
		all := w.Migrations(vm)
		for i, m := range all[:max(0, len(all)-1)] {
			if m.State.Phase == migration.Failed && all[i+1].Spec.VM == vm {
				n++
			}
		}
	}
	return n
}

// one simulates one world of a scenario to which events are added.
func one(t *testing.T, text string, events ...config.Scheduled) (got sweep.Sample) {
	t.Helper()
	s := sweep.Sweep{Run: sweep.Run{Samples: 1},
		Load: func(int) (*config.Scenario, error) {
			s, err := config.Parse("f", []byte(text))
			s.Events = append(s.Events, events...)
			return s, err
		},
		Sample: func(s *sweep.Sample) error { got = *s; return nil }}
	if err := s.Simulate(context.Background()); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestRetriesAreCounted(t *testing.T) {
	const hopeless = `
config: {completionTimeoutPerGiB: 5s}
hosts: [{name: "n[1-2]", memory: 64GiB, cpus: 16, link: 1Gbit/s}]
vms: [{name: busy, host: n1, memory: 16GiB, dirty: 2GiB/s}]
until: 30m
`
	got := one(t, hopeless+"events: [migrate busy]")
	if got.Migrations.Failed != 1 || got.Migrations.Total != 1 || got.Retries != 0 {
		t.Errorf("no migration is retried: %d failed of %d, %d retries", got.Migrations.Failed,
			got.Migrations.Total, got.Retries)
	}
	got = one(t, hopeless+"events: [drain n1]")
	m := got.Migrations
	if m.Failed < 3 || got.Retries != m.Total-1 || got.Stayed != 1 || got.Ending != "time is up" {
		t.Errorf("%d failed of %d, %d retries, %d stayed, %s", m.Failed, m.Total, got.Retries,
			got.Stayed, got.Ending)
	}
}

// A migration that was withdrawn because its VM was to stop is not tried again by the next one.
func TestAMigrationAfterOneThatWasWithdrawnIsNoRetry(t *testing.T) {
	got := one(t, `
hosts: [{name: "n[1-3]", memory: 64GiB, cpus: 64, link: 1Gbit/s}]
vms: [{name: a, host: n1, memory: 16GiB, class: idle}]
events: [1s migrate a to=n2, 5s stop a, 2m start a, 5m migrate a to=n3]
`)
	if m := got.Migrations; m.Aborted != 1 || m.Succeeded != 1 || got.Retries != 0 {
		t.Errorf("%+v, %d retries", m, got.Retries)
	}
}

// Where a drained host is not emptied nothing is said of how long that took: not that it took no time, and not that it
// took less than where it is emptied.
func TestADrainThatIsNotEmptiedIsNotFaster(t *testing.T) {
	const text = `
hosts: [{name: "n[1-2]", memory: 64GiB, cpus: 16, link: 1Gbit/s}]
vms:
- {name: a, host: n1, memory: 4GiB, cpus: 2, dirty: 2GiB/s, workingSet: 2GiB}
config: {allowAutoConverge: true, completionTimeoutPerGiB: 30s, progressTimeout: 20s}
until: 1h
events: [1s drain n1]
`
	for _, more := range []string{"", "- {name: b, host: n1, memory: 1GiB, class: idle}\n"} {
		vms := strings.Replace(text, "config:", more+"config:", 1)
		d := gridOf(t, vms, 8, sweep.Grid{{Path: "config.maxDowntimeMs", Values: []string{"100", "60000"}}})
		never, soon := d.Combinations[0], d.Combinations[1]
		if never.NotEmptied != 8 || soon.NotEmptied != 0 {
			t.Errorf("not emptied: %d and %d", never.NotEmptied, soon.NotEmptied)
		}
		known := map[bool]int{true: 0, false: 8}[more == ""] // until b has left
		if n := never.Statistic("makespanSeconds").Samples; n != known || soon.Statistic("makespanSeconds").Samples != 8 {
			t.Errorf("a makespan in %d samples, want %d", n, known)
		}
		for _, c := range d.Comparisons {
			if c.Measure == "makespanSeconds" {
				t.Errorf("makespans are compared: %+v", c)
			}
		}
		for _, r := range sweep.Beside(never.RunSummary("a"), soon.RunSummary("b")).Rows {
			if r.Measure == "makespanSeconds" && r.Verdict != "unknown" {
				t.Errorf("%s is %s", r.Measure, r.Verdict)
			}
		}
	}
}

// gridOf simulates a grid of a scenario.
func gridOf(t *testing.T, text string, samples int, grid sweep.Grid) *sweep.Document {
	t.Helper()
	run := sweep.Run{Samples: samples, Axes: grid}
	var all []sweep.Sample
	s := sweep.Sweep{Run: run, Load: func(combination int) (*config.Scenario, error) {
		var overrides []config.Override
		for _, set := range grid.At(combination) {
			overrides = append(overrides, config.Override{Path: set.Path, Value: set.Value})
		}
		return config.Parse("f", []byte(text), overrides...)
	}, Sample: func(s *sweep.Sample) error {
		all = append(all, *s)
		return nil
	}}
	if err := s.Simulate(context.Background()); err != nil {
		t.Fatal(err)
	}
	return sweep.Summarize(run, all)
}

// TestAnInterruptedSweepTellsWhatIsComplete, in order, and why it ended.
func TestAnInterruptedSweepTellsWhatIsComplete(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := errors.New("enough")
	long := plan
	long.Samples = 10_000
	var told []int
	s := sweep.Sweep{Run: long, Workers: 2, Load: load, Sample: func(s *sweep.Sample) error {
		told = append(told, s.Combination*long.Samples+s.Sample)
		if len(told) == 5 {
			cancel(stop)
		}
		return nil
	}}
	if err := s.Simulate(ctx); !errors.Is(err, stop) {
		t.Errorf("Simulate() = %v, want the context's cause", err)
	}
	if len(told) < 5 || len(told) == long.Worlds() || !slices.IsSorted(told) {
		t.Errorf("it told of %d worlds, %v…", len(told), told[:min(len(told), 20)])
	}
	told = nil
	if err := s.Simulate(ctx); !errors.Is(err, stop) || len(told) > 0 {
		t.Errorf("begun too late: %v, %v", err, told)
	}
}

func TestACompleteMigrationIsNotInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := sweep.Sweep{Run: sweep.Run{Samples: 1}, Load: load,
		Sample: func(*sweep.Sample) error { cancel(); return nil }}
	if err := s.Simulate(ctx); err != nil {
		t.Errorf("told to end after the last world: %v", err)
	}
}

func TestAnErrorEndsTheSweepAndNamesTheWorld(t *testing.T) {
	broken := errors.New("broken")
	s := sweep.Sweep{Run: plan, Load: load, Sample: func(*sweep.Sample) error { return broken }}
	if err := s.Simulate(context.Background()); !errors.Is(err, broken) {
		t.Errorf("the error of Sample becomes %v", err)
	}
	none := func(*sweep.Sample) error { return nil }
	s = sweep.Sweep{Run: plan, Sample: none,
		Load: func(int) (*config.Scenario, error) { return nil, broken }}
	if err := s.Simulate(context.Background()); !errors.Is(err, broken) {
		t.Errorf("the error of Load becomes %v", err)
	}
	s.Load = func(combination int) (*config.Scenario, error) {
		s, err := load(combination)
		s.Events = append(s.Events, config.Scheduled{At: time.Second, What: sim.Change{
			VM: "default/db", How: func(*store.VM) { panic("out of order") }}})
		return s, err
	}
	s.Shard = sweep.Shard{Index: 5, Count: 12}
	err := s.Simulate(context.Background())
	want := fmt.Sprintf("limits.perCluster=1 order=Adaptive, seed %d: panic: out of order\n",
		sweep.Seed(1, 1))
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("a panic becomes %.200v, want %q", err, want)
	}
}

// TestTheEndIsChecked: there are promises that hold only when a world has come to
// rest.
func TestTheEndIsChecked(t *testing.T) {
	got := one(t, varied, config.Scheduled{At: 10 * time.Minute, What: sim.Change{
		VM: "default/web-1", How: func(v *store.VM) { v.Host = "n5" }}})
	left := func(v sim.Violation) bool { return v.Invariant == "nothing-left" }
	if !slices.ContainsFunc(got.Violations, left) {
		t.Errorf("a copy was left behind, and the violations are %v", got.Violations)
	}
}

func TestAViolationIsInTheSample(t *testing.T) {
	var got []sweep.Sample
	s := sweep.Sweep{Run: plan, Shard: sweep.Shard{Index: 1, Count: 12},
		Load: func(combination int) (*config.Scenario, error) {
			s, err := load(combination)
			s.Events = append(s.Events, config.Scheduled{At: 2 * time.Second, What: sim.Tamper{
				VM: "default/db", What: "sabotage", How: func(m *store.Migration) {
					m.State.Phase = migration.Succeeded
				}}})
			return s, err
		},
		Sample: func(s *sweep.Sample) error { got = append(got, *s); return nil }}
	if err := s.Simulate(context.Background()); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || len(got[0].Violations) == 0 {
		t.Fatalf("the samples are %+v", got)
	}
	d := sweep.Summarize(plan, got)
	if v := d.Violated(); len(v) != 1 || v[0].Seed != 1 || d.Combinations[0].Violated != 1 {
		t.Errorf("the document has %+v", v)
	}
}

// BenchmarkSimulate measures worlds a second, one at a time and one on each core.
func BenchmarkSimulate(b *testing.B) {
	for _, workers := range []int{1, runtime.GOMAXPROCS(0)} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			many := plan
			many.Samples = max(1, b.N/many.Axes.Size())
			s := sweep.Sweep{Run: many, Workers: workers, Load: load,
				Sample: func(*sweep.Sample) error { return nil }}
			if err := s.Simulate(context.Background()); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(many.Worlds())/b.Elapsed().Seconds(), "worlds/s")
		})
	}
}
