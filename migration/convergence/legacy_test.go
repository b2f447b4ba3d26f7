package convergence_test

import (
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/convergence"
)

// legacyConfig has a budget of 150 s and no progress timeout.
func legacyConfig() convergence.Config {
	return convergence.Config{Method: convergence.Legacy, Memory: 8 * mib,
		CompletionTimeoutPerGiB: 150 * time.Second}
}

func TestLegacyBudget(t *testing.T) {
	for _, row := range []struct {
		name    string
		change  func(*convergence.Config)
		seconds float64
		want    convergence.Decision
	}{
		{"the last second of the budget is still in it", nil, 150.999, goOn},
		{"the first whole second beyond the budget is not", nil, 151, tooLate},
		{"no budget never ends", func(c *convergence.Config) {
			c.CompletionTimeoutPerGiB = 0
		}, 1e6, goOn},
		{"less than a second for each gigabyte is no budget", func(c *convergence.Config) {
			c.CompletionTimeoutPerGiB = 999 * time.Millisecond
		}, 1e6, goOn},
		{"post-copy alone is not enough", func(c *convergence.Config) {
			c.AllowPostCopy = true
		}, 151, tooLate},
		{"disruption alone pauses", func(c *convergence.Config) {
			c.AllowWorkloadDisruption = true
		}, 151, pause},
		{"disruption waits for the budget", func(c *convergence.Config) {
			c.AllowWorkloadDisruption = true
		}, 150.999, goOn},
		{"disruption and post-copy start post-copy", func(c *convergence.Config) {
			c.AllowPostCopy, c.AllowWorkloadDisruption = true, true
		}, 151, post},
		{"passed-through devices get twice the budget as downtime", func(c *convergence.Config) {
			c.AllowPostCopy, c.AllowWorkloadDisruption, c.VFIO = true, true, true
		}, 151, set(300*time.Second, convergence.OverBudget)},
		{"but never more than QEMU takes", func(c *convergence.Config) {
			c.AllowWorkloadDisruption, c.VFIO, c.Memory = true, true, 10e9
		}, 1501, set(2000*time.Second, convergence.OverBudget)},
		{"without leave they are aborted", func(c *convergence.Config) {
			c.AllowPostCopy, c.VFIO = true, true
		}, 151, tooLate},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := transfer{config: legacyConfig()}
			if row.change != nil {
				row.change(&x.config)
			}
			same(t, "verdict", row.want, x.look(row.seconds, sample(2, gib)))
		})
	}
}

func TestLegacyProgress(t *testing.T) {
	type step struct {
		seconds   float64
		remaining hypervisor.Bytes
		want      convergence.Decision
	}
	for _, row := range []struct {
		name  string
		steps []step
	}{
		{"the timeout counts whole seconds and is strict", []step{
			{0, 100, goOn}, {10.999, 100, goOn}, {11, 100, stuck}}},
		{"an equal sample is no progress", []step{
			{0, 100, goOn}, {5, 100, goOn}, {11, 100, stuck}}},
		{"one byte less is progress", []step{
			{0, 100, goOn}, {5, 99, goOn}, {11, 99, goOn}, {16, 99, stuck}}},
		{"swinging counts as progress for ever", []step{
			{0, 100, goOn}, {8, 200, goOn}, {9, 199, goOn}, {17, 200, goOn},
			{18, 199, goOn}, {28, 200, goOn}, {29, 200, stuck}}},
		{"more than before is no progress", []step{
			{0, 100, goOn}, {5, 200, goOn}, {11, 300, stuck}}},
		{"nothing left renews the patience at the next sample", []step{
			{0, 100, goOn}, {5, 0, goOn}, {20, 0, goOn}, {30, 500, goOn}, {41, 500, stuck}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := transfer{config: convergence.Config{Method: convergence.Legacy,
				ProgressTimeout: 10 * time.Second}}
			for _, s := range row.steps {
				same(t, "verdict", s.want, x.look(s.seconds, sample(2, s.remaining)))
			}
		})
	}
}

func TestLegacyWithoutStatistics(t *testing.T) {
	x := transfer{config: convergence.Config{Method: convergence.Legacy,
		ProgressTimeout: 10 * time.Second}}
	x.look(0, sample(1, 100))
	none := hypervisor.Progress{Status: hypervisor.JobNone}
	same(t, "at the timeout", goOn, x.look(10, none))
	same(t, "after the timeout", stuck, x.look(11, none))
	setup := hypervisor.Progress{Status: hypervisor.JobSetup}
	same(t, "nothing left while connecting is less", goOn, x.look(12, setup))
}

func TestLegacyPauseDoublesTheBudget(t *testing.T) {
	for _, vfio := range []bool{false, true} {
		x := transfer{config: legacyConfig()}
		x.config.AllowWorkloadDisruption, x.config.VFIO = true, vfio
		if v := x.obey(151, sample(2, gib)); v.Action == convergence.Continue {
			t.Fatalf("vfio %t: nothing was done at the end of the budget", vfio)
		}
		same(t, "within twice the budget", goOn, x.look(300.9, sample(2, gib)))
		same(t, "after twice the budget", tooLate, x.look(301, sample(2, gib)))
	}
}

func TestLegacyAsksAgainForWhatWasRefused(t *testing.T) {
	x := transfer{config: legacyConfig()}
	x.config.AllowPostCopy, x.config.AllowWorkloadDisruption = true, true
	for i := range 20 {
		v := x.look(151+float64(i)*0.4, sample(2, gib))
		same(t, "verdict", post, v)
		x.state = x.state.Refused(v)
	}
	x.obey(160, sample(2, gib))
	same(t, "in post-copy", goOn, x.look(1e6, sample(2, gib)))
}

func TestLegacyAbort(t *testing.T) {
	x := transfer{config: legacyConfig()}
	same(t, "unanswered", tooLate, x.look(151, sample(2, gib)))
	same(t, "asked again", tooLate, x.obey(152, sample(2, gib)))
	same(t, "under way", goOn, x.look(153, sample(2, gib)))
	x.state = x.state.Refused(tooLate)
	same(t, "it failed", tooLate, x.look(154, sample(2, gib)))
}

func TestLegacySeesWhatTheTransferShows(t *testing.T) {
	x := transfer{config: legacyConfig()}
	x.config.AllowWorkloadDisruption = true
	p := sample(2, gib)
	p.Mode = hypervisor.PausedCopy
	same(t, "a lost answer to Pause", goOn, x.look(151, p))
	same(t, "twice the budget", tooLate, x.look(301, p))
	p.Mode = hypervisor.PostCopy
	same(t, "a lost answer to StartPostCopy", goOn, x.look(1000, p))
}

func TestLegacyStuckAbortIsNotRepeatedWhileUnderWay(t *testing.T) {
	x := transfer{config: convergence.Config{Method: convergence.Legacy,
		ProgressTimeout: 10 * time.Second}}
	x.look(0, sample(1, 100))
	same(t, "stuck", stuck, x.obey(11, sample(1, 100)))
	same(t, "under way", goOn, x.look(12, sample(1, 100)))
	x.state = x.state.Refused(stuck)
	same(t, "it failed", stuck, x.look(13, sample(1, 100)))
}
