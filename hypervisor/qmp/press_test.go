package qmp_test

import (
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// A guest that boots does not see its power button: it is pressed again, until the guest's time is
// over.
func TestAGuestThatRunsOnIsAskedToShutDownAgain(t *testing.T) {
	const grace = time.Minute
	for _, row := range []struct {
		name  string
		doing hypervisor.DomainState
		asked time.Duration // so long ago
		run   qemu.RunState
		want  qmp.NextStep
	}{
		{"it was asked just now", hypervisor.Stopping, time.Second, qemu.Running, qmp.NoStep},
		{"it was asked long ago", hypervisor.Stopping, qmp.PressAgain, qemu.Running, qmp.Press},
		{"it was asked to reboot long ago", hypervisor.Rebooting, qmp.PressAgain, qemu.Running,
			qmp.Press},
		{"it has shut down", hypervisor.Stopping, qmp.PressAgain, qemu.Shutdown, qmp.Quit},
		{"its time is over", hypervisor.Stopping, 2 * grace, qemu.Running, qmp.Quit},
		{"it stands, and sees no button", hypervisor.Stopping, qmp.PressAgain, qemu.Paused,
			qmp.NoStep},
		{"it was not asked", hypervisor.Absent, qmp.PressAgain, qemu.Running, qmp.NoStep},
	} {
		t.Run(row.name, func(t *testing.T) {
			asked := now.Add(-row.asked)
			d := &qmp.DomainRecord{Domain: backend.Domain{Ran: true, Doing: row.doing,
				Asked: asked}, Own: true}
			if row.doing != hypervisor.Absent {
				d.By = asked.Add(grace)
			}
			l := qmp.Look{Alive: true, Run: row.run}
			if got := qmp.Due(d, nil, l, now); got != row.want {
				t.Errorf("due is %v, want %v", got, row.want)
			}
			d.Asked = time.Time{} // a record of the version before
			if got := qmp.Due(d, nil, l, now); got == qmp.Press {
				t.Error("it is asked again, and it is not known when it was asked")
			}
		})
	}
}
