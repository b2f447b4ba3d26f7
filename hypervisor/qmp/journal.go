package qmp

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

// A Journal is an open directory. Its methods may be used at the same time for
// different VMs and jobs.
type Journal struct {
	dir  string
	lock *durable.Lock
}

// A LockedError says that another process owns the directory.
type LockedError = durable.LockedError

// Open makes or opens dir, which must belong to us and be closed to others, and
// takes its lock. A lock that a dead process left behind is free. It answers a
// *[LockedError] when a living one holds it.
func Open(dir string) (*Journal, error) {
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
	return &Journal{dir, lock}, nil
}

// Close gives the directory free.
func (j *Journal) Close() error { return j.lock.Close() }

// Dir returns the private directory of a VM. Its name is short, as the path of a
// socket must be, and tells VMs apart that look alike.
func (j *Journal) Dir(vm hypervisor.VMID) string {
	return filepath.Join(j.dir, "vms", durable.Name(string(vm)))
}

// Disks returns the private directory of the local disks of a VM. It outlives the
// VM's record.
func (j *Journal) Disks(vm hypervisor.VMID) string {
	return filepath.Join(j.dir, "disks", durable.Name(string(vm)))
}

// Put keeps d against our death, and, when synced, against a loss of power.
func (j *Journal) Put(d *DomainRecord, synced bool) error {
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
func (j *Journal) Remove(vm hypervisor.VMID) error { return durable.RemoveDir(j.Dir(vm)) }

// Domains reads what is kept of all VMs. The error names every file that cannot
// be read, and what is wrong with it.
func (j *Journal) Domains() ([]*DomainRecord, error) {
	dirs, err := os.ReadDir(filepath.Join(j.dir, "vms"))
	if err != nil {
		return nil, err
	}
	var all []*DomainRecord
	var bad []error
	for _, dir := range dirs {
		d, path := new(DomainRecord), filepath.Join(j.dir, "vms", dir.Name(), "domain")
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
func (j *Journal) PutJob(job *Job, synced bool) error {
	err := errors.Join(durable.Text(string(job.ID)), durable.Text(string(job.VM.ID)))
	if err != nil {
		return err
	}
	return durable.Write(filepath.Join(j.dir, "jobs", durable.Name(string(job.ID))), job, synced)
}

// RemoveJob forgets a job.
func (j *Journal) RemoveJob(id hypervisor.JobID) error {
	err := os.Remove(filepath.Join(j.dir, "jobs", durable.Name(string(id))))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// named returns the jobs that domains name. A record that cannot be read is told of
// by Domains.
func (j *Journal) named() map[hypervisor.JobID]bool {
	names := map[hypervisor.JobID]bool{}
	records, _ := filepath.Glob(filepath.Join(j.dir, "vms", "*", "domain"))
	for _, path := range records {
		if d := new(DomainRecord); durable.Read(path, d) == nil {
			names[d.Job] = true
		}
	}
	return names
}

// Jobs reads what is kept of all jobs, and forgets those that ended long ago.
// The error names every file that cannot be read, and what is wrong with it.
func (j *Journal) Jobs(now time.Time) ([]*Job, error) {
	files, err := os.ReadDir(filepath.Join(j.dir, "jobs"))
	if err != nil {
		return nil, err
	}
	var all []*Job
	var bad []error
	named, horizon := j.named(), durable.Horizon(files, now, forgetAfter)
	for _, f := range files {
		path := filepath.Join(j.dir, "jobs", f.Name())
		if swept, err := durable.Swept(path); swept {
			bad = append(bad, err)
			continue
		}
		job := new(Job)
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
