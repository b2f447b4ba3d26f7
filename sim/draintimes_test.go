package sim

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
)

func TestADrainEndsWhenTheLastHasLeft(t *testing.T) {
	var b drainTimes
	for _, host := range []string{"a", "a", "b"} {
		b.Arrived(hypervisor.HostName(host))
	}
	b.Begin("a", 10)
	b.Departed("a", 20)
	b.Departed("a", 30)
	b.Begin("c", 35) // no VM is there
	b.Begin("b", 40)
	b.Departed("b", 50)
	b.Arrived("b") // it is not empty any more
	b.End("unknown")
	check(t, &b, drainTime{Host: "a", Since: 10, Empty: 30, Last: 30},
		drainTime{Host: "c", Since: 35, Empty: 35, Last: -1},
		drainTime{Host: "b", Since: 40, Empty: -1, Last: 50})
}

func TestADrainThatWasTakenBackBeginsAnew(t *testing.T) {
	var b drainTimes
	b.Arrived("a")
	b.Begin("a", 10)
	b.Begin("a", 15) // it has begun
	b.End("a")
	b.Departed("a", 20) // it is not drained
	if b.On("a") || b.On("b") {
		t.Error("nothing is being drained")
	}
	first := drainTime{Host: "a", Since: 10, Empty: -1, Last: -1, Over: true}
	check(t, &b, first)
	b.Begin("a", 30)
	check(t, &b, first, drainTime{Host: "a", Since: 30, Empty: 30, Last: -1})
	b.Arrived("a")
	b.Departed("a", 50)
	check(t, &b, first, drainTime{Host: "a", Since: 30, Empty: 50, Last: 50})
}

func check(t *testing.T, b *drainTimes, want ...drainTime) {
	t.Helper()
	var got []drainTime
	for _, d := range b.All() {
		got = append(got, *d)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("drains (-want +got):\n%s", diff)
	}
}
