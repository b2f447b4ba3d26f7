//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Many targets are opened at once, as when a host is drained, whose files are in one
// directory: each is found.
func TestManyTargetsAreOpenedAtOnce(t *testing.T) {
	w := newTrial(t, nil)
	var all sync.WaitGroup
	for i := range 16 {
		vm := w.vm(vmid(fmt.Sprintf("suite/crowd-%d", i)), calm)
		all.Go(func() {
			in := hypervisor.Incoming{Job: jobID(vm.ID), VM: vm}
			if _, err := w.Host(hostb).Receive(t.Context(), in); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if pools := w.virsh(hostb, "pool-list", "--all", "--name"); pools != "" {
		t.Errorf("pools are left: %q", pools)
	}
}

// What a process left that died while it looked for a file is not in the way.
func TestAProbeThatWasLeftIsNotInTheWay(t *testing.T) {
	w := newTrial(t, nil)
	for i := range 3 {
		w.virsh(hostb, "pool-create-as", fmt.Sprintf("godwit-probe-%d", i), "dir", "--target",
			[]string{"/tmp", "/usr", "/etc"}[i])
	}
	w.receive("job", w.vm("suite/expected", calm))
}
