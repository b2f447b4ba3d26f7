package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/internal/whatif"
	"github.com/godwit-vm/godwit/inventory"
)

// goal reads the deadline; nil is none.
func (f *drainFlags) goal(now time.Time) (*whatif.Goal, error) {
	if f.samples < 0 || f.samples > 100_000 {
		return nil, fmt.Errorf("--samples %d: give a number from 0 to 100000", f.samples)
	}
	confidence, err := probability(f.confidence)
	if err != nil {
		return nil, fmt.Errorf("--confidence %w", err)
	}
	goal := &whatif.Goal{Confidence: confidence}
	switch {
	case f.within != "" && f.by != "":
		return nil, errors.New("--within and --by exclude each other: use one of them")
	case f.within != "" && f.at != "":
		return nil, errors.New("--at is the begin of --by: --within is a time from whenever the drain begins, so leave --at out")
	case f.within != "":
		if goal.Within, err = inventory.ParseDuration(f.within); err != nil || goal.Within <= 0 {
			return nil, fmt.Errorf("--within %q is not a time above zero: write 2h", f.within)
		}
	case f.by != "":
		begin, end, err := f.window(now)
		if err != nil {
			return nil, err
		}
		goal.Within, f.fleet.begin = end.Sub(begin), begin
	case f.at != "":
		return nil, errors.New("--at needs --by: write --by 06:00")
	default:
		return nil, nil
	}
	if f.samples == 0 {
		return nil, errors.New("a probability needs worlds to count: --samples is 0")
	}
	return goal, nil
}

// window returns --at, or now, and --by. Each is the next one on the clock
// of now's zone: a night in which clocks are changed is an hour longer or shorter.
func (f *drainFlags) window(now time.Time) (begin, end time.Time, err error) {
	by, err := time.Parse("15:04", f.by)
	if err != nil {
		return begin, end, fmt.Errorf("--by %q is not a time of day: write 06:00", f.by)
	}
	begin = now
	if f.at != "" {
		at, err := time.Parse("15:04", f.at)
		if err != nil {
			return begin, end, fmt.Errorf("--at %q is not a time of day: write 22:00", f.at)
		}
		begin = next(now, at)
	}
	return begin, next(begin, by), nil
}

// next returns when it is so late after a moment.
func next(after, clock time.Time) time.Time {
	for day := 0; ; day++ {
		t := time.Date(after.Year(), after.Month(), after.Day()+day, clock.Hour(), clock.Minute(),
			0, 0, after.Location())
		if t.After(after) {
			return t
		}
	}
}
