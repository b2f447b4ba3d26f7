package config_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/internal/config"
)

func TestDistributionsHaveTheirShape(t *testing.T) {
	tests := []struct {
		text              string
		low, median, high float64 // the smallest and largest drawn, and the median
	}{
		{"uniform(0.5, 1.5)", 0.5, 1, 1.5},
		{"triangular(0.5, 1, 1)", 0.5, 0.854, 1}, // 1/2 + 1/2·√½
		{"triangular(1,1,2)", 1, 1.293, 2},       // 2 - √½
		{"lognormal(0.5)", 0.1, 1, 10},
		{"choice(0.5, 1, 2)", 0.5, 1, 2},
		{"uniform(2,2)", 2, 2, 2},
		{"uniform(2 4)", 2, 3, 4},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			d, err := config.ParseDistribution(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			r := config.Dirty.Of(1)
			all := make([]float64, 10001)
			for i := range all {
				all[i] = d.Draw(r)
			}
			slices.Sort(all)
			if all[0] < tt.low || all[len(all)-1] > tt.high {
				t.Errorf("drawn from %v to %v", all[0], all[len(all)-1])
			}
			if got := all[len(all)/2]; math.Abs(got-tt.median) > 0.03 {
				t.Errorf("median %v, want about %v", got, tt.median)
			}
			if d.Fixed() || d.String() != tt.text {
				t.Errorf("it reads %q, fixed %v", d, d.Fixed())
			}
		})
	}
}

// TestTheLognormalHasItsSigma: about 68 % of the logarithms lie within one sigma.
func TestTheLognormalHasItsSigma(t *testing.T) {
	d, err := config.ParseDistribution("lognormal(0.5)")
	if err != nil {
		t.Fatal(err)
	}
	r, within := config.Link.Of(3), 0
	for range 10000 {
		if math.Abs(math.Log(d.Draw(r))) < 0.5 {
			within++
		}
	}
	if within < 6600 || within > 7060 {
		t.Errorf("%d of 10000 within one sigma, want about 6827", within)
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", "is no distribution: use uniform(LOW, HIGH), triangular("},
		{"normal(1)", "is no distribution"},
		{"uniform", "is no distribution"},
		{"uniform(1, 2", "is no distribution"},
		{"uniform(1)", "has 1 numbers: write uniform(LOW, HIGH)"},
		{"uniform(2, 1)", "the numbers must not fall"},
		{"triangular(1, 3, 2)", "the numbers must not fall"},
		{"uniform(a, b)", `"a" is no number above 0`},
		{"uniform(0, 1)", `"0" is no number above 0`},
		{"uniform(-1, 1)", `"-1" is no number above 0`},
		{"choice(NaN)", `"NaN" is no number above 0`},
		{"choice(1001)", "at most 1000"},
		{"choice()", "has 0 numbers: write choice(A, B, …)"},
		{"lognormal(3.5)", "SIGMA is at most 3"},
	}
	for _, tt := range tests {
		_, err := config.ParseDistribution(tt.text)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Parse(%q) = %v, want %q in it", tt.text, err, tt.want)
		}
	}
	var none config.Distribution
	if got := none.Draw(config.Dirty.Of(1)); got != 1 || !none.Fixed() {
		t.Errorf("the zero value draws %v", got)
	}
}

func TestFactorsAreMillionths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, err := config.ParseDistribution(fmt.Sprintf("lognormal(%f)", rapid.Float64Range(0.01, 3).
			Draw(t, "sigma")))
		if err != nil {
			t.Fatal(err)
		}
		x := d.Draw(config.Dirty.Of(rapid.Uint64().Draw(t, "seed")))
		if x < 0.001 || x > 1000 || math.Abs(x*1e6-math.Round(x*1e6)) > 1e-3 {
			t.Errorf("drawn %v", x)
		}
	})
}

