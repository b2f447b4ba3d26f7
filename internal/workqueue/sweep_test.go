package workqueue

import (
	"testing"
	"time"
)

// A key that is looked at often and waits for a far deadline each time leaves
// no trace of the deadlines that it no longer waits for.
func TestTimersForgetWhatWasDropped(t *testing.T) {
	var timers Timers[int]
	epoch := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 100_000 {
		timers.Drop(7)
		timers.Set(7, epoch.Add(time.Duration(i)*time.Hour))
		if n := timers.queue.Len(); n > 2+fewStale {
			t.Fatalf("%d wishes are kept for one key", n)
		}
	}
	if k, ok := timers.Pop(epoch.Add(100_000 * time.Hour)); !ok || k != 7 {
		t.Errorf("Pop = %v, %v", k, ok)
	}
	if k, ok := timers.Pop(epoch.Add(200_000 * time.Hour)); ok {
		t.Errorf("a dropped wish came back: %v", k)
	}
}

// The same holds for alarms, whether they are set anew or only dropped.
func TestAlarmsForgetWhatWasDropped(t *testing.T) {
	var alarms Alarms[int]
	epoch := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	crowded := make([]Alarm[int], 4*crowd)
	for i := range crowded {
		alarms.Set(&crowded[i], epoch)
	}
	for i := range crowded {
		alarms.Drop(&crowded[i])
	}
	if n := alarms.near.Len() + alarms.far.Len(); n > fewStale {
		t.Errorf("%d alarms are kept after a crowd has left", n)
	}
	alarm := Alarm[int]{Of: 7}
	for i := range 100_000 {
		alarms.Drop(&alarm)
		alarms.Set(&alarm, epoch.Add(time.Duration(i)*time.Hour))
		if n := alarms.near.Len() + alarms.far.Len(); n > 2+fewStale {
			t.Fatalf("%d wishes are kept for one alarm", n)
		}
	}
	if of, ok := alarms.Pop(epoch.Add(100_000 * time.Hour)); !ok || of != 7 {
		t.Errorf("Pop = %v, %v", of, ok)
	}
	if of, ok := alarms.Pop(epoch.Add(200_000 * time.Hour)); ok {
		t.Errorf("a dropped wish came back: %v", of)
	}
}
