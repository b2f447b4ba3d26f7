package predict_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/predict"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// drawn returns samples of a class whose measured times are lognormal around the predicted ones.
func drawn(random *rand.Rand, class string, n int, bias, spread float64) []predict.Sample {
	all := make([]predict.Sample, n)
	for i := range all {
		p := time.Duration(1+random.IntN(60)) * time.Second
		off := func(d time.Duration) time.Duration {
			return time.Duration(float64(d) * math.Exp(bias+spread*random.NormFloat64()))
		}
		all[i] = predict.Sample{Class: class, Experiment: fmt.Sprint(i),
			Predicted: predict.Times{Total: p, Downtime: p / 20},
			Measured:  predict.Times{Total: off(p), Downtime: off(p / 20)}}
	}
	return all
}

// The judge is the distribution that the samples are drawn from: 80 % of fresh ones are within the
// range, however far the model is off, and p50 takes the bias away.
func TestFreshMeasurementsAreInRange(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{10, 14, 30, 200} {
		inside, all, half := 0, 0, 0
		for range 400 {
			e := predict.Learn(drawn(random, "c", n, 0.7, 0.4))
			for _, s := range drawn(random, "c", 20, 0.7, 0.4) {
				p := e.Of("c", s.Predicted, 0)
				x := s.Measured.Total.Seconds()
				if p.Seconds.P10 <= x && x <= p.Seconds.P90 {
					inside++
				}
				if x <= p.Seconds.P50 {
					half++
				}
				all++
			}
		}
		share, below := float64(inside)/float64(all), float64(half)/float64(all)
		if math.Abs(share-0.8) > 0.02 || math.Abs(below-0.5) > 0.02 {
			t.Errorf("learned from %d: %.3f of the others are in range and %.3f below p50, want 0.8 "+
				"and 0.5", n, share, below)
		}
	}
}

// The same judge for what HoldOut says of itself.
func TestHoldOutSaysWhatFreshMeasurementsDo(t *testing.T) {
	testutil.Unraced(t)
	random := rand.New(rand.NewPCG(3, 4))
	all := predict.HoldOut(drawn(random, "c", 400, -0.5, 0.3))
	if len(all) != 2 || all[0].Class != "c" || all[1].Class != "all" || all[0].Count != 400 {
		t.Fatalf("%+v", all)
	}
	c := all[0]
	if math.Abs(c.Total-0.8) > 0.01 || math.Abs(c.Downtime-0.8) > 0.03 ||
		c.MedianTotal < 0.15 || c.MedianTotal > 0.25 {
		t.Errorf("%+v", c)
	}
	// Experiments of one run each are left out as single measurements are.
	if whole := predict.HoldOutExperiments(drawn(rand.New(rand.NewPCG(3, 4)), "c", 400, -0.5, 0.3)); whole[0] != c {
		t.Errorf("%+v, want %+v", whole[0], c)
	}
}

func TestWhatWasNeverMeasuredSaysSoAndIsWide(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	e := predict.Learn(drawn(random, "known", 40, 0, 0.01))
	p := e.Of("tls", predict.Times{Total: time.Minute, Downtime: time.Second}, 20*time.Second)
	if p.Measured != 0 || !strings.Contains(p.Note, `"tls" was never measured`) {
		t.Errorf("%+v", p)
	}
	// Ten times up and down, but not below what the bytes need.
	want := predict.Range{P10: 20, P50: 60, P90: 600}
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-6*b }
	if !near(p.Seconds.P10, want.P10) || !near(p.Seconds.P50, want.P50) || !near(p.Seconds.P90, want.P90) {
		t.Errorf("%+v, want %+v", p.Seconds, want)
	}
	var none *predict.Errors
	if p := none.Of("c", predict.Times{Total: time.Minute}, 0); p.Measured != 0 || p.Note == "" {
		t.Errorf("%+v", p)
	}
}

// Three close measurements of a class do not make a narrow range.
func TestFewMeasurementsAreNoReasonToBeSure(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	samples := append(drawn(random, "known", 40, 0, 0.3), drawn(random, "new", 3, 0.5, 0.01)...)
	e := predict.Learn(samples)
	p := e.Of("new", predict.Times{Total: time.Minute}, 0)
	if p.Seconds.P90/p.Seconds.P50 < 1.35 || p.Note == "" || p.Measured != 3 { // e^0.3
		t.Errorf("%+v", p)
	}
	if p.Seconds.P50 < 90 || p.Seconds.P50 > 110 { // e^0.5 minutes
		t.Errorf("p50 is %v s", p.Seconds.P50)
	}
}

// A downtime of 1 ms may be 5 ms: below 10 ms the machine rules.
func TestShortDowntimesAreComparedWithTheJitter(t *testing.T) {
	var samples []predict.Sample
	for i := range 20 {
		samples = append(samples, predict.Sample{Class: "c", Experiment: fmt.Sprint(i),
			Predicted: predict.Times{Total: time.Second, Downtime: time.Millisecond},
			Measured: predict.Times{Total: time.Second,
				Downtime: time.Duration(i) * time.Millisecond / 4}})
	}
	p := predict.Learn(samples).Of("c", predict.Times{Total: time.Second, Downtime: time.Second}, 0)
	if p.Downtime.P10 < 850 || p.Downtime.P90 > 1500 {
		t.Errorf("%+v", p.Downtime)
	}
}

func TestARangeHoldsWhatItsQuantilesSay(t *testing.T) {
	for _, r := range []predict.Range{{P10: 1, P50: 2, P90: 8}, {P10: 10, P50: 11, P90: 12}, {P10: 0.1, P50: 1, P90: 10}} {
		for x, want := range map[float64]float64{r.P10: 0.1, r.P50: 0.5, r.P90: 0.9, 0: 0, -1: 0} {
			if got := r.Below(x); math.Abs(got-want) > 1e-9 {
				t.Errorf("%+v: below %v is %v, want %v", r, x, got, want)
			}
		}
		for x := 0.1; x < 100; x *= 1.1 {
			if r.Below(x) > r.Below(x*1.1) {
				t.Errorf("%+v: less is below %v than below %v", r, x*1.1, x)
			}
		}
	}
	// By hand: one more z90 beyond p90 is 64, and the normal distribution has 99.481 % below 2 z90.
	if got := (predict.Range{P10: 1, P50: 4, P90: 16}).Below(64); math.Abs(got-0.99481) > 1e-4 {
		t.Errorf("below 64 is %v", got)
	}
	sure := predict.Range{P10: 3, P50: 3, P90: 3}
	if sure.Below(2.9) != 0 || sure.Below(3) != 1 || (predict.Range{}).Below(0) != 1 {
		t.Error("what is sure is not")
	}
}
