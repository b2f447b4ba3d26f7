package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/sim"
)

// Times that end after the year 2262, where nanoseconds since 1970 wrap, are far away: they
// are not now, and virtual time goes on.
func TestTimeGoesOnThoughSomethingIsFarAway(t *testing.T) {
	farAway := func(at time.Time) migration.Retry {
		return func(migration.ID, []migration.Attempt) time.Time { return at }
	}
	retry := func(r migration.Retry) controller.Config {
		return controller.Config{Migration: migration.Config{Retry: r}}
	}
	bounds := func(d time.Duration) controller.Config {
		return controller.Config{Migration: migration.Config{Timeouts: migration.Timeouts{
			Pending: d, Unschedulable: d, Target: d, HandOver: d, Prepare: d, Begin: d,
			Transfer: d, Abort: d, UtilityVolumes: d}}}
	}
	fails := agent.Config{Converge: giveUp}
	for name, config := range map[string]sim.Config{
		"all times without end":     {Controller: bounds(hypervisor.Forever)},
		"all times of 240 years":    {Controller: bounds(240 * 365 * 24 * time.Hour)},
		"without end, and it fails": {Controller: bounds(hypervisor.Forever), Agent: fails},
		"a retry after 240 years": {Agent: fails,
			Controller: retry(farAway(sim.Epoch.AddDate(240, 0, 0)))},
		"a retry in the year 9999": {Agent: fails,
			Controller: retry(farAway(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)))},
		"a retry at the end of time": {Agent: fails,
			Controller: retry(farAway(time.Unix(1<<62, 0)))},
		"waits without end": {Agent: agent.Config{Poll: hypervisor.Forever,
			Retry: hypervisor.Forever, RetryCap: hypervisor.Forever,
			Resync: hypervisor.Forever, ResyncCap: hypervisor.Forever},
			Controller: controller.Config{Retry: hypervisor.Forever,
				RetryCap: hypervisor.Forever, Resync: hypervisor.Forever}},
		"a lease without end": {Lease: hypervisor.Forever, Futile: hypervisor.Forever},
	} {
		t.Run(name, func(t *testing.T) {
			checkTimeGoesOn(t, config)
		})
	}
}

func checkTimeGoesOn(t *testing.T, config sim.Config) {
	t.Helper()
	const bound = 20_000 // events; a healthy run has a few hundred
	events, last := 0, time.Duration(0)
	config.After = func(w *sim.World) bool {
		if events++; w.Now() > last {
			last = w.Now()
		}
		return events < bound
	}
	w := sim.New(config)
	fill(t, w, [3]int{3, 1, 3}, func(hypervisor.Bytes) fake.Workload { return fake.Workload{} })
	w.At(time.Second, sim.Drain{Host: "n1"})
	w.At(time.Minute, sim.CrashAgent{Host: "n2", For: hypervisor.Forever})
	w.At(2*time.Minute, sim.CutLink{A: "n1", B: "n3", For: 280 * 365 * 24 * time.Hour})
	ending := w.Run(2 * time.Hour)
	if ending == sim.Stopped {
		t.Fatalf("%d events, and it is only %s", events, w.Now())
	}
	for _, v := range w.Violations() {
		t.Error(v)
	}
	w.At(w.Now(), sim.Skew{Host: "n3", By: hypervisor.Forever})
	if ending = w.Run(4 * time.Hour); ending == sim.Stopped {
		t.Fatalf("%d events, and it is only %s", events, w.Now())
	}
}

func TestAConfigurationThatCannotBeMeantIsRefusedWithWords(t *testing.T) {
	for want, config := range map[string]sim.Config{
		"sim.Config.Lease is -1s":        {Lease: -time.Second},
		"agent.Config.Poll is -1s":       {Agent: agent.Config{Poll: -time.Second}},
		"controller.Config.Retry is -1s": {Controller: controller.Config{Retry: -time.Second}},
		"migration.Config.Timeouts.Abort is -1s": {Controller: controller.Config{
			Migration: migration.Config{Timeouts: migration.Timeouts{Abort: -time.Second}}}},
	} {
		t.Run(want, func(t *testing.T) {
			defer func() {
				if got, _ := recover().(string); !strings.Contains(got, want) {
					t.Errorf("New panics with %q, want %q in it", got, want)
				}
			}()
			sim.New(config)
		})
	}
}
