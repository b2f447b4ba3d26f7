//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"os"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/domxml"
)

// stub describes the least of a domain.
func (w *trial) stub(name, more string) string {
	return "<domain type='" + w.accel + "'><name>" + name + "</name>" + more +
		"<memory unit='MiB'>1</memory><os><type arch='x86_64'>hvm</type></os></domain>"
}

// What takes the name or the identity of a VM at its target after Receive is found
// before a byte moves.
func TestATargetThatHasAnotherDomainIsRefused(t *testing.T) {
	const other = "11111111-2222-4333-8444-555555555555"
	for _, row := range []struct{ what, name, uuid string }{
		{"the name is taken by another", domainOf(traveller), other},
		{"the identity is taken by another", "another", domxml.UUIDOf(traveller)},
		{"the same is there", domainOf(traveller), domxml.UUIDOf(traveller)},
	} {
		t.Run(row.what, func(t *testing.T) {
			w := newTrial(t, nil)
			vm := w.vm(traveller, calm)
			w.start(hosta, vm)
			address := w.receive("job", vm)
			w.virshFile(hostb, "define", w.stub(row.name, "<uuid>"+row.uuid+"</uuid>"))
			err := w.migrate("job", vm.ID, address, transferOptions{})
			wantReasons(t, err, hypervisor.Conflict, "name and uuid")
			if p := w.Progress(hosta, "job"); p.Status != hypervisor.JobNone {
				t.Errorf("the job was begun: %v", p.Status)
			}
			w.sound(hosta, vm.ID)
			if got := w.virsh(hostb, "domuuid", row.name); got != row.uuid {
				t.Errorf("the target's own domain is %s now", got)
			}
			w.Do(hosta, vm.ID, hypervisor.Kill{}, hypervisor.Forget{})
		})
	}
}

// secretDisk is a disk that the domain cannot have without a secret of its host's.
const secretDisk = `<disk type='file' device='disk'><driver name='qemu' type='raw'/>
  <source file='/var/lib/libvirt/secret.raw'><encryption format='luks'>
    <secret type='passphrase' uuid='99999999-2222-4333-8444-555555555555'/></encryption></source>
  <target dev='vda' bus='virtio'/></disk>`

// share is a directory of the host that the guest has.
const share = `<filesystem type='mount' accessmode='passthrough'><source dir='/var/lib/libvirt'/>
  <target dir='share'/></filesystem>`

// A domain that another client has made is moved only if nothing of it stays behind:
// all that does is said.
func TestWhatCannotMoveIsSaidBeforehand(t *testing.T) {
	w := newTrial(t, nil)
	for _, n := range []name{hosta, hostb} {
		file := w.Outside(string(n), "/var/lib/libvirt/secret.raw")
		backendtest.Image(t, "create", "-f", "raw", file, "1M")
		t.Cleanup(func() { os.Remove(file) })
	}
	id := vmid("default/tied")
	w.virshFile(hosta, "define", w.foreignXML("tied", secretDisk))
	address := w.receive("rests", w.Domain(hosta, id).VM)
	err := w.migrate("rests", id, address, transferOptions{})
	wantReasons(t, err, hypervisor.Conflict, "secret")
	w.Do(hostb, id, hypervisor.Discard{Job: "rests"})
	w.Do(hosta, id, hypervisor.Forget{})

	w.virshFile(hosta, "define", w.foreignXML("tied", share))
	vm := w.Domain(hosta, id).VM
	w.start(hosta, vm)
	address = w.receive("runs", w.Domain(hosta, id).VM)
	w.virshFile(hostb, "define", w.stub("tied", ""))
	err = w.migrate("runs", id, address, transferOptions{})
	wantReasons(t, err, hypervisor.Conflict, "name and uuid",
		"file system at /domain/devices/filesystem")
	w.sound(hosta, id)
}
