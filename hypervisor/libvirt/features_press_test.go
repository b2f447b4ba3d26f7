//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// TestAGuestThatIgnoresItsButtonIsAskedAgain: QEMU tells of each time that the button is pressed.
// The first may be told late; two are told of after the VM was asked to stop only if it is pressed
// again. It is not forced before its grace ends.
func TestAGuestThatIgnoresItsButtonIsAskedAgain(t *testing.T) {
	w := newTrial(t, nil)
	stubborn := calm
	stubborn.Stubborn = true
	vm := w.vm("suite/stubborn", stubborn)
	w.start(hosta, vm)
	w.Do(hosta, vm.ID, hypervisor.Reboot{})
	backendtest.Monotonic(t, &libvirt.RecordOf(w.hosts[hosta], vm.ID).Domain)
	w.Do(hosta, vm.ID, hypervisor.Stop{Grace: time.Hour})
	backendtest.Monotonic(t, &libvirt.RecordOf(w.hosts[hosta], vm.ID).Domain)
	presses := 0
	testutil.Eventually(t, "the button is pressed again", func() error {
		out, err := w.Virsh(testutil.Context(t, testutil.DefaultLimit), string(hosta), "qemu-monitor-event",
			domainOf(vm.ID), "--event", "POWERDOWN", "--timeout", "20")
		if presses += strings.Count(out, "event POWERDOWN"); presses < 2 {
			return fmt.Errorf("%d times so far: %q, %v", presses, out, err)
		}
		return nil
	})
	if s := w.Domain(hosta, vm.ID).State; s != hypervisor.Stopping {
		t.Errorf("it is %v, want %v", s, hypervisor.Stopping)
	}
	w.Do(hosta, vm.ID, hypervisor.Kill{})
	w.Becomes(hosta, vm.ID, hypervisor.Shutoff)
	w.Do(hosta, vm.ID, hypervisor.Forget{})
}
