package convergence_test

import (
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/convergence"
)

const ms = time.Millisecond

// A tick is one look while the downtime limit is tuned.
type tick struct {
	seconds   float64
	iteration int
	want      convergence.Decision
}

func TestTuning(t *testing.T) {
	for _, row := range []struct {
		name   string
		tuning convergence.DowntimeTuning
		most   time.Duration
		ticks  []tick
	}{
		{"the defaults go from 150 ms to 900 ms in steps of 107 ms",
			convergence.DowntimeTuning{}, 0, []tick{
				{0, 1, tune(150 * ms)}, {0.4, 1, goOn}, {20, 2, goOn}, {20.4, 3, tune(257 * ms)},
				{30.3, 4, goOn}, {30.4, 4, tune(364 * ms)}, {40.4, 4, tune(471 * ms)},
				{50.4, 5, tune(578 * ms)}, {60.4, 5, tune(685 * ms)}, {70.4, 6, tune(792 * ms)},
				{80.4, 6, tune(899 * ms)}, {90.4, 7, tune(900 * ms)}, {1e3, 8, goOn}}},
		{"the first limit is never above the last", convergence.DowntimeTuning{}, 100 * ms,
			[]tick{{0, 1, tune(100 * ms)}, {100, 9, goOn}}},
		{"a step is at least a millisecond",
			convergence.DowntimeTuning{Initial: 10 * ms, Steps: 100}, 12 * ms,
			[]tick{{0, 1, tune(10 * ms)}, {10, 3, tune(11 * ms)}, {20, 4, tune(12 * ms)},
				{30, 5, goOn}}},
		{"the cool-down is reached, not exceeded",
			convergence.DowntimeTuning{Steps: 1, Cooldown: time.Second, StartAfterIteration: 1},
			500 * ms,
			[]tick{{0, 1, tune(150 * ms)}, {0.999, 1, goOn}, {1, 1, tune(500 * ms)}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := transfer{config: convergence.Config{Method: convergence.Legacy,
				MaxDowntime: row.most, DowntimeTuning: &row.tuning}}
			for _, k := range row.ticks {
				same(t, "verdict", k.want, x.obey(k.seconds, sample(k.iteration, gib)))
			}
		})
	}
}

func TestTuningIsOffByDefaultInLegacy(t *testing.T) {
	x := transfer{config: convergence.Config{Method: convergence.Legacy}}
	same(t, "verdict", goOn, x.look(0, sample(3, gib)))
}

func TestTuningWithoutStatisticsOnlySetsTheFirstLimit(t *testing.T) {
	x := transfer{config: convergence.Config{Method: convergence.Legacy,
		DowntimeTuning: &convergence.DowntimeTuning{}}}
	none := hypervisor.Progress{Status: hypervisor.JobNone, Iteration: 9}
	same(t, "first", tune(150*ms), x.obey(0, none))
	same(t, "later", goOn, x.obey(100, none))
}

func TestLegacyDoesNotRepeatARefusedFirstLimit(t *testing.T) {
	x := transfer{config: convergence.Config{Method: convergence.Legacy,
		DowntimeTuning: &convergence.DowntimeTuning{}}}
	x.state = x.state.Refused(x.look(0, sample(1, gib)))
	same(t, "in the first pass", goOn, x.look(0.4, sample(1, gib)))
	same(t, "QEMU's 300 ms and a step", tune(407*ms), x.look(0.8, sample(3, gib)))
	same(t, "which is repeated", tune(407*ms), x.look(1.2, sample(3, gib)))
}

func TestWatermarkRepeatsARefusedFirstLimit(t *testing.T) {
	var x transfer
	x.state = x.state.Refused(x.look(0, sample(1, gib)))
	same(t, "again", tune(150*ms), x.look(0.4, sample(1, gib)))
}

func TestTheActionComesBeforeTheLimit(t *testing.T) {
	x := transfer{config: legacyConfig()}
	x.config.DowntimeTuning = &convergence.DowntimeTuning{}
	x.config.AllowWorkloadDisruption = true
	same(t, "the action", pause, x.obey(151, sample(3, gib)))
	same(t, "the limit", tune(150*ms), x.obey(151.4, sample(3, gib)))
	same(t, "the cancel", tooLate, x.obey(301, sample(4, gib)))
	same(t, "nothing while it is under way", goOn, x.obey(320, sample(5, gib)))
}
