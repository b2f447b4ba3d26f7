package sweep

import (
	"fmt"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/sim"
)

// A Run is what all the worlds of a sweep have in common.
type Run struct {
	// Version is that of the program; Digest is of all files that were read. Shards
	// in which one of them differs do not belong together.
	Version  string `json:"version"`
	Scenario string `json:"scenario"` // its name
	File     string `json:"file"`     // where it was read from, without the folder
	Digest   string `json:"digest"`
	Seed     uint64 `json:"seed"` // of the first sample
	Samples  int    `json:"samples"`
	Axes     Grid   `json:"axes"`
}

// maxWorlds is how many worlds a run may have.
const maxWorlds = 1_000_000

// Check refuses a run without samples, with an impossible grid, or with too many
// worlds.
func (r *Run) Check() error {
	if err := r.Axes.Check(); err != nil {
		return err
	}
	if r.Samples < 1 || r.Samples > maxWorlds/r.Axes.Size() {
		return fmt.Errorf("there must be 1 to %d samples, there are %d",
			maxWorlds/r.Axes.Size(), r.Samples)
	}
	return nil
}

// Worlds returns how many worlds there are.
func (r *Run) Worlds() int { return r.Axes.Size() * r.Samples }

// World returns the combination and the sample of a world, all from 0.
func (r *Run) World(world int) (combination, sample int) {
	return world / r.Samples, world % r.Samples
}

// A Sample is what came out of one world.
type Sample struct {
	Combination int    `json:"combination"`
	Sample      int    `json:"sample"`
	Seed        uint64 `json:"seed"`
	Ending      string `json:"ending"` // why the simulation ended, as [sim.Ending]
	// Makespan is from the first drain until the last VM had left that left, 0 when none did; in a
	// world without drains it is until nothing happened any more.
	Makespan   float64    `json:"makespanSeconds"`
	Migrations sim.Totals `json:"migrations"`
	// Retries counts migrations of a VM whose migration before had failed, and was not withdrawn.
	Retries int `json:"retries"`
	Stayed  int `json:"stayed"` // VMs on drained hosts at the end
	// Duration is of the migrations that succeeded, from when memory began to move;
	// Downtime is how long guests stood by migrations, as [sim.Downtime], and Stood of how many
	// migrations it is: of none it is unknown.
	Duration Spread `json:"durationSeconds"`
	Downtime Spread `json:"downtimeMilliseconds"`
	Stood    int    `json:"downtimeCount"`
	// Outage is how long guests that should run did not, all together and for whatever
	// reason; Down is how many of them are down at the end.
	Outage float64 `json:"outageSeconds"`
	Down   int     `json:"down"`
	// OutagesByVM is how long each VM with outages was out, in a scenario that fails over.
	OutagesByVM []sim.VMOutage `json:"outagesByVM,omitempty"`
	// Brownout is how guests were slowed down by auto-converge; zero is none.
	Brownout   sim.Brownout     `json:"brownout,omitzero"`
	Bytes      hypervisor.Bytes `json:"bytesTransferred"`
	LowerBound float64          `json:"lowerBoundSeconds"`
	Violations []sim.Violation  `json:"invariantViolations"`
	// Completion is when each share of the migrations was complete, in seconds: see [Fan]. Only the
	// process that has simulated the world knows it.
	Completion []float32 `json:"-"`
}

// A Spread is the distribution of something over the migrations of one world.
type Spread struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// SpreadOf returns the spread of sorted values, rounded to thousandths.
func SpreadOf(sorted []float64) Spread {
	return Spread{rounded(Quantile(sorted, 0.5)), rounded(Quantile(sorted, 0.99)),
		rounded(Quantile(sorted, 1))}
}

// MaxViolations is how many violations a sample keeps.
const MaxViolations = 20

// Fill takes over what the world's own result says.
func (s *Sample) Fill(r sim.Result) {
	s.Migrations, s.Bytes, s.LowerBound = r.Migrations, r.BytesTransferred, r.LowerBoundSeconds
	s.Downtime = Spread{r.Downtime.P50, r.Downtime.P99, r.Downtime.Max}
	s.Stood, s.Outage, s.Down = r.DowntimeCount, r.Outages.TotalSeconds, len(r.Down)
	s.OutagesByVM = r.OutagesByVM
	if r.Brownout != nil {
		s.Brownout = *r.Brownout
	}
	s.Violations = r.Violations[:min(len(r.Violations), MaxViolations)]
	s.Makespan = r.VirtualSeconds
	for _, e := range r.Evacuations {
		s.Stayed += len(e.Left)
	}
	if len(r.Evacuations) > 0 {
		s.Makespan = 0
		if first, last, left := r.Drained(); left {
			s.Makespan = last - first
		}
	}
	s.Makespan = rounded(s.Makespan)
}

// Label writes the settings of a combination in one line.
func Label(settings []Setting) string {
	if len(settings) == 0 {
		return "the scenario"
	}
	words := make([]string, len(settings))
	for i, s := range settings {
		words[i] = s.String()
	}
	return strings.Join(words, " ")
}
