package store

import (
	"cmp"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// DirtyRates is how fast the guest of a VM writes distinct memory, as the agents of its hosts have measured it.
// It is not changed: see [DirtyRates.With].
type DirtyRates struct {
	Rate hypervisor.Bandwidth // at the last measurement
	At   time.Time            // when that ended
	// Hours are the hours of the day, in UTC, in which it was measured, in their order.
	Hours []HourRate `json:",omitempty"`
}

// An HourRate sums up what was measured in one hour of the day.
type HourRate struct {
	Hour  int                  // 0 to 23, in UTC
	Mean  hypervisor.Bandwidth // of the last two weeks or so: see recentDays
	Most  hypervisor.Bandwidth // ever
	Count int                  // measurements
}

// recentDays is over how many measurements of an hour its mean reaches: later ones count more.
const recentDays = 14

// With returns the rates with another measurement. Nil are none.
func (d *DirtyRates) With(rate hypervisor.Bandwidth, at time.Time) *DirtyRates {
	next := DirtyRates{Rate: rate, At: at}
	if d != nil {
		next.Hours = slices.Clone(d.Hours)
	}
	hour := at.UTC().Hour()
	i, known := slices.BinarySearchFunc(next.Hours, hour, func(h HourRate, hour int) int { return cmp.Compare(h.Hour, hour) })
	if !known {
		next.Hours = slices.Insert(next.Hours, i, HourRate{Hour: hour})
	}
	h := &next.Hours[i]
	h.Count++
	h.Mean += (rate - h.Mean) / hypervisor.Bandwidth(min(h.Count, recentDays))
	h.Most = max(h.Most, rate)
	return &next
}

// AtHour returns the mean of the hour of the day of a moment; false is that it was never measured in that hour.
func (d *DirtyRates) AtHour(at time.Time) (hypervisor.Bandwidth, bool) {
	for _, h := range d.Hours {
		if h.Hour == at.UTC().Hour() {
			return h.Mean, true
		}
	}
	return 0, false
}

// Last returns when it was measured last; the zero time is never.
func (d *DirtyRates) Last() time.Time {
	if d == nil {
		return time.Time{}
	}
	return d.At
}

// Expected returns what to plan with at a moment: the last rate, or the mean of that hour of the day where that
// is higher.
func (d *DirtyRates) Expected(at time.Time) hypervisor.Bandwidth {
	mean, _ := d.AtHour(at)
	return max(d.Rate, mean)
}
