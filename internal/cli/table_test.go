package cli

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/internal/sweep"
	"github.com/godwit-vm/godwit/sim"
)

func TestTheTableSaysWhatWentWrong(t *testing.T) {
	run := sweep.Run{Scenario: "s", File: "s.yaml", Seed: 1, Samples: 20,
		Axes: sweep.Grid{{Path: "seed", Values: []string{"1", "2"}},
			{Path: "vary.dirty", Values: []string{"", "lognormal(1)"}}}}
	var samples []sweep.Sample
	for n := range mostViolated + 2 {
		samples = append(samples, sweep.Sample{Sample: n, Combination: 1, Seed: uint64(n),
			Ending: sim.Futile.String(), Violations: []sim.Violation{{Invariant: "runs-once"}}})
	}
	var out bytes.Buffer
	if err := Print(&out, sweep.Summarize(run, samples), false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"s: 4 combinations, 20 samples each (seed 1)\ninterrupted: 12 of 80 worlds complete\n",
		"\n1  seed=1 vary.dirty=\n",
		"\n1  no sample is complete\n",
		"\n12 worlds did not become idle: ended early, or stopped at until:\n",
		"\nVIOLATED in 12 worlds:\n",
		"\nseed=1 vary.dirty=lognormal(1), seed 9, at 0.0s: runs-once: \n" +
			"  godwit simulate s.yaml --seed 9 --sweep 'vary.dirty=lognormal(1)'\n… and 2 more",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table does not say\n%s\nbut\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "Compared") {
		t.Error("the table compares what is not there")
	}
}

func TestAPageHasItsLimits(t *testing.T) {
	axis := sweep.Axis{Path: "seed"}
	var samples []sweep.Sample
	for n := range mostRows + 7 {
		axis.Values = append(axis.Values, strconv.Itoa(n))
		samples = append(samples, sweep.Sample{Combination: n, Ending: "at rest"})
	}
	run := sweep.Run{Samples: 1, Axes: sweep.Grid{axis}}
	var out bytes.Buffer
	if err := Print(&out, sweep.Summarize(run, samples), false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "\n… and 7 more; --json has them all\n") ||
		strings.Contains(out.String(), "\n101") || !strings.Contains(out.String(), "\n100 ") {
		t.Errorf("the page is\n%s", out.String())
	}
}

func TestAmountsHaveTheUnitOfTheirMeasure(t *testing.T) {
	for _, tt := range []struct {
		measure string
		x       float64
		want    string
	}{
		{"makespanSeconds", -75, "makespan -1m15s"},
		{"downtimeP99Milliseconds", 12.6, "downtime p99 13 ms"},
		{"bytesTransferred", -3 << 30, "bytes -3GiB"},
		{"failures", 0.254, "failures 0.25"},
	} {
		if got := phrase(tt.measure) + " " + sweepAmount(tt.measure, tt.x); got != tt.want {
			t.Errorf("%v of %s reads %q, want %q", tt.x, tt.measure, got, tt.want)
		}
	}
}
