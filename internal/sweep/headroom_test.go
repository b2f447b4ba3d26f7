package sweep_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/sweep"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// lossy is a drain in which two hosts are full for a while, and a host that dies.
const lossy = `
name: a drain and a dead host
hosts:
- {name: "n[1-3]", memory: 64GiB, cpus: 32, link: 10Gbit/s}
vms:
- {name: moves, host: n1, memory: 32GiB, cpus: 2, class: web}
- {name: dies, host: n2, memory: 16GiB, cpus: 2, class: web}
until: 1h
failover: {}
vary: {dirty: lognormal(0.5), link: "uniform(0.5, 1)"}
events: [10s migrate moves to=n3, 5m crash n2, 20m migrate moves to=n1]
`

// Worked out by hand: while it moves, a VM takes its memory of both hosts. When n2 has died its VM is
// started on n1, which has the most memory free, and stays there.
func TestHeadroomIsWhatVMsAndArrivalsLeave(t *testing.T) {
	d, _ := run(t, parse(t, lossy))
	const gib = 1 << 30
	want := map[string]int64{"n1": 16 * gib, "n2": 48 * gib, "n3": 32 * gib}
	first := map[string]int{"n1": 500, "n2": 250, "n3": 0}
	last := map[string]int{"n1": 750, "n2": 0, "n3": 500} // the page ends with the last migration
	for _, h := range d.Headroom {
		if h.Least != want[h.Name] || h.Memory != 64*gib {
			t.Errorf("%s has %d GiB left of %d, want %d", h.Name, h.Least/gib, h.Memory/gib, want[h.Name]/gib)
		}
		if n := len(h.Used) - 1; math.Abs(float64(h.Used[n]-last[h.Name])) > 250 {
			t.Errorf("%s: at last %d are used, want about %d", h.Name, h.Used[n], last[h.Name])
		}
		if h.Name != "n3" && h.Used[0] != first[h.Name] {
			t.Errorf("%s: at first %d are used, want %d", h.Name, h.Used[0], first[h.Name])
		}
	}
	if len(d.Headroom) != 3 || d.Headroom[0].Name != "n1" || d.Headroom[2].Name != "n2" {
		t.Errorf("%d hosts, the fullest %s", len(d.Headroom), d.Headroom[0].Name)
	}
}

// sampled simulates a scenario in some worlds.
func sampled(t *testing.T, text string, samples int) *sweep.Document {
	t.Helper()
	s := parse(t, text)
	var all []sweep.Sample
	job := sweep.Sweep{Run: sweep.Run{Scenario: s.Name, Seed: 1, Samples: samples},
		Load:   func(int) (*config.Scenario, error) { return s, nil },
		Sample: func(s *sweep.Sample) error { all = append(all, *s); return nil }}
	if err := job.Simulate(context.Background()); err != nil {
		t.Fatal(err)
	}
	return sweep.Summarize(job.Run, all)
}

// The judge counts in every sample which of its migrations had succeeded by the times of the fan.
func TestAFanHoldsTheSamples(t *testing.T) {
	d := sampled(t, lossy, 40)
	r := sweep.SweepReport(d)
	if len(r.Fans) != 1 || r.Fans[0].Samples != 40 {
		t.Fatalf("%+v", r.Fans)
	}
	f := r.Fans[0]
	for q, list := range map[float64][]float64{0.1: f.P10, 0.5: f.P50, 0.9: f.P90} {
		if !slices.IsSorted(list) || len(list) != 51 || list[0] != 0 {
			t.Errorf("%v: %v", q, list)
		}
		for i, at := range list[1:] {
			done := 0
			for k := range d.Samples {
				if c := d.Samples[k].Completion; float64(c[i+1]) <= at+0.001 {
					done++
				}
			}
			if done < int(q*40) {
				t.Errorf("by %v s only %d of 40 have %d %%", at, done, 2*(i+1))
			}
		}
	}
}

// What never comes is not a time: of two VMs one stays in every sample.
func TestAFanEndsWhereSamplesDo(t *testing.T) {
	f := sweep.SweepReport(sampled(t, `
hosts: [{name: "n[1-2]", memory: 64GiB, cpus: 32, link: 10Gbit/s}]
vms:
- {name: moves, host: n1, memory: 8GiB, cpus: 2, class: web}
- {name: stays, host: n1, memory: 8GiB, cpus: 2, class: web, whyNot: a disk is on the host}
onUnmovable: Keep
until: 1h
events: [0s drain n1]
`, 5)).Fans[0]
	if f.P50[25] <= 0 || f.P50[26] != -1 || f.P90[50] != -1 {
		t.Errorf("%v", f.P50)
	}
}

