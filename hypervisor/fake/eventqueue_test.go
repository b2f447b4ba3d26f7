package fake_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// Against a list that is sorted stably each time.
func TestTimersFireInOrder(t *testing.T) {
	type entry struct {
		timer *fake.Timer
		at    time.Duration
	}
	rapid.Check(t, func(t *rapid.T) {
		var a fake.EventQueue
		var list []entry
		timers := make([]fake.Timer, 5)
		for range rapid.IntRange(1, 30).Draw(t, "calls") {
			timer := &timers[rapid.IntRange(0, 4).Draw(t, "timer")]
			list = slices.DeleteFunc(list, func(e entry) bool { return e.timer == timer })
			at := time.Duration(rapid.IntRange(0, 5).Draw(t, "at"))
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				a.Disarm(timer)
			case 1:
				a.Arm(timer, hypervisor.Forever)
			default:
				a.Arm(timer, at)
				list = append(list, entry{timer, at})
			}
			slices.SortStableFunc(list, func(a, b entry) int { return int(a.at - b.at) })
			var want *fake.Timer
			if len(list) > 0 {
				want = list[0].timer
			}
			if got := a.Next(); got != want {
				t.Fatalf("next is %+v, want %+v", got, want)
			}
		}
	})
}

func ExampleEventQueue() {
	var a fake.EventQueue
	late, early := &fake.Timer{}, &fake.Timer{}
	a.Arm(late, 2*time.Second)
	a.Arm(early, time.Second)
	fmt.Println(a.Next().At)
	// Output: 1s
}
