//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/durable"
)

// fullDisk keeps a host from writing what it knows of a VM, as a full disk does, until the
// function it returns is called.
func (w *trial) fullDisk(n name, id vmid) (end func()) {
	w.T.Helper()
	file := durable.Name(string(id)) + durable.Unfinished
	path := filepath.Join(w.config(n).Dir, "vms", file)
	must(w.T, os.Mkdir(path, 0o700))
	return func() { must(w.T, os.Remove(path)) }
}

// A migration that could not be noted can be asked for again, or is not known.
func TestAMigrationThatWasNotNotedIsBegunAgain(t *testing.T) {
	w := newTrial(t, nil)
	vm := w.vm(traveller, calm)
	w.start(hosta, vm)
	address := w.receive("job", vm)
	freed := w.fullDisk(hosta, vm.ID)
	backendtest.Refused(t, w.migrate("job", vm.ID, address, transferOptions{}),
		hypervisor.Transient)
	freed()
	err := w.hosts[hosta].Adjust(t.Context(), "job", hypervisor.Cancel{})
	backendtest.Refused(t, err, hypervisor.NotFound)
	must(t, w.migrate("job", vm.ID, address, transferOptions{}))
	w.Until(hosta, "job", hypervisor.JobSucceeded)
}

// A target of which only the job could be noted is opened when that is asked again.
func TestATargetThatWasNotNotedIsOpenedAgain(t *testing.T) {
	w := newTrial(t, nil)
	vm := w.vm(traveller, calm)
	w.start(hosta, vm)
	freed := w.fullDisk(hostb, vm.ID)
	_, err := w.Host(hostb).Receive(t.Context(), hypervisor.Incoming{Job: "job", VM: vm})
	backendtest.Refused(t, err, hypervisor.Transient)
	freed()
	w.begin("job", vm.ID, transferOptions{})
	w.Until(hosta, "job", hypervisor.JobSucceeded)
	w.Eventually("it has arrived", func() bool {
		return w.Progress(hostb, "job").Status == hypervisor.JobSucceeded
	})
}

// dies closes hosta as if its process had died when it had noted something, and before it
// told libvirt, while it sends a VM that does not converge.
func (w *trial) dies(j jobID, vm hypervisor.VM, postCopy bool, noting func(*libvirt.Job)) {
	w.T.Helper()
	w.start(hosta, vm)
	o := narrow
	o.PostCopy, o.Bandwidth = postCopy, slow
	w.moving(j, vm.ID, o)
	must(w.T, w.hosts[hosta].Close())
	delete(w.hosts, hosta)
	path := filepath.Join(w.config(hosta).Dir, "jobs", durable.Name(string(j)))
	var noted libvirt.Job
	must(w.T, durable.Read(path, &noted))
	noting(&noted)
	must(w.T, durable.Write(path, &noted, true))
	_, err := w.open(hosta)
	must(w.T, err)
}

// Post-copy that was noted is begun. Else the VM stayed where it is for ever.
func TestPostCopyThatWasOnlyNotedIsBegun(t *testing.T) {
	w := newTrial(t, nil)
	vm := w.vm(traveller, swift)
	w.dies("job", vm, true, func(j *libvirt.Job) { j.PostCopied = true })
	w.Becomes(hostb, vm.ID, hypervisor.Running)
	w.Uncap("job")
	if p := w.arrives("job", vm.ID); p.Mode != hypervisor.PostCopy {
		t.Errorf("it went by %v", p.Mode)
	}
}

// A guest of which only is noted that it is to be paused is not said to be, and is paused
// when that is asked for again.
func TestAPauseThatWasOnlyNotedIsAskedForAgain(t *testing.T) {
	w := newTrial(t, nil)
	vm := w.vm(traveller, swift)
	w.dies("job", vm, false, func(j *libvirt.Job) { j.GuestPaused = true })
	if p := w.Progress(hosta, "job"); p.Mode != hypervisor.PreCopy {
		t.Errorf("while its guest runs it goes by %v", p.Mode)
	}
	w.Adjust("job", hypervisor.PauseGuest{})
	if p := w.Progress(hosta, "job"); p.Mode != hypervisor.PausedCopy {
		t.Errorf("with its guest paused it goes by %v", p.Mode)
	}
	w.Uncap("job")
	w.arrives("job", vm.ID)
}
