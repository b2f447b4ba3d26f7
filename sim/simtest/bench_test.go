package simtest

import (
	"testing"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/sim"
)

// large is what speed is measured with: 10 hosts, 40 VMs, a drain and 5 faults.
var large = Of(Roomy(Large), Converging(), Drain(),
	Swarm(Faults(), 5, 5))

// own are godwit's own decisions, plugged in as a user's would be.
func own() []Option {
	return []Option{Evacuation("adaptive", evacuation.AdaptivePolicy{}), Weigher(placement.Spread()[0]),
		Convergence("converge", convergence.Converge),
		Retry("backoff", new(migration.Config{}.Complete()).Backoff)}
}

// BenchmarkWorlds is what worlds cost alone, made beforehand, in Check, and in Check with all
// decisions guarded. Compare them by CPU time on a loaded machine.
func BenchmarkWorlds(b *testing.B) {
	const many = 200
	var made []*config.Scenario
	for i := range many {
		s, err := large.Make(sim.Seeded(uint64(i))).Scenario("world")
		if err != nil {
			b.Fatal(err)
		}
		made = append(made, s)
	}
	each := func(name string, f func(b *testing.B, n int)) {
		b.Run(name, func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				f(b, n%many)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "worlds/s")
		})
	}
	each("alone", func(b *testing.B, n int) {
		c := made[n].Config(made[n].Seed)
		w, err := made[n].Build(c)
		if err != nil {
			b.Fatal(err)
		}
		w.Run(forever)
		w.CheckAtRest()
	})
	for name, options := range map[string][]Option{"checked": nil, "guarded": own()} {
		stage := gather(b, options).stage()
		each(name, func(b *testing.B, n int) {
			w := large.Make(sim.Seeded(uint64(n)))
			if f := stage.judge(w, n%twice == 1); f != nil {
				b.Fatal(f)
			}
		})
	}
}
