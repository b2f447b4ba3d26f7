package convergence_test

import (
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/convergence"
)

// A guest dirties memory as fast as it is sent: 2 GB are left whenever a pass of
// ten seconds ends.
func ExampleConverge() {
	config := convergence.Config{
		Memory:                  4 * hypervisor.GiB,
		CompletionTimeoutPerGiB: 150 * time.Second,
		ProgressTimeout:         time.Minute,
		AllowPostCopy:           true,
	}
	start := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	var state convergence.State
	for second := range 100 {
		now := start.Add(time.Duration(second) * time.Second)
		progress := hypervisor.Progress{
			Status: hypervisor.JobActive, Started: start, Iteration: 1 + second/10,
			Sent:      hypervisor.Bytes(second) * 2e8,
			Remaining: 2e9 - hypervisor.Bytes(second%10)*2e8, Bandwidth: 2e8,
		}
		var verdict convergence.Decision
		state, verdict = convergence.Converge(config, state, progress, now)
		if adjustment, ok := verdict.Adjustment(); ok {
			// Store the state, hand the adjustment to the hypervisor, and say how it went.
			fmt.Printf("%3d s: %-28s %T\n", second, verdict, adjustment)
			state = state.Accepted(verdict, now)
		}
	}
	// Output:
	//   0 s: SetDowntime 150ms (tuning)   hypervisor.SetDowntime
	//  20 s: SetDowntime 257ms (tuning)   hypervisor.SetDowntime
	//  30 s: SetDowntime 364ms (tuning)   hypervisor.SetDowntime
	//  40 s: SetDowntime 471ms (tuning)   hypervisor.SetDowntime
	//  50 s: SetDowntime 578ms (tuning)   hypervisor.SetDowntime
	//  60 s: SetDowntime 685ms (tuning)   hypervisor.SetDowntime
	//  70 s: SetDowntime 792ms (tuning)   hypervisor.SetDowntime
	//  71 s: SetDowntime 900ms (tuning)   hypervisor.SetDowntime
	//  90 s: StartPostCopy (stalled)      hypervisor.StartPostCopy
}

func ExamplePredict() {
	const gbit10 = 10 * hypervisor.Gbit
	limit := 300 * time.Millisecond
	calm := convergence.Predict(16*hypervisor.GiB, 1e8, gbit10, limit)
	busy := convergence.Predict(16*hypervisor.GiB, 2e9, gbit10, limit)
	fmt.Println(calm.Converges, calm.Rounds, calm.Left.Round(time.Millisecond),
		calm.Downtime.Round(time.Millisecond))
	fmt.Println(busy.Converges)
	// Output:
	// true 2 14.931s 88ms
	// false
}

func ExampleBudget() {
	fmt.Println(convergence.Budget(64*hypervisor.GiB, 0, 150*time.Second))
	// Output: 2h52m30s
}
