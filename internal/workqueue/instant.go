package workqueue

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// An instant is a time as nanoseconds since 1970, so that two compare in one instruction. All
// times have one: what is before 1970 is the first, and what is after the year 2554 is never.
// [time.Time.UnixNano] would wrap in the year 2262, which "now plus the longest duration" is
// beyond.
type instant uint64

const never = instant(math.MaxUint64)

// lastSecond is the last whole second that an instant can hold, in the year 2554.
const lastSecond = math.MaxUint64/1_000_000_000 - 1

func instantOf(t time.Time) instant {
	s := t.Unix()
	if s < 0 {
		return 0
	}
	if s > lastSecond {
		return never
	}
	return instant(s)*1_000_000_000 + instant(t.Nanosecond())
}

func (i instant) time() time.Time {
	return time.Unix(int64(i/1_000_000_000), int64(i%1_000_000_000)).UTC()
}

// Later is t+d where that can be held, and otherwise the longest duration there is. A negative d
// is none.
func Later(t, d time.Duration) time.Duration {
	d = max(0, d)
	if t > math.MaxInt64-d {
		return math.MaxInt64
	}
	return t + d
}

// Backoff returns base doubled n times, and at most most. It never overflows.
func Backoff(base, most time.Duration, n int) time.Duration {
	for wait := base; ; wait *= 2 {
		switch {
		case wait >= most || wait > math.MaxInt64/2 || wait <= 0:
			return min(wait, most)
		case n <= 0:
			return wait
		}
		n--
	}
}

// A Span is a duration of a configuration, with its name.
type Span struct {
	Name  string
	Value time.Duration
}

// CheckSpans returns an error that names every span that is negative: such a time is over before
// it begins, so that everything would be done at once, and again at once. of names the
// configuration.
func CheckSpans(of string, spans ...Span) error {
	var errs []error
	for _, s := range spans {
		if s.Value < 0 {
			errs = append(errs, fmt.Errorf("%s.%s is %s: use a positive time, or 0 for the default",
				of, s.Name, s.Value))
		}
	}
	return errors.Join(errs...)
}
