package migration_test

import (
	"fmt"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
)

// benchCases are the situations that a busy controller decides about.
var benchCases = []struct{ name, facts string }{
	{"Unset", "phase="},
	{"Pending, gate closed", "gate=cluster"},
	{"Pending, creates", ""},
	{"Scheduling, waits", "phase=Scheduling target=starting"},
	{"Scheduled, hands over", placed},
	{"PreparingTarget", handed},
	{"TargetReady", "phase=TargetReady claim=self named address target=ready"},
	{"Running", moving},
	{"Running, canceled", moving + "canceled"},
	{"Running, unanswered", moving + "late unanswered"},
	{"Running, succeeds", moving + "completed arrived"},
	{"Succeeded", "phase=Succeeded target=told"},
	{"Failed, target left", "phase=Failed target=ready"},
}

func BenchmarkStep(b *testing.B) {
	for _, c := range benchCases {
		b.Run(c.name, func(b *testing.B) {
			s := newSituation(false)
			if err := s.learn(c.facts); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			var d migration.Decision
			for b.Loop() {
				d = s.step()
			}
			_ = d
		})
	}
}

// TestStepAllocatesNothing is what the documentation promises.
func TestStepAllocatesNothing(t *testing.T) {
	for _, c := range benchCases {
		for _, asKubeVirt := range []bool{false, true} {
			s := newSituation(asKubeVirt)
			if err := s.learn(c.facts); err != nil {
				t.Fatal(err)
			}
			var d migration.Decision
			if n := testing.AllocsPerRun(100, func() { d = s.step() }); n != 0 {
				t.Errorf("%s: %v allocations, came to %q", c.name, n, d.State.Phase)
			}
		}
	}
}

// BenchmarkGate asks, takes and returns while others hold slots: what it costs
// does not depend on how many.
func BenchmarkGate(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprint(n, " unfinished"), func(b *testing.B) {
			var slots migration.Slots
			slot := func(i int) migration.Slot {
				source := hypervisor.HostName(fmt.Sprint("n", i%500))
				return migration.Slot{Source: source, Recorded: source,
					Target: hypervisor.HostName(fmt.Sprint("n", (i+1)%500))}
			}
			for i := range n {
				slots.Take(slot(i))
			}
			l := migration.Limits{PerCluster: n + 1, PerSource: n, PerTarget: n}
			next := slot(n / 2)
			b.ReportAllocs()
			for b.Loop() {
				if slots.Admit(l, next.Source) != migration.Open ||
					slots.To(next.Target) >= l.PerTarget {
					b.Fatal("the gate is closed")
				}
				slots.Take(next)
				slots.Return(next)
			}
		})
	}
}

func BenchmarkBackoff(b *testing.B) {
	for _, n := range []int{1, 5, 50} {
		b.Run(fmt.Sprint(n, " failures"), func(b *testing.B) {
			attempts := row(n)
			b.ReportAllocs()
			for b.Loop() {
				if byDefault.Backoff("self", attempts).IsZero() {
					b.Fatal("it does not back off")
				}
			}
		})
	}
}
