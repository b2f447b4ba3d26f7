package libvirt

import "github.com/godwit-vm/godwit/internal/backend"

// A journal keeps what libvirt does not keep of VMs and migrations.
type journal = backend.Journal[*domainRecord, *jobRecord]

// openJournal makes or opens dir and takes its lock, as [backend.OpenJournal] does.
func openJournal(dir string) (*journal, error) {
	return backend.OpenJournal(dir, backend.Layout{},
		func() *domainRecord { return new(domainRecord) },
		func() *jobRecord { return new(jobRecord) })
}
