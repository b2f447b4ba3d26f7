package life_test

import (
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/journal"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/life"
)

// A guest that boots does not see its power button: it is pressed again, until the guest's time is
// over.
func TestAGuestThatRunsOnIsAskedToShutDownAgain(t *testing.T) {
	const grace = time.Minute
	for _, row := range []struct {
		name  string
		doing hypervisor.DomainState
		asked time.Duration // so long ago
		look  life.Look
		want  life.Step
	}{
		{"it was asked just now", hypervisor.Stopping, time.Second,
			life.Look{Run: life.Runs}, life.Rest},
		{"it was asked long ago", hypervisor.Stopping, life.PressAgain,
			life.Look{Run: life.Runs}, life.Press},
		{"it was asked to reboot long ago", hypervisor.Rebooting, life.PressAgain,
			life.Look{Run: life.Runs}, life.Press},
		{"it has rebooted", hypervisor.Rebooting, life.PressAgain,
			life.Look{Run: life.Runs, Rebooted: true}, life.Settled},
		{"it is shutting down", hypervisor.Stopping, life.PressAgain,
			life.Look{Run: life.ShuttingDown}, life.Rest},
		{"it has shut down", hypervisor.Stopping, life.PressAgain,
			life.Look{Run: life.ShutoffClean}, life.Bury},
		{"its time is over", hypervisor.Stopping, 2 * grace,
			life.Look{Run: life.Runs}, life.Force},
		{"it stands, and sees no button", hypervisor.Stopping, life.PressAgain,
			life.Look{Run: life.PausedUser}, life.Rest},
		{"it was not asked", hypervisor.Absent, life.PressAgain,
			life.Look{Run: life.Runs}, life.Rest},
	} {
		t.Run(row.name, func(t *testing.T) {
			asked := now.Add(-row.asked)
			d := &journal.Domain{Ran: true, Doing: row.doing, Asked: asked}
			if row.doing != hypervisor.Absent {
				d.By = asked.Add(grace)
			}
			if got := life.Due(d, nil, row.look, now); got != row.want {
				t.Errorf("due is %v, want %v", got, row.want)
			}
			d.Asked = time.Time{} // a record of the version before
			if got := life.Due(d, nil, row.look, now); got == life.Press {
				t.Error("it is asked again, and it is not known when it was asked")
			}
		})
	}
}
