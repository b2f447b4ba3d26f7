package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// TestDirtyRatesByHour: worked by hand. In the hour from 3 three measurements have the mean of 10, 20 and 60; from
// the 14th on each counts a 14th.
func TestDirtyRatesByHour(t *testing.T) {
	day := time.Date(2026, 5, 1, 0, 0, 0, 0, time.FixedZone("east", 2*60*60)) // 22:00 in UTC
	var d *store.DirtyRates
	if !d.Last().IsZero() {
		t.Error("it was never measured")
	}
	first := d.With(10, day.Add(5*time.Hour))
	d = first.With(20, day.Add(29*time.Hour)).With(500, day.Add(time.Hour)).With(60, day.Add(53*time.Hour))
	want := &store.DirtyRates{Rate: 60, At: day.Add(53 * time.Hour), Hours: []store.HourRate{
		{Hour: 3, Mean: 30, Most: 60, Count: 3}, {Hour: 23, Mean: 500, Most: 500, Count: 1}}}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(first.Hours) != 1 || first.Hours[0].Count != 1 {
		t.Errorf("what was stored is changed: %+v", first)
	}
	for at, want := range map[time.Duration]hypervisor.Bandwidth{5 * time.Hour: 60, time.Hour: 500, 12 * time.Hour: 60} {
		if got := d.Expected(day.Add(at)); got != want {
			t.Errorf("after %v: %v, want %v", at, got, want)
		}
	}
	for range 20 {
		d = d.With(30, day.Add(77*time.Hour))
	}
	if d = d.With(30+14*7, day.Add(101*time.Hour)); d.Hours[0].Mean != 37 || d.Hours[0].Most != 128 || d.Hours[0].Count != 24 {
		t.Errorf("%+v", d.Hours[0])
	}
}
