package kubeobject_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/godwit-vm/godwit/internal/kubeobject"
)

// The table was recorded from k8s.io/apimachinery v0.34.3, but for amounts beyond 64 bits, which
// wrap there and are the largest number here. The module in kubevirt/ compares far more.
func TestQuantitiesAreThoseOfKubernetes(t *testing.T) {
	const most = math.MaxInt64
	for _, tt := range []struct {
		text         string
		value, milli int64
		float        float64
	}{
		{"0", 0, 0, 0}, {"1", 1, 1000, 1}, {"-1", -1, -1000, -1}, {"+5", 5, 5000, 5},
		{"007", 7, 7000, 7}, {"1.5", 2, 1500, 1.5}, {".5", 1, 500, 0.5}, {"5.", 5, 5000, 5},
		{"100m", 1, 100, 0.1}, {"1m", 1, 1, 0.001}, {"250u", 1, 1, 0.00025}, {"1n", 1, 1, 1e-09},
		{"0.1n", 1, 1, 1e-09}, {"0.0000000001", 1, 1, 1e-09}, {"1k", 1000, 1000000, 1000},
		{"2M", 2000000, 2000000000, 2e+06}, {"3G", 3000000000, 3000000000000, 3e+09},
		{"1T", 1000000000000, 1000000000000000, 1e+12},
		{"1P", 1000000000000000, 1000000000000000000, 1e+15},
		{"1E", 1000000000000000000, most, 1e+18}, {"1Ki", 1024, 1024000, 1024},
		{"64Gi", 68719476736, 68719476736000, 6.8719476736e+10},
		{"1.5Gi", 1610612736, 1610612736000, 1.610612736e+09},
		{"7.999Ei", 9222219115350168962, most, 9.22221911535017e+18},
		{"8Ei", most, most, 9.223372036854776e+18}, {"9Ei", most, most, 9.223372036854776e+18},
		{"0.3Ki", 308, 307200, 307.20000000000005}, {"1e3", 1000, 1000000, 1000},
		{"1E3", 1000, 1000000, 1000}, {"1e-3", 1, 1, 0.001}, {"12e-1", 2, 1200, 1.2000000000000002},
		{"1e19", most, most, 1e+19}, {"0.4", 1, 400, 0.4}, {"0.7", 1, 700, 0.7000000000000001},
		{"0.3333333333333333333", 1, 334, 0.33333333400000004},
		{"123456789012345678", 123456789012345678, most, 1.2345678901234568e+17},
		{"-1.5", -2, -1500, -1.5}, {"-100m", -1, -100, -0.1}, {"1e99", most, most, 1.0000000000000001e+99},
		{"1e-999999999", 1, 1, 1e-09},
	} {
		q, err := kubeobject.ParseQuantity(tt.text)
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		if q.Value() != tt.value || q.MilliValue() != tt.milli ||
			q.AsApproximateFloat64() != tt.float || q.IsZero() != (tt.float == 0) {
			t.Errorf("%q is %d, %d m, %v; want %d, %d m, %v", tt.text, q.Value(), q.MilliValue(),
				q.AsApproximateFloat64(), tt.value, tt.milli, tt.float)
		}
	}
}

func TestWhatIsNoQuantity(t *testing.T) {
	const format = "quantities must match the regular expression " +
		"'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
	const suffix = "unable to parse quantity's suffix"
	for text, want := range map[string]string{"": format, "abc": format, "1.2.3": format, "--1": suffix,
		"1e": suffix, "1Zi": format, "1ee3": suffix, "1mm": suffix, "5 ": format, "1Gigs": format,
		"1e+-3": format, "Ei": "unable to parse numeric part of quantity"} {
		if q, err := kubeobject.ParseQuantity(text); fmt.Sprint(err) != want {
			t.Errorf("%q: %v, %v; want %q", text, &q, err, want)
		}
	}
}

func TestSelectors(t *testing.T) {
	sel := func(key, op string, values ...string) kubeobject.LabelSelectorRequirement {
		return kubeobject.LabelSelectorRequirement{Key: key, Operator: op, Values: values}
	}
	all := kubeobject.LabelSelector{MatchLabels: map[string]string{"app": "db"},
		MatchExpressions: []kubeobject.LabelSelectorRequirement{sel("tier", "In", "b", "a"),
			sel("x.io/old", "DoesNotExist"), sel("zone", "NotIn", "z"), sel("on", "Exists")}}
	s, err := all.Compile()
	if err != nil {
		t.Fatal(err)
	}
	const text = "app=db,on,tier in (a,b),!x.io/old,zone notin (z)"
	if s.String() != text {
		t.Errorf("it is written %s, want %s", s, text)
	}
	labels := map[string]string{"app": "db", "tier": "a", "on": ""}
	if !s.Matches(labels) {
		t.Errorf("%s does not match %v", s, labels)
	}
	for key, value := range map[string]string{"app": "web", "tier": "c", "x.io/old": "", "zone": "z"} {
		other := map[string]string{"app": "db", "tier": "a", "on": "", key: value}
		if s.Matches(other) {
			t.Errorf("%s matches %v", s, other)
		}
	}
	if none, err := (*kubeobject.LabelSelector)(nil).Compile(); none.Matches(labels) || err != nil {
		t.Errorf("no selector matches, or %v", err)
	}
	for _, bad := range []kubeobject.LabelSelectorRequirement{sel("a b", "Exists"), sel("a", "Gt", "1"),
		sel("a", "In"), sel("a", "Exists", "x"), sel("a", "In", "x y"), sel("/a", "Exists")} {
		l := kubeobject.LabelSelector{MatchExpressions: []kubeobject.LabelSelectorRequirement{bad}}
		if _, err := l.Compile(); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}
