package predict_test

import (
	"math"
	"testing"

	"github.com/godwit-vm/godwit/internal/predict"
)

// samples predicts the measurements that are part of godwit.
func samples(t *testing.T) []predict.Sample {
	t.Helper()
	all, err := predict.BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	list, err := predict.Samples(all, predict.Machine())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// The judge is QEMU: of the measurements of each class, 80 % ± 5 are between the p10 and the p90
// that the others give, and p50 is no further off than the runs of an experiment are from one
// another, or 2 %. (Of the downtime, 30 % more than that: three to six runs tell it roughly.)
func TestMeasurementsAreInTheRangesThatTheOthersGive(t *testing.T) {
	all, err := predict.BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	noise := predict.NoiseBy(all)
	compared := 0
	for _, c := range predict.HoldOut(samples(t)) {
		n := noise[c.Class]
		t.Logf("%+v, noise %+v", c, n)
		if c.Count < predict.Enough {
			continue
		}
		compared++
		const five = 0.0500001 // 15 of 20 are 0.75
		if math.Abs(c.Total-0.8) > five || math.Abs(c.Downtime-0.8) > five {
			t.Errorf("%s: %.2f of the total times and %.2f of the downtimes are in range, want 0.80 "+
				"± 0.05", c.Class, c.Total, c.Downtime)
		}
		if n.Count < 3 {
			continue
		}
		if c.MedianTotal > max(0.02, n.Total.Median) || c.MedianDowntime > max(0.02, n.Downtime.Median*1.3) {
			t.Errorf("%s: p50 is off by %.3f and %.3f, the runs of an experiment by %.3f and %.3f",
				c.Class, c.MedianTotal, c.MedianDowntime, n.Total.Median, n.Downtime.Median)
		}
	}
	if compared < 7 {
		t.Errorf("%d classes were compared, want 7 and all", compared)
	}
}

// An experiment that was never tried, of a class that was, is nearly as often in range.
func TestUntriedExperimentsAreInRange(t *testing.T) {
	for _, c := range predict.HoldOutExperiments(samples(t)) {
		t.Logf("%+v", c)
		if c.Count >= predict.Enough && (c.Total < 0.7 || c.Downtime < 0.7) {
			t.Errorf("%+v, want 0.7 or more", c)
		}
	}
}

// A whole class that was never measured is wide enough: encryption with certificates is in the
// range that it had while it was not known.
func TestAnUnknownClassIsWideEnough(t *testing.T) {
	list := samples(t)
	in, of := 0, 0
	e := predict.Learn(nil)
	for i := range list {
		s := &list[i]
		p := e.Of(s.Class, s.Predicted, 0)
		if x := s.Measured.Total.Seconds(); p.Seconds.P10 <= x && x <= p.Seconds.P90 {
			in++
		}
		of++
	}
	if in < of-1 { // one migration took 6 s instead of never, while the machine was busy
		t.Errorf("%d of %d", in, of)
	}
}

// What a plan asks for is what was measured.
func TestBuiltInErrorsKnowTheClasses(t *testing.T) {
	e, err := predict.BuiltInErrors()
	if err != nil {
		t.Fatal(err)
	}
	for class, least := range map[string]int{"capped kvm": 19, "uncapped kvm": 20, "multifd": 10,
		"post-copy": 20, "tls": 8} {
		if n := e.Measured(class); n < least {
			t.Errorf("%s: %d", class, n)
		}
	}
	if e.Measured("auto-converge") != 0 {
		t.Error("auto-converge was never measured until it completed")
	}
}
