//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"sync"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backendtest"
)

func TestAVMAtRestMovesColdAndStartsThere(t *testing.T) {
	w := newTrial(t, nil)
	vm := w.vm(traveller, calm)
	w.start(hosta, vm)
	w.virsh(hosta, "autostart", domainOf(vm.ID))
	w.Do(hosta, vm.ID, hypervisor.Kill{})
	w.begin("job", vm.ID, transferOptions{})
	w.Until(hosta, "job", hypervisor.JobSucceeded)
	w.Becomes(hostb, vm.ID, hypervisor.Shutoff)
	for _, n := range []name{hosta, hostb} {
		if a := w.autostarts(n, vm.ID); a != "disable" {
			t.Errorf("it would start with %s: %s", n, a)
		}
	}
	w.Refuses(hosta, vm.ID, hypervisor.Start{VM: vm}, hypervisor.Conflict)
	w.Do(hosta, vm.ID, moved("job", vm.ID, hostb))
	w.start(hostb, vm)
	w.sound(hostb, vm.ID)
	w.ends(hostb, vm.ID)
}

// libvirt moves no image of a VM at rest: that is said before anything moves.
func TestLocalDisksKeepAVMAtRestWhereItIs(t *testing.T) {
	w := newTrial(t, nil)
	vm := backendtest.WithDisks(w.vm(traveller, calm), twoDisks...)
	contents := w.furnish(hosta, vm)
	wantReasons(t, w.send("job", vm.ID, transferOptions{}), hypervisor.Conflict,
		"disk root", "disk data")
	if p := w.Progress(hosta, "job"); p.Status != hypervisor.JobNone {
		t.Errorf("the job was begun: %v", p.Status)
	}
	if got := w.images(hostb); len(got) > 0 || w.virsh(hostb, "list", "--all", "--name") != "" {
		t.Errorf("something has moved: %v", got)
	}
	w.Do(hostb, vm.ID, hypervisor.Discard{Job: "job"})
	w.same(hosta, vm.ID, contents)
	w.start(hosta, vm)
	w.begin("live", vm.ID, transferOptions{})
	w.arrives("live", vm.ID)
}

// freeze makes a directory of a host read-only until thaw is called. It skips the test
// where that does not work.
func (w *trial) freeze(n name, dir string) (thaw func()) {
	w.T.Helper()
	for _, args := range [][]string{{"--bind", dir, dir}, {"-o", "remount,ro,bind", dir}} {
		if out, err := w.Run(string(n), append([]string{"mount"}, args...)...); err != nil {
			w.T.Skipf("a directory cannot be made read-only: %v %s", err, out)
		}
	}
	thaw = sync.OnceFunc(func() { _, _ = w.Run(string(n), "umount", "-l", dir) })
	w.T.Cleanup(thaw)
	return thaw
}

// All of a Resize takes effect, or nothing: what libvirt refuses after the disks have
// grown shrinks them again.
func TestAResizeThatFailsChangesNothing(t *testing.T) {
	w := newTrial(t, nil)
	vm := backendtest.WithDisks(w.vm(traveller, calm), twoDisks...)
	contents := w.furnish(hosta, vm)
	before := w.virsh(hosta, "dumpxml", domainOf(vm.ID))

	bigger := backendtest.WithDisks(vm, twoDisks[0], twoDisks[1])
	bigger.Hardware.Disks[0].Size, bigger.Hardware.Disks[1].Size = 8*mib, 16*mib
	bigger.CPUs, bigger.Memory = 2, vm.Memory+4*mib
	thaw := w.freeze(hosta, "/etc/libvirt/qemu")
	if err := w.Host(hosta).Do(t.Context(), vm.ID, hypervisor.Resize{VM: bigger}); err == nil {
		t.Error("libvirt keeps a definition that it cannot write")
	}
	thaw()
	for _, d := range twoDisks {
		if i := w.info(w.disk(hosta, vm.ID, d.Name)); i.Size != d.Size {
			t.Errorf("disk %s has %v, and had %v", d.Name, i.Size, d.Size)
		}
	}
	w.same(hosta, vm.ID, contents)
	if after := w.virsh(hosta, "dumpxml", domainOf(vm.ID)); after != before {
		t.Errorf("the definition was\n%s\nand is\n%s", before, after)
	}
	if d := w.Domain(hosta, vm.ID); !d.VM.Equal(vm) {
		t.Errorf("it is %+v %+v", d.VM, d.VM.Hardware)
	}

	w.Do(hosta, vm.ID, hypervisor.Resize{VM: bigger}, hypervisor.Resize{VM: bigger})
	for _, d := range bigger.Hardware.Disks {
		if i := w.info(w.disk(hosta, vm.ID, d.Name)); i.Size != d.Size {
			t.Errorf("disk %s has %v, want %v", d.Name, i.Size, d.Size)
		}
	}
	w.start(hosta, bigger)
	w.sound(hosta, vm.ID)
	if d := w.Domain(hosta, vm.ID); !d.VM.Equal(bigger) {
		t.Errorf("it is %+v %+v", d.VM, d.VM.Hardware)
	}
	w.ends(hosta, vm.ID)
}
