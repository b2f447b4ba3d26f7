package explore_test

import (
	"testing"

	"github.com/godwit-vm/godwit/internal/explore"
)

// BenchmarkStates says how many states are explored in a second of one processor, in each
// of the ways in which [TestNothingIsViolated] goes.
func BenchmarkStates(b *testing.B) {
	met := map[string]bool{}
	for _, way := range ways {
		if met[way.name] {
			continue // it is there for other scenes
		}
		met[way.name] = true
		b.Run(way.name, func(b *testing.B) {
			states, before := 0, used()
			for b.Loop() {
				c := way.Config
				c.Faults, c.Workers, c.States = explore.AllFaults, 1, 20_000
				c.Scene = scene(b, scenes[3].text)
				c.Scene.Begin = way.begin
				r, err := explore.Run(b.Context(), c)
				if err != nil || r.Violation != nil {
					b.Fatal(r, err)
				}
				states += r.States
			}
			b.ReportMetric(float64(states)/(used()-before).Seconds(), "states/s")
		})
	}
}
