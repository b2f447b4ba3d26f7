package workqueue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/internal/workqueue"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(n int) time.Time { return epoch.Add(time.Duration(n) * time.Second) }

// wishes is the naive model of Timers: the earliest wish of each key.
type wishes map[string]time.Time

func (w wishes) next() (key string, first time.Time) {
	for k, t := range w {
		if key == "" || t.Before(first) {
			key, first = k, t
		}
	}
	return key, first
}

func TestTimersKeepTheEarliestWishOfEachKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var timers workqueue.Timers[string]
		model := wishes{}
		keys := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		seconds := rapid.IntRange(0, 20)
		t.Repeat(map[string]func(*rapid.T){
			"a time is set": func(t *rapid.T) {
				k, when := keys.Draw(t, "key"), at(seconds.Draw(t, "at"))
				timers.Set(k, when)
				if old, ok := model[k]; !ok || when.Before(old) {
					model[k] = when
				}
			},
			"one is dropped": func(t *rapid.T) {
				k := keys.Draw(t, "key")
				timers.Drop(k)
				delete(model, k)
			},
			"time comes": func(t *rapid.T) {
				now := at(seconds.Draw(t, "now"))
				k, ok := timers.Pop(now)
				_, first := model.next()
				if want := len(model) > 0 && !first.After(now); ok != want {
					t.Fatalf("Pop(%v) = %q, %v with %v", now, k, ok, model)
				}
				if ok && !model[k].Equal(first) {
					t.Fatalf("Pop gave %q of %v, the first is at %v", k, model[k], first)
				}
				delete(model, k)
			},
			"": func(t *rapid.T) {
				if _, first := model.next(); !timers.Next().Equal(first) {
					t.Fatalf("Next() = %v, want %v", timers.Next(), first)
				}
			},
		})
	})
}

func TestTimersOfOneMomentComeInTheOrderOfTheirWishes(t *testing.T) {
	var timers workqueue.Timers[string]
	for _, k := range []string{"c", "a", "d", "b"} {
		timers.Set(k, at(1))
	}
	var got []string
	for k, ok := timers.Pop(at(1)); ok; k, ok = timers.Pop(at(1)) {
		got = append(got, k)
	}
	if diff := cmp.Diff([]string{"c", "a", "d", "b"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestWorkIsAQueueWithoutRepetitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var work workqueue.Work[int]
		var model []int
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				k := rapid.IntRange(0, 30).Draw(t, "key") // more than are searched for
				work.Add(k)
				for _, m := range model {
					if m == k {
						return
					}
				}
				model = append(model, k)
			},
			"pop": func(t *rapid.T) {
				k, ok := work.Pop()
				if ok != (len(model) > 0) || ok && k != model[0] {
					t.Fatalf("Pop() = %v, %v with %v", k, ok, model)
				}
				if ok {
					model = model[1:]
				}
			},
		})
	})
}

func TestEarliest(t *testing.T) {
	never := time.Time{}
	for _, c := range []struct {
		name       string
		a, b, want time.Time
	}{
		{"never and never is never", never, never, never},
		{"a time comes before never", at(1), never, at(1)},
		{"never comes after a time", never, at(1), at(1)},
		{"the first of two", at(1), at(2), at(1)},
		{"the second of two", at(2), at(1), at(1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := workqueue.Earliest(c.a, c.b); !got.Equal(c.want) {
				t.Errorf("Earliest(%v, %v) = %v, want %v", c.a, c.b, got, c.want)
			}
		})
	}
}

func ExampleTimers() {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var timers workqueue.Timers[string]
	timers.Set("db", start.Add(time.Minute))
	timers.Set("web", start.Add(time.Second))
	timers.Set("web", start.Add(time.Hour)) // it is looked at earlier anyway

	key, ok := timers.Pop(start.Add(2 * time.Second))
	fmt.Println(key, ok, timers.Next().Sub(start))
	// Output: web true 1m0s
}
