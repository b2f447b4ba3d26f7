package workqueue_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/internal/workqueue"
)

// Alarms answer as Timers do, whatever is asked of them.
func TestAlarmsAreTimersWithoutKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var timers workqueue.Timers[int]
		var alarms workqueue.Alarms[int]
		things := make([]workqueue.Alarm[int], 40)
		for i := range things {
			things[i].Of = i
		}
		thing, seconds := rapid.IntRange(0, len(things)-1), rapid.IntRange(0, 20)
		t.Repeat(map[string]func(*rapid.T){
			"a time is set": func(t *rapid.T) {
				for range 8 { // so that there are many
					i, when := thing.Draw(t, "thing"), at(seconds.Draw(t, "at"))
					timers.Set(i, when)
					alarms.Set(&things[i], when)
				}
			},
			"one is dropped": func(t *rapid.T) {
				i := thing.Draw(t, "thing")
				timers.Drop(i)
				alarms.Drop(&things[i])
			},
			"time comes": func(t *rapid.T) {
				now := at(seconds.Draw(t, "now"))
				want, due := timers.Pop(now)
				if got, ok := alarms.Pop(now); got != want || ok != due {
					t.Fatalf("Pop(%v) = %v, %v, want %v, %v", now, got, ok, want, due)
				}
			},
			"": func(t *rapid.T) {
				if got, want := alarms.Next(), timers.Next(); !got.Equal(want) {
					t.Fatalf("Next() = %v, want %v", got, want)
				}
			},
		})
	})
}

func TestAlarmsOfOneMomentComeInTheOrderOfTheirWishes(t *testing.T) {
	var alarms workqueue.Alarms[string]
	for _, of := range []string{"c", "a", "d", "b"} {
		alarms.Set(&workqueue.Alarm[string]{Of: of}, at(1))
	}
	var got []string
	for of, ok := alarms.Pop(at(1)); ok; of, ok = alarms.Pop(at(1)) {
		got = append(got, of)
	}
	if diff := cmp.Diff([]string{"c", "a", "d", "b"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// One that takes the place of one that is dropped may belong before those above it.
func TestAlarmsStayInOrderWhenOneIsDropped(t *testing.T) {
	var alarms workqueue.Alarms[int]
	set := map[int]*workqueue.Alarm[int]{}
	for _, second := range []int{0, 10, 1, 11, 12, 2, 3} {
		set[second] = &workqueue.Alarm[int]{Of: second}
		alarms.Set(set[second], at(second))
	}
	alarms.Drop(set[11])
	var got []int
	for of, ok := alarms.Pop(at(20)); ok; of, ok = alarms.Pop(at(20)) {
		got = append(got, of)
	}
	if diff := cmp.Diff([]int{0, 1, 2, 3, 10, 12}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// Between is what time.Time.Sub says, in all centuries.
func TestBetweenIsADifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		moment := rapid.Custom(func(t *rapid.T) time.Time {
			return time.Unix(rapid.Int64Range(-1<<36, 1<<36).Draw(t, "second"),
				rapid.Int64Range(0, 999_999_999).Draw(t, "nanosecond"))
		})
		a, b := moment.Draw(t, "a"), moment.Draw(t, "b")
		if got, want := workqueue.Between(a, b), b.Sub(a); got != want {
			t.Fatalf("Between(%v, %v) = %v, want %v", a, b, got, want)
		}
	})
}
