package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Window is a time of the day in which hosts may be serviced, on some days of the week.
type Window struct {
	// Begin and End are minutes since midnight. A window whose End is not after its Begin ends on the next
	// day.
	Begin, End int
	// Days are those on which it begins.
	Days [7]bool // by [time.Weekday]
}

var weekdays = [...]string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}

// ParseWindow reads "22:00-02:00 Sat,Sun", "01:00-05:00 Mon-Fri" or, for every day, "22:00-06:00". A range
// of days may go over the end of the week.
func ParseWindow(text string) (Window, error) {
	wrong := func(format string, args ...any) (Window, error) {
		return Window{}, fmt.Errorf("window %q: %s: write 22:00-02:00 Sat,Sun", text, fmt.Sprintf(format, args...))
	}
	clock, days, some := strings.Cut(text, " ")
	from, to, both := strings.Cut(clock, "-")
	if !both {
		return wrong("it has no end")
	}
	begin, err := clockOf(from)
	if err != nil {
		return wrong("%v", err)
	}
	end, err := clockOf(to)
	if err != nil {
		return wrong("%v", err)
	}
	if begin == end {
		return wrong("it ends when it begins")
	}
	w := Window{Begin: begin, End: end}
	if !some {
		w.Days = [7]bool{true, true, true, true, true, true, true}
		return w, nil
	}
	for _, word := range strings.Split(days, ",") {
		first, last, _ := strings.Cut(word, "-")
		if !strings.Contains(word, "-") {
			last = first
		}
		a, b := slices.Index(weekdays[:], first), slices.Index(weekdays[:], last)
		if a < 0 || b < 0 {
			return wrong("there is no day %q", word)
		}
		for day := a; ; day = (day + 1) % 7 {
			if w.Days[day] {
				return wrong("%s is named twice", weekdays[day])
			}
			if w.Days[day] = true; day == b {
				break
			}
		}
	}
	return w, nil
}

// clockOf reads a time of the day, as 06:00. The end of the day is 00:00.
func clockOf(text string) (int, error) {
	t, err := time.Parse("15:04", text)
	if err != nil || len(text) != len("15:04") {
		return 0, fmt.Errorf("%q is not a time of the day", text)
	}
	return t.Hour()*60 + t.Minute(), nil
}

// A Night is one occurrence of a window.
type Night struct {
	Begin time.Time `json:"begin"`
	End   time.Time `json:"end"`
}

// Length is how long it is. In nights in which clocks are changed it is not what its clock times say.
func (n Night) Length() time.Duration { return n.End.Sub(n.Begin) }

// mostDays is how far ahead nights are looked for.
const mostDays = 800

// Nights returns the next occurrences of windows, at most so many, in the zone of a moment. One that has
// begun at that moment is what is left of it; those that overlap are one.
//
// A time that a clock shows twice is the first of the two, and one that it skips is when it does so. A
// night that is empty by that is none.
func Nights(windows []Window, after time.Time, most int) []Night {
	var all []Night
	y, m, d := after.Date()
	for day := -1; day < mostDays && len(all) <= most; day++ { // what begins later changes no night but the last
		date := time.Date(y, m, d+day, 12, 0, 0, 0, time.UTC) // only for its date and weekday
		all = joined(all, nightsOf(windows, date, after))
	}
	return all[:min(most, len(all))]
}

// nightsOf returns what begins on a date, and ends after a moment; the first is first.
func nightsOf(windows []Window, date, after time.Time) []Night {
	var all []Night
	for _, w := range windows {
		if !w.Days[date.Weekday()] {
			continue
		}
		next := date
		if w.End <= w.Begin {
			next = date.AddDate(0, 0, 1)
		}
		n := Night{at(date, w.Begin, after.Location()), at(next, w.End, after.Location())}
		if n.Begin.Before(after) {
			n.Begin = after
		}
		if n.End.After(n.Begin) {
			all = append(all, n)
		}
	}
	slices.SortStableFunc(all, func(a, b Night) int { return a.Begin.Compare(b.Begin) })
	return all
}

// joined appends nights to those that begin before them; those that overlap are one.
func joined(all, later []Night) []Night {
	for _, n := range later {
		last := len(all) - 1
		switch {
		case last < 0 || n.Begin.After(all[last].End):
			all = append(all, n)
		case n.End.After(all[last].End):
			all[last].End = n.End
		}
	}
	return all
}

// at returns when the clock of a zone first shows a time on a date, or would.
func at(date time.Time, minute int, zone *time.Location) time.Time {
	y, m, d := date.Date()
	plain := time.Date(y, m, d, minute/60, minute%60, 0, 0, time.UTC)
	var first time.Time
	var offsets []int
	for _, near := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, offset := plain.Add(near).In(zone).Zone()
		offsets = append(offsets, offset)
		t := plain.Add(-time.Duration(offset) * time.Second).In(zone)
		if t.Day() == d && t.Hour()*60+t.Minute() == minute && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	if !first.IsZero() {
		return first
	}
	early := plain.Add(-time.Duration(max(offsets[0], offsets[1])) * time.Second).In(zone)
	_, change := early.ZoneBounds() // the clock skips it
	return change
}
