package libvirt_test

import (
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/internal/backend"
)

// A guest that boots does not see its power button: it is pressed again, until the guest's time is
// over.
func TestAGuestThatRunsOnIsAskedToShutDownAgain(t *testing.T) {
	const grace = time.Minute
	for _, row := range []struct {
		name  string
		doing hypervisor.DomainState
		asked time.Duration // so long ago
		look  libvirt.Look
		want  libvirt.NextStep
	}{
		{"it was asked just now", hypervisor.Stopping, time.Second,
			libvirt.Look{Run: libvirt.Runs}, libvirt.NoStep},
		{"it was asked long ago", hypervisor.Stopping, libvirt.PressAgain,
			libvirt.Look{Run: libvirt.Runs}, libvirt.Press},
		{"it was asked to reboot long ago", hypervisor.Rebooting, libvirt.PressAgain,
			libvirt.Look{Run: libvirt.Runs}, libvirt.Press},
		{"it has rebooted", hypervisor.Rebooting, libvirt.PressAgain,
			libvirt.Look{Run: libvirt.Runs, Rebooted: true}, libvirt.Settled},
		{"it is shutting down", hypervisor.Stopping, libvirt.PressAgain,
			libvirt.Look{Run: libvirt.ShuttingDown}, libvirt.NoStep},
		{"it has shut down", hypervisor.Stopping, libvirt.PressAgain,
			libvirt.Look{Run: libvirt.ShutoffClean}, libvirt.Reap},
		{"its time is over", hypervisor.Stopping, 2 * grace,
			libvirt.Look{Run: libvirt.Runs}, libvirt.Force},
		{"it stands, and sees no button", hypervisor.Stopping, libvirt.PressAgain,
			libvirt.Look{Run: libvirt.PausedUser}, libvirt.NoStep},
		{"it was not asked", hypervisor.Absent, libvirt.PressAgain,
			libvirt.Look{Run: libvirt.Runs}, libvirt.NoStep},
	} {
		t.Run(row.name, func(t *testing.T) {
			asked := now.Add(-row.asked)
			d := &libvirt.DomainRecord{Domain: backend.Domain{Ran: true, Doing: row.doing,
				Asked: asked}}
			if row.doing != hypervisor.Absent {
				d.By = asked.Add(grace)
			}
			if got := libvirt.Due(d, nil, row.look, now); got != row.want {
				t.Errorf("due is %v, want %v", got, row.want)
			}
			d.Asked = time.Time{} // a record of the version before
			if got := libvirt.Due(d, nil, row.look, now); got == libvirt.Press {
				t.Error("it is asked again, and it is not known when it was asked")
			}
		})
	}
}
