package convergence_test

import (
	"testing"
	"time"

	"github.com/godwit-vm/godwit/migration/convergence"
)

// BenchmarkConverge measures one look in the middle of a transfer. At a pass
// boundary Stall copies what it remembers; the others never do.
func BenchmarkConverge(b *testing.B) {
	for _, method := range []convergence.Method{convergence.Watermark, convergence.Legacy,
		convergence.Stall} {
		b.Run(method.String(), func(b *testing.B) {
			x := transfer{config: convergence.Config{Method: method, Memory: 4 * gib,
				CompletionTimeoutPerGiB: 150 * time.Second, ProgressTimeout: time.Minute,
				AllowPostCopy: true, AllowWorkloadDisruption: true}}
			x.observe(0, 60, steady)
			p, now := steady(60), at(60)
			b.ReportAllocs()
			for b.Loop() {
				convergence.Converge(x.config, x.state, p, now)
			}
		})
	}
}

// BenchmarkConvergeInTrouble measures a look at which every rule is asked.
func BenchmarkConvergeInTrouble(b *testing.B) {
	x := transfer{config: convergence.Config{Memory: 4 * gib, ProgressTimeout: time.Minute,
		CompletionTimeoutPerGiB: 150 * time.Second, MaxDowntime: 500 * ms}}
	x.observe(0, 80, steady)
	p, now := steady(90), at(90)
	b.ReportAllocs()
	for b.Loop() {
		convergence.Converge(x.config, x.state, p, now)
	}
}

func TestConvergeDoesNotAllocate(t *testing.T) {
	for _, method := range []convergence.Method{convergence.Watermark, convergence.Legacy} {
		x := transfer{config: convergence.Config{Method: method, ProgressTimeout: time.Minute,
			CompletionTimeoutPerGiB: 150 * time.Second, Memory: 4 * gib}}
		x.observe(0, 85, steady)
		p, now := steady(90), at(90)
		got := testing.AllocsPerRun(100, func() {
			convergence.Converge(x.config, x.state, p, now)
		})
		same(t, method.String(), 0.0, got)
	}
}