func TestFaults(t *testing.T) {
	hosts, vms := []string{"n1", "n2", "n3"}, []string{"default/a"}
	read := func(text string) config.Fault {
		t.Helper()
		f, err := config.ParseFault(text, time.ParseDuration)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	// A chance comes about as often as it says, and in time.
	r, came := config.Faults.Of(1), 0
	tenth := read("10% within 1h crash-agent any-host for=30s")
	for range 2000 {
		events, err := tenth.Draw(r, hosts, vms)
		if err != nil {
			t.Fatal(err)
		}
		came += len(events)
		for _, e := range events {
			if e.At < 0 || e.At >= time.Hour || e.At%time.Millisecond != 0 {
				t.Errorf("at %v", e.At)
			}
		}
	}
	if came < 150 || came > 250 {
		t.Errorf("10%% came %d of 2000 times", came)
	}
	// A number comes that often, with two different hosts each, all of them in the end.
	events, err := read("50x within 10s reset any-host any-host").Draw(r, hosts, vms)
	if err != nil || len(events) != 50 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	seen := map[string]bool{}
	for _, e := range events {
		seen[e.Text] = true
	}
	if len(seen) != 6 || seen["reset n1 n1"] {
		t.Errorf("pairs that were drawn: %v", seen)
	}
	// What is not drawn stays.
	events, err = read("1x within 1s kill any-vm n2").Draw(r, hosts, vms)
	if err != nil || events[0].Text != "kill default/a n2" {
		t.Errorf("%v, %v", events, err)
	}
	if _, err = read("1x within 1s x any-vm any-vm").Draw(r, hosts, vms); err == nil {
		t.Error("two VMs are drawn of one")
	}
}

func TestParseFaultRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"crash n1":               "is no fault: write 10% within 1h EVENT",
		"10% within 1h":          "is no fault",
		"0% within 1h crash n1":  `"0%" is no chance`,
		"x% within 1h crash n1":  `"x%" is no chance`,
		"often within 1h crash":  `"often" says not how often`,
		"0x within 1h crash n1":  `"0x" says not how often`,
		"2 within 1h crash n1":   `"2" says not how often`,
		"2x within soon crash a": "soon",
		"2x within 0s crash n1":  "the time must be above 0",
	} {
		_, err := config.ParseFault(text, time.ParseDuration)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseFault(%q) = %v, want %q in it", text, err, want)
		}
	}
}

// TestStreamsAreApart: that one field draws does not change what another draws.
func TestStreamsAreApart(t *testing.T) {
	first := map[uint64]config.Stream{}
	for _, s := range []config.Stream{config.Dirty, config.WorkingSet, config.Link, config.Faults} {
		x := s.Of(7).Uint64()
		if _, twice := first[x]; twice {
			t.Errorf("stream %d draws what another draws", s)
		}
		first[x] = s
		if diff := cmp.Diff(x, s.Of(7).Uint64()); diff != "" {
			t.Errorf("stream %d draws something else the second time", s)
		}
	}
}

// FuzzVaryParse: whatever the text, there is an answer, and what is drawn is in bounds.
func FuzzVaryParse(f *testing.F) {
	for _, text := range []string{"uniform(0.5, 2)", "triangular(1 1 1)", "lognormal(3)",
		"choice(1,2,3)", "uniform(1e308,1)", "50% within 1h reset any-host any-host",
		"3x within 1ns kill any-vm n1"} {
		f.Add(text, uint64(1))
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		if d, err := config.ParseDistribution(text); err == nil {
			if x := d.Draw(config.Link.Of(seed)); !(x >= 0.001 && x <= 1000) {
				t.Errorf("%q draws %v", text, x)
			}
		}
		fault, err := config.ParseFault(text, time.ParseDuration)
		if err != nil {
			return
		}
		events, err := fault.Draw(config.Faults.Of(seed), []string{"a", "b"}, []string{"v"})
		for _, e := range events {
			if e.At < 0 || e.At >= fault.Within || err != nil {
				t.Errorf("%q draws %v, %v", text, e, err)
			}
		}
	})
}