func TestTwoResultsSideBySide(t *testing.T) {
	d := sampled(t, lossy, 20)
	many, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	_, w := run(t, parse(t, lossy))
	result := w.Result()
	one, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	before, err := sweep.ReadRunSummary("many.json", many)
	if err != nil {
		t.Fatal(err)
	}
	after, err := sweep.ReadRunSummary("one.json", one)
	if err != nil {
		t.Fatal(err)
	}
	stat := d.Combinations[0].Statistic("downtimeP99Milliseconds")
	for _, r := range sweep.Beside(before, after).Rows {
		switch r.Measure {
		case "durationP99Seconds", "retries":
			if r.After != nil || r.Verdict != "unknown" {
				t.Errorf("%s of a single result is %+v: it does not know it", r.Measure, r.After)
			}
		case "downtimeP99Milliseconds":
			x := result.Downtime.P99
			want := "within"
			if x < stat.P10 {
				want = "below"
			} else if x > stat.P90 {
				want = "above"
			}
			if r.Before.P10 != stat.P10 || r.After.P50 != x || r.Verdict != want {
				t.Errorf("%+v, want %s", r, want)
			}
		}
	}
	worse := result
	worse.BytesTransferred++
	for _, r := range sweep.Beside(sweep.RunSummaryOf("a", result), sweep.RunSummaryOf("b", worse)).Rows {
		if want := map[bool]string{true: "more", false: "the same"}[r.Measure == "bytesTransferred"]; r.Verdict != want {
			t.Errorf("%s is %s", r.Measure, r.Verdict)
		}
	}
	for _, bad := range []string{"", "{", "[]", "{}", `{"run":{}}`, `{"downtimeMilliseconds":"x"}`} {
		if _, err := sweep.ReadRunSummary("bad.json", []byte(bad)); err == nil || !strings.Contains(err.Error(), "bad.json") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func worldsAreCompared(t *testing.T, open opener) {
	d, w := run(t, parse(t, lossy))
	d.Compared = sweep.Beside(sampled(t, lossy, 20).Combinations[0].RunSummary("plan.json"),
		sweep.RunSummaryOf("night", w.Result()))
	p := open(d, testutil.Desktop)
	said := testutil.Eval[[]string](p, `["headroom-caption", "outages-note", "compared-title",
		"compared-note"].map(id => document.getElementById(id).innerText)`)
	for i, want := range []string{"16\u00a0GiB of 64\u00a0GiB, on n1", "VM-min in all", "Predicted and happened",
		"Predicted: plan.json (20 worlds). Happened: night (1 world)."} {
		if !strings.Contains(said[i], want) {
			t.Errorf("the page says %q, want %q in it", said[i], want)
		}
	}
	if got := testutil.Eval[string](p, `document.querySelector("#figure-outages").dataset.exact`); got !=
		fmt.Sprint(w.Result().Outages.TotalSeconds) {
		t.Errorf("outages are %s, want %v s", got, w.Result().Outages.TotalSeconds)
	}
	p.Focus("#headroom")
	p.Press("+")
	zoom := testutil.Eval[[]float64](p, `["timeline", "headroom"].map(id => echarts.getInstanceByDom(
		document.getElementById(id)).getOption().dataZoom[0].start)`)
	if !slices.Equal(zoom, []float64{25, 25}) {
		t.Errorf("plus zooms to %v, want both charts from 25 %%", zoom)
	}
	p.Press("0")
	p.Settle() // the focus scrolls smoothly
	if _, told := pointAt(p, "headroom", 0.5, 20); !strings.Contains(told, "n1") || !strings.Contains(told, "Least headroom") {
		t.Errorf("the tooltip says %q", told)
	}
	quiet(p)
}

func samplesAreAFan(t *testing.T, open opener) {
	d := sweep.SweepReport(sampled(t, lossy, 20))
	second := d.Fans[0]
	d.Fans = append(d.Fans, second)
	d.Fans[1].P50 = slices.Repeat([]float64{-1}, 51)
	p := open(d, testutil.Desktop)
	p.Settle()
	if counts := testutil.Eval[[]int](p, painted); len(counts) != 2 || counts[1] < 5 {
		t.Errorf("the charts have %v colours, want two charts with some", counts)
	}
	caption := func() string {
		return testutil.Eval[string](p, `document.querySelector("#fan-caption").innerText`)
	}
	if got := caption(); !strings.Contains(got, "20 samples: complete after") || strings.Contains(got, "never") {
		t.Errorf("the fan is %q", got)
	}
	if rows := testutil.Eval[int](p, `document.querySelectorAll("#outages tbody tr").length`); rows != 2 {
		t.Errorf("%d VMs have outages, want 2", rows)
	}
	p.Focus(`[data-table="fan"] summary`)
	p.Press(testutil.KeyEnter)
	p.Until(`document.querySelectorAll('[data-table="fan"] tbody tr').length`, 51)
	p.Focus("#fan-of")
	p.Press(testutil.KeyDown)
	if got := caption(); !strings.Contains(got, "never in half of them") {
		t.Errorf("the other combination is %q", got)
	}
	testutil.Eval[any](p, `dispatchEvent(new Event("beforeprint"))`)
	p.Settle()
	if counts := testutil.Eval[[]int](p, painted); len(counts) != 2 || slices.Min(counts) < 3 {
		t.Errorf("printed, the charts have %v colours", counts)
	}
	quiet(p)
}
