package plan_test

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // wherever the test runs

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/plan"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func windows(t *testing.T, texts ...string) (all []plan.Window) {
	t.Helper()
	for _, text := range texts {
		w, err := plan.ParseWindow(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, w)
	}
	return all
}

// Worked by hand from the rules of the zones. Berlin: clocks go from 02:00 to 03:00 on 2026-03-29, and from
// 03:00 back to 02:00 on 2026-10-25. New York: on 2026-03-08 and 2026-11-01. Lord Howe changes by half an
// hour, from 02:00 to 02:30 on 2026-10-04.
func TestNightsByHand(t *testing.T) {
	for _, tt := range []struct {
		name, zone, after string
		windows           []string
		want              string // begin/end in UTC
	}{
		{"a weekend", "Europe/Berlin", "2026-06-10T12:00", []string{"22:00-02:00 Sat,Sun"},
			"2026-06-13T20:00/2026-06-14T00:00 2026-06-14T20:00/2026-06-15T00:00 2026-06-20T20:00/2026-06-21T00:00"},
		{"one that has begun is what is left of it", "Europe/Berlin", "2026-06-14T01:00", []string{"22:00-02:00 Sat"},
			"2026-06-13T23:00/2026-06-14T00:00 2026-06-20T20:00/2026-06-21T00:00 2026-06-27T20:00/2026-06-28T00:00"},
		{"spring is an hour shorter", "Europe/Berlin", "2026-03-28T12:00", []string{"22:00-06:00"},
			"2026-03-28T21:00/2026-03-29T04:00 2026-03-29T20:00/2026-03-30T04:00 2026-03-30T20:00/2026-03-31T04:00"},
		{"autumn is an hour longer", "Europe/Berlin", "2026-10-24T12:00", []string{"22:00-06:00"},
			"2026-10-24T20:00/2026-10-25T05:00 2026-10-25T21:00/2026-10-26T05:00 2026-10-26T21:00/2026-10-27T05:00"},
		{"an end that is shown twice is the first", "Europe/Berlin", "2026-10-24T12:00", []string{"22:00-02:30 Sat"},
			"2026-10-24T20:00/2026-10-25T00:30 2026-10-31T21:00/2026-11-01T01:30 2026-11-07T21:00/2026-11-08T01:30"},
		{"a begin that is shown twice is the first", "Europe/Berlin", "2026-10-24T12:00", []string{"02:30-04:00 Sun"},
			"2026-10-25T00:30/2026-10-25T03:00 2026-11-01T01:30/2026-11-01T03:00 2026-11-08T01:30/2026-11-08T03:00"},
		{"a begin that is skipped is the change", "Europe/Berlin", "2026-03-28T12:00", []string{"02:30-04:00 Sun"},
			"2026-03-29T01:00/2026-03-29T02:00 2026-04-05T00:30/2026-04-05T02:00 2026-04-12T00:30/2026-04-12T02:00"},
		{"a night that is skipped is none", "Europe/Berlin", "2026-03-28T12:00", []string{"02:10-02:50 Sun"},
			"2026-04-05T00:10/2026-04-05T00:50 2026-04-12T00:10/2026-04-12T00:50 2026-04-19T00:10/2026-04-19T00:50"},
		{"west of Greenwich", "America/New_York", "2026-03-07T12:00", []string{"23:00-03:00 Sat"},
			"2026-03-08T04:00/2026-03-08T07:00 2026-03-15T03:00/2026-03-15T07:00 2026-03-22T03:00/2026-03-22T07:00"},
		{"half an hour", "Australia/Lord_Howe", "2026-10-03T12:00", []string{"22:00-04:00 Sat"},
			"2026-10-03T11:30/2026-10-03T17:00 2026-10-10T11:00/2026-10-10T17:00 2026-10-17T11:00/2026-10-17T17:00"},
		{"over the end of the week", "UTC", "2026-06-11T00:00", []string{"01:00-02:00 Sat-Mon"},
			"2026-06-13T01:00/2026-06-13T02:00 2026-06-14T01:00/2026-06-14T02:00 2026-06-15T01:00/2026-06-15T02:00"},
		{"those that overlap are one", "UTC", "2026-06-12T00:00", []string{"22:00-02:00 Fri", "01:00-05:00 Sat", "09:00-10:00 Sat"},
			"2026-06-12T22:00/2026-06-13T05:00 2026-06-13T09:00/2026-06-13T10:00 2026-06-19T22:00/2026-06-20T05:00"},
	} {
		after, err := time.ParseInLocation("2006-01-02T15:04", tt.after, zone(t, tt.zone))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range plan.Nights(windows(t, tt.windows...), after, 3) {
			got = append(got, n.Begin.UTC().Format("2006-01-02T15:04")+"/"+n.End.UTC().Format("2006-01-02T15:04"))
		}
		if text := strings.Join(got, " "); text != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, text, tt.want)
		}
	}
}

