package workqueue_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/internal/workqueue"
)

const forever = time.Duration(math.MaxInt64)

// What wants to be looked at in centuries is not due now, however far it is: UnixNano wraps in
// the year 2262.
func TestAnInstantFarAheadIsNotDueNow(t *testing.T) {
	for _, far := range []time.Time{
		time.Date(2262, 4, 12, 0, 0, 0, 0, time.UTC), // the day on which UnixNano wraps
		epoch.Add(forever), epoch.Add(forever).Add(forever),
		time.Date(2554, 7, 21, 23, 34, 34, 0, time.UTC), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Unix(math.MaxInt64/2, 0), time.Unix(1<<62, 0),
	} {
		var timers workqueue.Timers[string]
		var alarms workqueue.Alarms[string]
		alarm := workqueue.Alarm[string]{Of: "a"}
		timers.Set("a", far)
		alarms.Set(&alarm, far)
		for _, now := range []time.Time{epoch, epoch.AddDate(200, 0, 0)} {
			if _, is := timers.Pop(now); is {
				t.Errorf("a timer of %v is due in %v", far, now)
			}
			if _, is := alarms.Pop(now); is {
				t.Errorf("an alarm of %v is due in %v", far, now)
			}
		}
		for _, next := range []time.Time{timers.Next(), alarms.Next()} {
			if !next.IsZero() && !next.Equal(far) {
				t.Errorf("the next look of %v is at %v", far, next)
			}
		}
		alarms.Set(&alarm, at(3)) // earlier after all
		if next := alarms.Next(); !next.Equal(at(3)) {
			t.Errorf("the alarm is set to %v, next is %v", at(3), next)
		}
	}
}

// Every instant after 1970 that can be held is kept to the nanosecond, and in order.
func TestInstantsKeepTheirOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		moment := rapid.Custom(func(t *rapid.T) time.Time {
			return time.Unix(rapid.Int64Range(0, 1<<34).Draw(t, "second"),
				rapid.Int64Range(0, 999_999_999).Draw(t, "nanosecond")).UTC()
		})
		a, b := moment.Draw(t, "a"), moment.Draw(t, "b")
		var timers workqueue.Timers[string]
		timers.Set("a", a)
		if got := timers.Next(); !got.Equal(a) {
			t.Fatalf("%v is kept as %v", a, got)
		}
		if _, is := timers.Pop(b); is != !b.Before(a) {
			t.Fatalf("what is due at %v is due at %v: %v", a, b, is)
		}
	})
}

// An instant before 1970, and the zero time, are due.
func TestTheZeroTimeIsDue(t *testing.T) {
	for _, past := range []time.Time{{}, time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(1678, 1, 1, 0, 0, 0, 0, time.UTC)} {
		var timers workqueue.Timers[string]
		timers.Set("a", past)
		if _, is := timers.Pop(epoch); !is {
			t.Errorf("%v is not due", past)
		}
	}
}

// Later and Backoff are exact sums, kept within what a duration can hold.
func TestSumsOfDurationsDoNotWrap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := rapid.OneOf(rapid.Int64Range(0, math.MaxInt64), rapid.Int64Range(0, 1000))
		a, b := time.Duration(span.Draw(t, "a")), time.Duration(span.Draw(t, "b"))
		want := forever
		if a <= forever-b {
			want = a + b
		}
		if got := workqueue.Later(a, b); got != want {
			t.Fatalf("%d after %d is %d, want %d", b, a, got, want)
		}
		n := rapid.IntRange(-1, 100).Draw(t, "doublings")
		most := time.Duration(span.Draw(t, "most"))
		exact := math.Ldexp(float64(a), max(0, n))
		got := workqueue.Backoff(a, most, n)
		if got > most || got < min(a, most) || exact < 1<<50 && got != min(time.Duration(exact), most) {
			t.Fatalf("%d doubled %d times, at most %d, is %d", a, n, most, got)
		}
	})
}

func TestANegativeSpanIsNamed(t *testing.T) {
	err := workqueue.CheckSpans("agent.Config", workqueue.Span{Name: "Poll", Value: -1}, workqueue.Span{Name: "Retry"})
	const want = "agent.Config.Poll is -1ns: use a positive time, or 0 for the default"
	if err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
}
