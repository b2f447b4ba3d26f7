//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
)

// The lab of the conformance suite finds a guest that runs twice, and none that does not.
func TestTheLabNoticesAGuestThatRunsTwice(t *testing.T) {
	w := newTrial(t, nil)
	vm := w.vm("suite/traveller", calm)
	w.start(hosta, vm)
	w.sound(hosta, vm.ID)
	w.do(hosta, vm.ID, hypervisor.Kill{})
	w.start(hostb, vm)
	w.sound(hostb, vm.ID)
	if err := w.twice(vm.ID); err != nil {
		t.Errorf("it was started elsewhere after it had died: %v", err)
	}
	w.start(hosta, vm)
	w.eventually("it is noticed that it runs on both hosts", func() bool {
		err := w.twice(vm.ID)
		return err != nil && strings.Contains(err.Error(), "two run")
	})
}
