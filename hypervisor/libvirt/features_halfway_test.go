//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/journal"
	"github.com/godwit-vm/godwit/internal/durable"
)

// fullDisk keeps a host from writing what it knows of a VM, as a full disk does, until the
// function it returns is called.
func (w *trial) fullDisk(n name, id vmid) (end func()) {
	w.t.Helper()
	file := durable.Name(string(id)) + durable.Unfinished
	path := filepath.Join(w.config(n).Dir, "vms", file)
	must(w.t, os.Mkdir(path, 0o700))
	return func() { must(w.t, os.Remove(path)) }
}

// A migration that could not be noted can be asked for again, or is not known.
func TestAMigrationThatWasNotNotedIsBegunAgain(t *testing.T) {
	w := newTrial(t, nil)
	vm := w.vm(traveller, calm)
	w.start(hosta, vm)
	address := w.receive("job", vm)
	freed := w.fullDisk(hosta, vm.ID)
	wantRefused(t, w.migrate("job", vm.ID, address, transferOptions{}), hypervisor.Transient)
	freed()
	err := w.hosts[hosta].Adjust(t.Context(), "job", hypervisor.Cancel{})
	wantRefused(t, err, hypervisor.NotFound)
	must(t, w.migrate("job", vm.ID, address, transferOptions{}))
	w.until("job", hypervisor.JobSucceeded)
}

// A target of which only the job could be noted is opened when that is asked again.
func TestATargetThatWasNotNotedIsOpenedAgain(t *testing.T) {
	w := newTrial(t, nil)
	vm := w.vm(traveller, calm)
	w.start(hosta, vm)
	freed := w.fullDisk(hostb, vm.ID)
	_, err := w.host(hostb).Receive(t.Context(), hypervisor.Incoming{Job: "job", VM: vm})
	wantRefused(t, err, hypervisor.Transient)
	freed()
	w.begin("job", vm.ID, transferOptions{})
	w.until("job", hypervisor.JobSucceeded)
	w.eventually("it has arrived", func() bool {
		return w.progress(hostb, "job").Status == hypervisor.JobSucceeded
	})
}

// Whoever asked for post-copy died when it was noted, and before libvirt was told: whoever
// comes after him tells it. Else the VM stayed where it is for ever, because it would not
// converge.
func TestPostCopyThatWasOnlyNotedIsBegun(t *testing.T) {
	w := newTrial(t, nil)
	vm := w.vm(traveller, swift)
	w.start(hosta, vm)
	o := narrow
	o.PostCopy, o.Bandwidth = true, slow
	w.moving("job", vm.ID, o)
	must(t, w.hosts[hosta].Close())
	delete(w.hosts, hosta)
	path := filepath.Join(w.config(hosta).Dir, "jobs", durable.Name("job"))
	var noted journal.Job
	must(t, durable.Read(path, &noted))
	noted.PostCopied = true
	must(t, durable.Write(path, &noted, true))
	_, err := w.open(hosta)
	must(t, err)
	w.becomes(hostb, vm.ID, hypervisor.Running)
	w.adjust("job", hypervisor.SetBandwidth{})
	if p := w.arrives("job", vm.ID); p.Mode != hypervisor.PostCopy {
		t.Errorf("it went by %v", p.Mode)
	}
}
