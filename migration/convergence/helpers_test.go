package convergence_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/convergence"
)

const (
	gib = hypervisor.GiB
	mib = hypervisor.MiB
	gb  = hypervisor.Bandwidth(1e9)
)

// noon is when every transfer of these tests begins.
var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

var (
	goOn    = convergence.Decision{}
	pause   = convergence.Decision{Action: convergence.Pause, Why: convergence.OverBudget}
	tooLate = convergence.Decision{Action: convergence.Abort, Why: convergence.OverBudget}
	stuck   = convergence.Decision{Action: convergence.Abort, Why: convergence.Stuck}
	post    = convergence.Decision{Action: convergence.StartPostCopy, Why: convergence.OverBudget}
)

// tune is the verdict to allow a downtime within MaxDowntime.
func tune(d time.Duration) convergence.Decision { return set(d, convergence.Tuning) }

// set is the verdict to allow a downtime because of why.
func set(d time.Duration, why convergence.Reason) convergence.Decision {
	return convergence.Decision{Action: convergence.SetDowntime, Limit: d, Why: why}
}

// A transfer is one migration under observation.
type transfer struct {
	config convergence.Config
	state  convergence.State
}

// look shows the transfer one sample, at seconds after its start.
func (x *transfer) look(seconds float64, p hypervisor.Progress) convergence.Decision {
	var v convergence.Decision
	p.Started = noon
	x.state, v = convergence.Converge(x.config, x.state, p, at(seconds))
	return v
}

// obey looks, and has the hypervisor accept what the verdict asks for.
func (x *transfer) obey(seconds float64, p hypervisor.Progress) convergence.Decision {
	v := x.look(seconds, p)
	if v != goOn {
		x.state = x.state.Accepted(v, at(seconds))
	}
	return v
}

// at returns the instant seconds after noon.
func at(seconds float64) time.Time {
	return noon.Add(time.Duration(seconds * float64(time.Second)))
}

// sample is an active pre-copy in a pass with so much left.
func sample(iteration int, remaining hypervisor.Bytes) hypervisor.Progress {
	return hypervisor.Progress{Status: hypervisor.JobActive, Iteration: iteration,
		Remaining: remaining, Total: 4 * gib, Bandwidth: gb}
}

// same fails the test when got is not want.
func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
