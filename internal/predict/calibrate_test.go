package predict_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/predict"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// measuredOn returns what would be measured on hosts that are as a model says.
func measuredOn(t *testing.T, model fake.Model) []predict.Migration {
	t.Helper()
	var b strings.Builder
	b.WriteString("ram_mib,ws_mib,rate_nominal_mib_s,cap_mib_s,total_ms,downtime_ms\n")
	for _, memory := range []int{512, 4096, 16384} {
		for _, rate := range []int{0, 100, 400} {
			fmt.Fprintf(&b, "%d,%d,%d,%d,100000,1\n", memory, memory/4, rate, 0)
		}
	}
	all, err := predict.Read("made.csv", strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		p, err := all[i].Predict(model)
		if err != nil || !p.Completed {
			t.Fatalf("%+v %v", p, err)
		}
		all[i].Total, all[i].Downtime = p.Total, p.Downtime
	}
	return all
}

func TestAnotherMachineIsFound(t *testing.T) {
	testutil.Unraced(t)
	truth := fake.QEMU()
	truth.FirstTouch, truth.PerChannel = 4_000_000_000, 5_000_000_000
	truth.SwitchOver = 40 * time.Millisecond
	r, err := predict.Fit(measuredOn(t, truth), fake.QEMU())
	if err != nil {
		t.Fatal(err)
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if got < want*0.9 || got > want*1.1 {
			t.Errorf("%s: %.4g, want %.4g", what, got, want)
		}
	}
	near("first touch", float64(r.Model.FirstTouch), float64(truth.FirstTouch))
	near("switch-over", float64(r.Model.SwitchOver), float64(truth.SwitchOver))
	if r.Before.All.Total.Median < 0.3 || r.After.All.Total.P90 > 0.05 ||
		r.Validated.All.Total.P90 > 0.1 {
		t.Errorf("before %+v, after %+v, validated %+v", r.Before.All, r.After.All, r.Validated.All)
	}
}

// The model that godwit has was fitted to these measurements: a fit finds little to improve,
// and what it predicts without having seen it is as good.
func TestTheBuiltInModelIsFitted(t *testing.T) {
	testutil.Unraced(t)
	all, err := predict.Read("qemu-7.2.csv", strings.NewReader(predict.MeasuredQEMU))
	if err != nil {
		t.Fatal(err)
	}
	kvm := slices.DeleteFunc(all, func(m predict.Migration) bool {
		return m.Emulated || m.Line%4 != 0 // a part of them, for speed
	})
	base := predict.Machine()
	r, err := predict.Fit(kvm, base)
	if err != nil {
		t.Fatal(err)
	}
	before, after, validated := r.Before.All, r.After.All, r.Validated.All
	if after.Total.Median > before.Total.Median+0.005 || validated.Total.Median > 0.08 ||
		validated.Count != r.Fitted || r.Fitted < 10 {
		t.Errorf("fitted to %d, before %+v, after %+v, validated %+v", r.Fitted, before, after,
			validated)
	}
}

func TestTheSameMeasurementsGiveTheSameModel(t *testing.T) {
	testutil.Unraced(t)
	truth := fake.QEMU()
	truth.FirstTouch = 3_000_000_000
	all := measuredOn(t, truth)
	first, err1 := predict.Fit(all, fake.QEMU())
	second, err2 := predict.Fit(all, fake.QEMU())
	if err1 != nil || err2 != nil || first.Model != second.Model {
		t.Errorf("%v %v\n%+v\n%+v", err1, err2, first, second)
	}
}

func TestNothingIsChangedWithoutReason(t *testing.T) {
	r, err := predict.Fit(measuredOn(t, fake.QEMU()), fake.QEMU())
	if err != nil || r.Model != fake.QEMU() || len(r.Changes) != 0 {
		t.Errorf("%v %+v", err, r)
	}
}

func TestWithoutMeasurementsThereIsNoFit(t *testing.T) {
	all := measuredOn(t, fake.QEMU())
	for i := range all {
		all[i].Completed = false
	}
	if _, err := predict.Fit(all, fake.QEMU()); err == nil {
		t.Error("it fitted to nothing")
	}
}
