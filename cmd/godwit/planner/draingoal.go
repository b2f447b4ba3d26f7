package planner

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/sim/rehearse"
)

// goal reads the deadline; nil is none.
func (f *drainFlags) goal(now time.Time) (*rehearse.Goal, error) {
	if f.samples < 0 || f.samples > 100_000 {
		return nil, fmt.Errorf("--samples %d: give a number from 0 to 100000", f.samples)
	}
	percent, err := strconv.ParseFloat(strings.TrimSuffix(f.confidence, "%"), 64)
	if err != nil || !strings.HasSuffix(f.confidence, "%") || !(percent > 0 && percent <= 100) {
		return nil, fmt.Errorf("--confidence %q is no probability: write 95%%", f.confidence)
	}
	goal := &rehearse.Goal{Confidence: percent / 100}
	switch {
	case f.within != "" && f.by != "":
		return nil, errors.New("--within and --by say the same: use one of them")
	case f.within != "":
		if goal.Within, err = inventory.ParseDuration(f.within); err != nil || goal.Within <= 0 {
			return nil, fmt.Errorf("--within %q is no time above zero: write 2h", f.within)
		}
	case f.by != "":
		if goal.Within, err = f.window(now); err != nil {
			return nil, err
		}
	case f.at != "":
		return nil, errors.New("--at without --by means nothing: write --by 06:00, too")
	default:
		return nil, nil
	}
	if f.samples == 0 {
		return nil, errors.New("a probability needs worlds to be counted: --samples is 0")
	}
	return goal, nil
}

// window returns the time from --at, or from now, until --by.
func (f *drainFlags) window(now time.Time) (time.Duration, error) {
	end, err := time.Parse("15:04", f.by)
	if err != nil {
		return 0, fmt.Errorf("--by %q is no time of the day: write 06:00", f.by)
	}
	begin := time.Date(0, 1, 1, now.Hour(), now.Minute(), now.Second(), 0, time.UTC)
	if f.at != "" {
		if begin, err = time.Parse("15:04", f.at); err != nil {
			return 0, fmt.Errorf("--at %q is no time of the day: write 22:00", f.at)
		}
	}
	span := end.Sub(begin)
	if span <= 0 {
		span += 24 * time.Hour
	}
	return span, nil
}
