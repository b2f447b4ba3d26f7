//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/internal/testutil"
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

// recovering breaks the connection of the post-copy of a VM, and has it recovered while the target is out of reach. It
// skips the test where libvirt recovers none.
func recovering(t *testing.T) (w *trial, vm hypervisor.VM, recovers hypervisor.Recover) {
	t.Helper()
	w = newTrial(t, nil)
	if h, err := w.Host(hosta).Host(t.Context()); err != nil || !h.Abilities.Has(hypervisor.CanRecover) {
		t.Skipf("this libvirt does not recover: %v", err)
	}
	vm = w.postCopies("job")
	w.ResetLink()
	w.CutLink()
	w.Until(hosta, "job", hypervisor.JobBroken)
	recovers = hypervisor.Recover{Address: w.receive("job", vm)}
	w.Adjust("job", recovers)
	return w, vm, recovers
}

// The connection of a post-copy breaks, and its target cannot be reached for a while. libvirt tries to recover
// it all that time, and the job is broken until it has.
func TestAPostCopyIsBrokenUntilItHasRecovered(t *testing.T) {
	w, vm, recovers := recovering(t)
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

// libvirt is asked again until it recovers a post-copy, and no longer than there is one: the next one of the same VM
// would be connected to the target of this one.
func TestAPostCopyIsRecoveredWhileItCanBe(t *testing.T) {
	refused := errors.New("refused")
	for name, test := range map[string]struct {
		refuses, until int // how often libvirt refuses, and how often there is still a post-copy after that
		asked          int
		err            error
	}{
		"at once":                       {0, 1000, 1, nil},
		"when both sides have noticed":  {9, 1000, 10, nil},
		"until the job has ended":       {1000, 3, 4, refused},
		"until it has been long enough": {1000, 1000, 402, refused},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				err := libvirt.Reconnect(func() error {
					if asked++; asked > test.refuses {
						return nil
					}
					return refused
				}, func() bool { return asked <= test.until })
				if asked != test.asked || !errors.Is(err, test.err) {
					t.Errorf("it was asked %d times, want %d: %v", asked, test.asked, err)
				}
			})
		})
	}
}

// A VM is destroyed while libvirt tries to recover its post-copy. libvirt 9.0 then lets nothing be done with the domain until it
// is restarted. The error says so, and after that the VM can be removed.
func TestAVMIsDestroyedWhileItsPostCopyIsRecovered(t *testing.T) {
	testutil.SampleLong(t, 3)
	w, vm, _ := recovering(t)
	time.Sleep(time.Second) // libvirt waits for the other side
	for _, n := range []name{hosta, hostb} {
		w.virsh(n, "destroy", domainOf(vm.ID))
		w.Eventually("it has ended on "+string(n), func() bool {
			s := w.Domain(n, vm.ID).State
			return s == hypervisor.Crashed || s == hypervisor.Shutoff
		})
	}
	w.MendLink()
	release := moved("job", vm.ID, hostb)
	if err := w.Host(hosta).Do(t.Context(), vm.ID, release); errors.Is(err, hypervisor.Unknown) {
		if !strings.Contains(err.Error(), "restart libvirtd") {
			t.Errorf("it is not said what to do: %v", err)
		}
		w.KillDaemon(string(hosta))
		w.StartDaemon(string(hosta))
	} else if err != nil {
		t.Fatal(err)
	}
	w.Eventually("the source is removed", func() bool { return w.Host(hosta).Do(t.Context(), vm.ID, release) == nil })
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
