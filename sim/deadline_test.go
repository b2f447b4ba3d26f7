package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// drainingUntil drains a host with twenty VMs, two at once, until a deadline, and returns when it was empty and what was said.
func drainingUntil(t *testing.T, within time.Duration, d evacuation.Deadline) (took time.Duration, said []string) {
	c := sim.Config{Trace: func(e sim.Entry) {
		if _, text, is := strings.Cut(e.String(), "drain of n1: "); is {
			said = append(said, text)
		}
	}}
	c.Watch = func(at time.Duration, before, after *store.Migration) {
		if after.State.Phase == migration.Succeeded && before.State.Phase != migration.Succeeded {
			took = at
		}
	}
	cluster := migration.DefaultCluster()
	cluster.BandwidthPerMigration = 100 << 20 // so that the limits are what keeps it
	c.Controller = controller.Config{Cluster: &cluster}
	w := grid(t, c, 4, 1, 20)
	d.By = sim.Epoch.Add(within)
	w.At(0, sim.Drain{Host: "n1", By: &d})
	w.Run(24 * time.Hour)
	w.CheckAtRest()
	for _, v := range w.Violations() {
		t.Errorf("%s: %s", v.Invariant, v.Detail)
	}
	return took, said
}

// A drain that would be late is in time when its limits may be raised, and says early that it is late when they may not.
func TestADrainMeetsItsDeadlineWithWhatIsAllowed(t *testing.T) {
	slow, said := drainingUntil(t, time.Hour, evacuation.Deadline{})
	if len(said) > 0 {
		t.Errorf("it is in time, and says %q", said)
	}
	within := slow * 8 / 10
	took, said := drainingUntil(t, within, evacuation.Deadline{})
	if took != slow || len(said) == 0 || !strings.Contains(strings.Join(said, "\n"), "cannot be met: ") {
		t.Errorf("%v as before %v, and says %q", took, slow, said)
	}
	took, said = drainingUntil(t, within, evacuation.Deadline{PerSource: 8, PerCluster: 8})
	if took > within || len(said) == 0 || !strings.HasPrefix(said[0], "late: ") {
		t.Errorf("%v within %v, and says %q", took, within, said)
	}
}
