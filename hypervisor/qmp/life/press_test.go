package life_test

import (
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp/journal"
	"github.com/godwit-vm/godwit/hypervisor/qmp/life"
	"github.com/godwit-vm/godwit/hypervisor/qmp/qapi"
)

// A guest that boots does not see its power button: it is pressed again, until the guest's time is
// over.
func TestAGuestThatRunsOnIsAskedToShutDownAgain(t *testing.T) {
	const grace = time.Minute
	for _, row := range []struct {
		name  string
		doing hypervisor.DomainState
		asked time.Duration // so long ago
		run   qapi.RunState
		want  life.Step
	}{
		{"it was asked just now", hypervisor.Stopping, time.Second, qapi.Running, life.Rest},
		{"it was asked long ago", hypervisor.Stopping, life.PressAgain, qapi.Running, life.Press},
		{"it was asked to reboot long ago", hypervisor.Rebooting, life.PressAgain, qapi.Running,
			life.Press},
		{"it has shut down", hypervisor.Stopping, life.PressAgain, qapi.Shutdown, life.Quit},
		{"its time is over", hypervisor.Stopping, 2 * grace, qapi.Running, life.Quit},
		{"it stands, and sees no button", hypervisor.Stopping, life.PressAgain, qapi.Paused,
			life.Rest},
		{"it was not asked", hypervisor.Absent, life.PressAgain, qapi.Running, life.Rest},
	} {
		t.Run(row.name, func(t *testing.T) {
			asked := now.Add(-row.asked)
			d := &journal.Domain{Own: true, Ran: true, Doing: row.doing, Asked: asked}
			if row.doing != hypervisor.Absent {
				d.By = asked.Add(grace)
			}
			l := life.Look{Alive: true, Run: row.run}
			if got := life.Due(d, nil, l, now); got != row.want {
				t.Errorf("due is %v, want %v", got, row.want)
			}
			d.Asked = time.Time{} // a record of the version before
			if got := life.Due(d, nil, l, now); got == life.Press {
				t.Error("it is asked again, and nobody knows when it was asked")
			}
		})
	}
}
