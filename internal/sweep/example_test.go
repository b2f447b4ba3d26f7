package sweep_test

import (
	"fmt"

	"github.com/godwit-vm/godwit/internal/sweep"
)

// Two settings of one field, eight samples each. What comes out of a world is made
// up here; godwit simulate plays it.
func Example() {
	axis, err := sweep.ParseAxis("limits.perSource=1,4")
	if err != nil {
		fmt.Println(err)
		return
	}
	run := sweep.Run{Scenario: "a drain", Seed: 7, Samples: 8, Axes: sweep.Grid{axis}}
	var samples []sweep.Sample
	for world := range run.Worlds() {
		combination, sample := run.World(world)
		luck := float64(sweep.Seed(run.Seed, sample) % 10)
		samples = append(samples, sweep.Sample{Combination: combination, Sample: sample,
			Ending: "at rest", Makespan: 60 + luck - 5*float64(combination)})
	}
	d := sweep.Summarize(run, samples)
	for _, c := range d.Combinations {
		fmt.Printf("%s: median %v s\n", sweep.Label(c.Settings), c.Statistic("makespanSeconds").P50)
	}
	for _, c := range d.Comparisons {
		if c.Outcome != sweep.Undecided {
			fmt.Printf("%s: %s by %v, in %d of %d samples\n", c.Measure, c.Outcome, -c.Mean, c.Less,
				run.Samples)
		}
	}
	// Output:
	// limits.perSource=1: median 60 s
	// limits.perSource=4: median 55 s
	// makespanSeconds: lower by 5, in 8 of 8 samples
}
