package store_test

import (
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/convergence"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

func TestWhatAFailedMigrationSaysOfItsHosts(t *testing.T) {
	type report struct {
		because string
		source  store.SourceReport
		target  store.TargetReport
		dead    bool
	}
	ready := store.TargetReport{Ready: true, Address: "tcp:n2:1"}
	for _, test := range []struct {
		name string
		report
		fault migration.Fault
		why   string
	}{
		{"the agent does not answer", report{because: "overdue"}, migration.Preparing, "no answer"},
		{"the target does not listen", report{because: "overdue",
			target: store.TargetReport{Ready: true}}, migration.Preparing, "receive hangs"},
		{"the target fails again and again", report{because: "overdue",
			target: store.TargetReport{Ready: true, Error: "transient: no"}}, migration.Preparing,
			"receive fails: transient: no"},
		{"the target refuses", report{because: "target-down",
			target: store.TargetReport{Ready: true, Down: true}}, migration.Refusing,
			"receive refused"},
		{"the target has no room", report{because: "target-down", target: store.TargetReport{
			Refused: []placement.Reason{{Check: "memory"}}}}, migration.NoFault, ""},
		{"the target ends before the start", report{because: "target-down",
			target: store.TargetReport{Ready: true, Address: "a", Down: true}}, migration.Preparing,
			"the target ended"},
		{"the source does not begin", report{because: "overdue", target: ready},
			migration.Beginning, "send does not begin"},
		{"the source hangs", report{because: "overdue", source: store.SourceReport{Began: true},
			target: ready}, migration.Sending, "send hangs"},
		{"the transfer breaks", report{because: "source-kept-vm", target: ready,
			source: store.SourceReport{Began: true, Started: true, Error: "reset by peer"}},
			migration.Sending, "the transfer broke: reset by peer"},
		{"no data moves", report{because: "source-kept-vm", target: ready,
			source: store.SourceReport{Began: true, Started: true, GaveUp: convergence.Stuck}},
			migration.Sending, "no data moves"},
		{"the guest does not converge", report{because: "source-kept-vm", target: ready,
			source: store.SourceReport{Began: true, Started: true,
				GaveUp: convergence.Stalled}}, migration.NoFault, ""},
		{"the budget is used up", report{because: "overdue", target: ready,
			source: store.SourceReport{Began: true, Started: true, Sent: 1 << 30}},
			migration.NoFault, ""},
		{"it is canceled", report{because: "canceled"}, migration.NoFault, ""},
		{"the VM shuts down", report{because: "vm-ended", target: ready}, migration.NoFault, ""},
		{"two moves wanted the same room", report{because: "target-outdated"}, migration.NoFault, ""},
		{"a host is dead", report{because: "overdue", dead: true}, migration.NoFault, ""},
	} {
		m := &store.Migration{Spec: migration.Spec{ID: "v#1", VM: "v"},
			State: migration.State{Phase: migration.Failed, Because: test.because, Source: "n1",
				Target: "n2", Entered: time.Unix(9, 0)}, Source: test.source, Target: test.target}
		if test.dead {
			m.Evidence = []hypervisor.Evidence{{Proof: hypervisor.HostFenced, Host: "n2"}}
		}
		o, ended := m.Outcome()
		if !ended || o.Fault != test.fault || o.Why != test.why {
			t.Errorf("%s: %v, fault %d, %q", test.name, ended, o.Fault, o.Why)
		}
	}
}

// The order in which a store lists migrations does not matter.
func TestHealthGoesByWhenMigrationsEnded(t *testing.T) {
	at := func(s int64, p migration.Phase, id migration.ID) *store.Migration {
		return &store.Migration{Spec: migration.Spec{ID: id, VM: "v"},
			State: migration.State{Phase: p, Because: migration.Overdue, Source: "n1", Target: "n2",
				Entered: time.Unix(s, 0)}}
	}
	later := at(20, migration.Succeeded, "b")
	for _, all := range [][]*store.Migration{{at(10, migration.Failed, "a"), later},
		{later, at(10, migration.Failed, "a")}} {
		if _, is := store.Health(all).Receiving("n2", "n1", time.Unix(21, 0)); is {
			t.Error("n2 has succeeded since")
		}
	}
	if _, is := store.Health([]*store.Migration{at(30, migration.Failed, "a"), later}).
		Receiving("n2", "n1", time.Unix(31, 0)); !is {
		t.Error("n2 has failed since")
	}
}
