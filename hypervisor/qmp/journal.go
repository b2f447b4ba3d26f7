package qmp

// This file keeps what a hypervisor backend must remember about its VMs and
// jobs when its process dies: one private directory, one file for each.
//
//	DIR/lock               held by the process that owns the directory
//	DIR/disks/NAME/        local disks of one VM
//	DIR/vms/NAME/          sockets and logs of one VM
//	DIR/vms/NAME/domain    what is known of it: a domainRecord
//	DIR/jobs/NAME          what is known of one job: a jobRecord
//
// A file is replaced as a whole, so that it is the old or the new one whenever a
// process dies. What must survive a loss of power is also synced. The directory
// must be on storage that survives a restart of the host: to a cluster, a VM that
// its host does not know is one that never ran there.
//
// It decides nothing and removes nothing unasked, old jobs excepted.
//
// The file of a job outlives the migration's record: the record is removed by a controller, which may
// have died before a host has heard the last command. A [hypervisor.Hypervisor.Receive] that is repeated finds in
// it that the job has ended, and would open a target again without it; a Discard would say that the VM
// never ran. What bounds the files is age: Jobs, called when a process begins, removes those that no
// domain names and that were not written for 90 days, when files of seven later days are newer by as
// much: a clock that jumped removes nothing.

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/durable"
)

// forgetAfter is how long a job is kept that no domain names. A request for a job is repeated until
// its migration has ended, and a domain in the middle of one names it.
const forgetAfter = 90 * 24 * time.Hour

// A journal is an open directory. Its methods may be used at the same time for
// different VMs and jobs.
type journal struct {
	dir  string
	lock *durable.Lock
}

// A LockedError says that another process owns the directory.
type LockedError = durable.LockedError

// openJournal makes or opens dir, which must belong to us and be closed to others, and
// takes its lock. A lock that a dead process left behind is free. It answers a
// *[LockedError] when a living one holds it.
func openJournal(dir string) (*journal, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for _, d := range []string{dir, filepath.Join(dir, "vms"), filepath.Join(dir, "jobs"),
		filepath.Join(dir, "disks")} {
		if err := durable.Private(d); err != nil {
			return nil, err
		}
	}
	lock, err := durable.Own(dir)
	if err != nil {
		return nil, err
	}
	return &journal{dir, lock}, nil
}

// Close gives the directory free.
func (j *journal) Close() error { return j.lock.Close() }

// Dir returns the private directory of a VM. Its name is short, as the path of a
// socket must be, and tells VMs apart that look alike.
func (j *journal) Dir(vm hypervisor.VMID) string {
	return filepath.Join(j.dir, "vms", durable.Name(string(vm)))
}

// Disks returns the private directory of the local disks of a VM. It outlives the
// VM's record.
func (j *journal) Disks(vm hypervisor.VMID) string {
	return filepath.Join(j.dir, "disks", durable.Name(string(vm)))
}

// Put keeps d against our death, and, when synced, against a loss of power.
func (j *journal) Put(d *domainRecord, synced bool) error {
	dir := j.Dir(d.VM.ID)
	if err := errors.Join(durable.Text(string(d.VM.ID)), durable.Text(string(d.Job))); err != nil {
		return err
	}
	if err := durable.Private(dir); err != nil {
		return err
	}
	return durable.Write(filepath.Join(dir, "domain"), d, synced)
}

// Remove forgets a VM and removes all files in its directory.
func (j *journal) Remove(vm hypervisor.VMID) error { return durable.RemoveDir(j.Dir(vm)) }

// Domains reads what is kept of all VMs. The error names every file that cannot
// be read, and what is wrong with it.
func (j *journal) Domains() ([]*domainRecord, error) {
	dirs, err := os.ReadDir(filepath.Join(j.dir, "vms"))
	if err != nil {
		return nil, err
	}
	var all []*domainRecord
	var bad []error
	for _, dir := range dirs {
		d, path := new(domainRecord), filepath.Join(j.dir, "vms", dir.Name(), "domain")
		if swept, err := durable.SweptDir(filepath.Dir(path)); swept {
			bad = append(bad, err)
			continue
		}
		switch err := durable.Read(path, d); {
		case errors.Is(err, fs.ErrNotExist):
			bad = append(bad, sweep(filepath.Dir(path)))
		case err != nil:
			bad = append(bad, err)
		case durable.Name(string(d.VM.ID)) != dir.Name():
			bad = append(bad, fmt.Errorf("%s: VM.ID: it is %q, which belongs elsewhere",
				path, d.VM.ID))
		default:
			all = append(all, d)
		}
	}
	return all, errors.Join(bad...)
}

// sweep removes a directory in which a process died before it wrote a record. Where
// there is more, a record is missing, and only an operator can know why.
func sweep(dir string) error {
	_ = os.Remove(filepath.Join(dir, "domain"+durable.Unfinished)) // what is left is found below
	if err := os.Remove(dir); err != nil {
		return fmt.Errorf("%s: a VM was here whose record is missing: put back its file "+
			"domain, or, when its QEMU has ended, move the directory away", dir)
	}
	return nil
}

// PutJob keeps a job against our death, and, when synced, against a loss of power.
func (j *journal) PutJob(job *jobRecord, synced bool) error {
	err := errors.Join(durable.Text(string(job.ID)), durable.Text(string(job.VM.ID)))
	if err != nil {
		return err
	}
	return durable.Write(filepath.Join(j.dir, "jobs", durable.Name(string(job.ID))), job, synced)
}

// RemoveJob forgets a job.
func (j *journal) RemoveJob(id hypervisor.JobID) error {
	err := os.Remove(filepath.Join(j.dir, "jobs", durable.Name(string(id))))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// named returns the jobs that domains name. A record that cannot be read is told of
// by Domains.
func (j *journal) named() map[hypervisor.JobID]bool {
	names := map[hypervisor.JobID]bool{}
	records, _ := filepath.Glob(filepath.Join(j.dir, "vms", "*", "domain"))
	for _, path := range records {
		if d := new(domainRecord); durable.Read(path, d) == nil {
			names[d.Job] = true
		}
	}
	return names
}

// Jobs reads what is kept of all jobs, and forgets those that ended long ago.
// The error names every file that cannot be read, and what is wrong with it.
func (j *journal) Jobs(now time.Time) ([]*jobRecord, error) {
	files, err := os.ReadDir(filepath.Join(j.dir, "jobs"))
	if err != nil {
		return nil, err
	}
	var all []*jobRecord
	var bad []error
	named, horizon := j.named(), durable.Horizon(files, now, forgetAfter)
	for _, f := range files {
		path := filepath.Join(j.dir, "jobs", f.Name())
		if swept, err := durable.Swept(path); swept {
			bad = append(bad, err)
			continue
		}
		job := new(jobRecord)
		if err := durable.Read(path, job); err != nil {
			bad = append(bad, err)
			continue
		}
		i, err := f.Info()
		switch {
		case err != nil:
			bad = append(bad, err)
		case durable.Name(string(job.ID)) != f.Name():
			bad = append(bad, fmt.Errorf("%s: ID: it is %q, which belongs elsewhere", path, job.ID))
		case i.ModTime().Before(horizon) && !named[job.ID]:
			bad = append(bad, os.Remove(path))
		default:
			all = append(all, job)
		}
	}
	return all, errors.Join(bad...)
}