// However many windows make one night, there are as many nights as asked for.
func TestWindowsThatOverlapAreCountedAsOneNight(t *testing.T) {
	after := time.Date(2026, 6, 12, 0, 0, 0, 0, time.UTC)
	daily := windows(t, "20:00-21:00", "20:10-21:10", "20:20-21:20", "20:30-21:30", "20:40-21:40")
	for _, most := range []int{1, 3, 10, 30} {
		nights := plan.Nights(daily, after, most)
		if len(nights) != most || nights[most-1].Length() != 100*time.Minute {
			t.Errorf("%d nights of %d: %v", len(nights), most, nights)
		}
	}
	week := windows(t, "22:00-02:00 Fri", "00:00-23:00 Sat", "22:00-04:00 Sat", "02:00-05:00 Sun")
	if nights := plan.Nights(week, after, 1); len(nights) != 1 || nights[0].Length() != 31*time.Hour {
		t.Errorf("a night over several days: %v", nights)
	}
}

func TestWhatIsNoWindowIsRefused(t *testing.T) {
	for _, text := range []string{"", "22:00", "22:00-", "22:00-22:00", "24:00-02:00", "2:00-04:00", "22:00-02:00 ",
		"22:00-02:00 Sat, Sun", "22:00-02:00 sat", "22:00-02:00 Saturday", "22:00-02:00 Sat,Sat", "22:00-02:00 Fri-Sun,Sat",
		"22:00-02:00 Sat-", "22.00-02.00 Sat", " 22:00-02:00", "22:00-02:00  Sat", "22:00-02:60"} {
		if w, err := plan.ParseWindow(text); err == nil {
			t.Errorf("%q is read as %+v", text, w)
		}
	}
}

// At every minute of a year, a clock that is in a window is in a night, and one that is not is not; but
// for times that are shown twice or skipped.
func TestNightsAreTheMinutesOfTheirWindow(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	rapid.Check(t, func(r *rapid.T) {
		w := plan.Window{Begin: rapid.IntRange(0, 1439).Draw(r, "begin"), End: rapid.IntRange(0, 1439).Draw(r, "end")}
		if w.Begin == w.End {
			r.Skip()
		}
		for i := range w.Days {
			w.Days[i] = rapid.Bool().Draw(r, "day")
		}
		begin := time.Date(2026, time.Month(rapid.IntRange(1, 12).Draw(r, "month")), rapid.IntRange(1, 28).Draw(r, "day"), 0, 0, 0, 0, berlin)
		nights := plan.Nights([]plan.Window{w}, begin, 40)
		for range 50 {
			t := begin.Add(time.Duration(rapid.IntRange(0, 20*24*60).Draw(r, "minute")) * time.Minute)
			_, before := t.Add(-3 * time.Hour).Zone()
			_, after := t.Add(3 * time.Hour).Zone()
			if before != after {
				continue // clocks are changed about then
			}
			minute, day := t.Hour()*60+t.Minute(), int(t.Weekday())
			in := w.Days[day] && minute >= w.Begin && (minute < w.End || w.End < w.Begin) ||
				w.End < w.Begin && w.Days[(day+6)%7] && minute < w.End
			found := false
			for _, n := range nights {
				found = found || !t.Before(n.Begin) && t.Before(n.End)
			}
			if in != found {
				r.Fatalf("%v: in the window %v, in a night %v; %+v", t, in, found, w)
			}
		}
	})
}
