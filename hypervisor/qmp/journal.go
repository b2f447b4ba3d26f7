package qmp

import (
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// A journal is the private directory of a host. Besides its records there are the sockets and logs of
// a VM in vms/NAME, and its local disks in disks/NAME.
type journal struct {
	*backend.Journal[*domainRecord, *jobRecord]
}

// openJournal makes or opens dir and takes its lock, as [backend.OpenJournal] does.
func openJournal(dir string) (*journal, error) {
	j, err := backend.OpenJournal(dir, backend.Layout{Own: "QEMU", More: []string{"disks"}},
		func() *domainRecord { return new(domainRecord) },
		func() *jobRecord { return new(jobRecord) })
	return &journal{j}, err
}

// Dir returns the private directory of a VM.
func (j *journal) Dir(vm hypervisor.VMID) string { return j.Path("vms", string(vm)) }

// Disks returns the private directory of the local disks of a VM. It outlives the
// VM's record.
func (j *journal) Disks(vm hypervisor.VMID) string { return j.Path("disks", string(vm)) }
