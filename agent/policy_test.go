package agent_test

import (
	"testing"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

// A policy of one's own decides in place of godwit's, and is given back what it remembers.
func TestAPolicyOfOnesOwnDecides(t *testing.T) {
	impatient := func(_ convergence.Config, s convergence.State, _ hypervisor.Progress,
		_ time.Time) (convergence.State, convergence.Decision) {
		looks := int64(1)
		if len(s.Own) > 0 {
			looks = s.Own[0] + 1
		}
		if s.Own = []int64{looks}; looks < 3 {
			return s, convergence.Decision{}
		}
		return s, convergence.Decision{Action: convergence.Abort, Why: convergence.Stalled}
	}
	w := sim.New(sim.Config{Agent: agent.Config{Converge: impatient}})
	for _, name := range []hypervisor.HostName{"n1", "n2"} {
		h := hypervisor.Host{Name: name, Memory: 256 * hypervisor.GiB, CPUs: 8,
			Link: 10 * hypervisor.Gbit}
		if err := w.AddHost(store.Host{Host: h}); err != nil {
			t.Fatal(err)
		}
	}
	vm := store.VM{VM: hypervisor.VM{ID: "x/v", Memory: 64 * hypervisor.GiB}, Host: "n1",
		Migratable: true}
	if err := w.AddVM(vm, fake.Workload{}); err != nil {
		t.Fatal(err)
	}
	w.At(time.Second, sim.Migrate{VM: "x/v"})
	w.Run(time.Hour)
	all := w.Migrations("x/v")
	if len(all) != 1 || !all[0].Source.Failed ||
		all[0].Source.Error != "given up: Abort (stalled)" {
		t.Errorf("the migration is %+v, want it to have been given up", all)
	}
	if got := all[0].Source.Monitor.Own; len(got) != 1 || got[0] < 3 {
		t.Errorf("it remembers %v, want at least three looks", got)
	}
}
