package kubectl

import (
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-vm/godwit/kubevirt/api/v1alpha1"
)

// status says from where it is known how fast guests write, and how old that is: of each VM with -o wide.
func TestStatusSaysWhereRatesAreFrom(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration, source string) *v1alpha1.WriteRate {
		return &v1alpha1.WriteRate{BytesPerSecond: 5e6, Source: source, At: metav1.NewTime(now.Add(-d))}
	}
	seconds, downtime := int64(90), int64(250)
	e := v1alpha1.NodeEvacuation{Spec: v1alpha1.NodeEvacuationSpec{NodeName: "n1"}}
	e.Status.VMs = []v1alpha1.LeavingVM{
		{Namespace: "shop", Name: "a", State: v1alpha1.Moving, Migration: "m1", ExpectedSeconds: &seconds,
			ExpectedDowntimeMilliseconds: &downtime, Writes: ago(time.Minute, "metric")},
		{Namespace: "shop", Name: "b", State: v1alpha1.Waiting, Writes: ago(2*time.Minute, "metric")},
		{Namespace: "shop", Name: "c", State: v1alpha1.Waiting, Writes: ago(time.Hour, "migration shop/m0")},
		{Namespace: "shop", Name: "d", State: v1alpha1.Waiting, Reason: "no spot"}}
	for format, want := range map[string][]string{
		"": {"n1: guests' writes to memory: 2 by metric, at most 2m0s old; 1 not known: godwit's default; 1 by past migrations, at most 1h0m0s old"},
		"wide": {"shop/a  Moving   1m30s  250 ms    4.7MiB/s by metric, 1m0s ago", "4.7MiB/s by migration shop/m0, 1h0m0s ago",
			"shop/d  Waiting                   not known: godwit's default", "no spot"},
	} {
		p := &plugin{output: format, now: func() time.Time { return now }}
		var text strings.Builder
		w := tabwriter.NewWriter(&text, 0, 8, 2, ' ', 0)
		p.list(w, []v1alpha1.NodeEvacuation{e})
		w.Flush()
		for _, one := range want {
			if !strings.Contains(text.String(), one) {
				t.Errorf("-o %q does not say %q:\n%s", format, one, text.String())
			}
		}
	}
}
