//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// postCopies starts a VM that runs at hostb and fetches from hosta what it lacks, which takes a while.
func (w *trial) postCopies(j jobID) hypervisor.VM {
	w.T.Helper()
	large := swift
	large.Fill = 32 << 20
	vm := w.vm(traveller, large)
	w.start(hosta, vm)
	o := narrow
	o.PostCopy, o.Bandwidth = true, slow
	w.moving(j, vm.ID, o)
	w.Adjust(j, hypervisor.StartPostCopy{})
	w.Becomes(hostb, vm.ID, hypervisor.Running)
	return vm
}

// The connection of a post-copy breaks, and its target cannot be reached for a while. libvirt tries to recover
// it all that time, and the job is broken until it has.
func TestAPostCopyIsBrokenUntilItHasRecovered(t *testing.T) {
	w := newTrial(t, nil)
	if h, err := w.Host(hosta).Host(t.Context()); err != nil || !h.Abilities.Has(hypervisor.CanRecover) {
		t.Skipf("this libvirt does not recover: %v", err)
	}
	vm := w.postCopies("job")
	w.ResetLink()
	w.CutLink()
	w.Until(hosta, "job", hypervisor.JobBroken)
	recovers := hypervisor.Recover{Address: w.receive("job", vm)}
	w.Adjust("job", recovers)
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if p, d := w.Progress(hosta, "job"), w.Domain(hosta, vm.ID); p.Status != hypervisor.JobBroken || !d.Unresolved {
			t.Fatalf("while its target cannot be reached the job is %v, the VM %v, and unresolved: %v", p.Status, d.State,
				d.Unresolved)
		}
	}
	w.Adjust("job", recovers) // again: libvirt is at it
	w.MendLink()
	w.Eventually("it goes on", func() bool { return w.Progress(hosta, "job").Status != hypervisor.JobBroken })
	if d := w.Domain(hosta, vm.ID); d.Unresolved {
		t.Errorf("it goes on, and the VM is %v and unresolved", d.State)
	}
	w.arrives("job", vm.ID)
	w.ends(hostb, vm.ID)
}

// The QEMU of a source dies while its guest runs at the target and lacks memory: it is not said that the
// source has kept the VM.
func TestASourceThatDiesInPostCopyHasNotKeptTheVM(t *testing.T) {
	w := newTrial(t, nil)
	vm := w.postCopies("job")
	if err := w.signal(hosta, vm.ID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.Until(hosta, "job", hypervisor.JobBroken)
	w.Eventually("it is unresolved", func() bool { return w.Domain(hosta, vm.ID).Unresolved })
}
