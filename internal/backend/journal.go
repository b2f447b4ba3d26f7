package backend

// This file keeps what a backend must remember about its VMs and jobs when its process dies: one
// private directory, one file for each.
//
//	DIR/lock               held by the process that owns the directory
//	DIR/vms/NAME           what is known of one VM, with Layout.Own: a directory of the VM's
//	DIR/vms/NAME/domain    sockets and logs, and what is known of it
//	DIR/jobs/NAME          what is known of one migration
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

// A DomainRecord is a pointer to a struct that embeds a [Domain], and is kept as JSON.
type DomainRecord interface {
	comparable
	kept() *Domain
}

// A JobRecord is a pointer to a struct that embeds a [Job], and is kept as JSON.
type JobRecord interface {
	comparable
	keys() (hypervisor.JobID, hypervisor.VMID)
	role() Role
}

// A Layout is how a backend arranges its directory.
type Layout struct {
	// Own: each VM has a directory of its own, in which its record is the file domain. Who runs
	// the VM's process is said to keep it there, in errors.
	Own string
	// More are directories besides those of records.
	More []string
}

// A Journal is an open directory of records D of VMs and J of migrations. Its methods may be used at
// the same time for different VMs and jobs.
type Journal[D DomainRecord, J JobRecord] struct {
	dir    string
	lock   *durable.Lock
	layout Layout
	domain func() D
	job    func() J
}

// OpenJournal makes or opens dir, which must belong to us and be closed to others, and takes its
// lock. A lock that a dead process left behind is free. It answers a *[durable.LockedError] when a
// living one holds it. Domain and job make empty records.
func OpenJournal[D DomainRecord, J JobRecord](dir string, layout Layout, domain func() D,
	job func() J) (*Journal[D, J], error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	j := &Journal[D, J]{dir: dir, layout: layout, domain: domain, job: job}
	for _, kind := range append([]string{".", "vms", "jobs"}, layout.More...) {
		if err := durable.Private(j.Below(kind)); err != nil {
			return nil, err
		}
	}
	if j.lock, err = durable.Own(dir); err != nil {
		return nil, err
	}
	return j, nil
}

// Close gives the directory free.
func (j *Journal[D, J]) Close() error { return j.lock.Close() }

// Below returns one of the journal's directories.
func (j *Journal[D, J]) Below(kind string) string { return filepath.Join(j.dir, kind) }

// Path returns where something is kept under an id. Its name is short, as the path of a socket must
// be, and tells ids apart that look alike.
func (j *Journal[D, J]) Path(kind, id string) string {
	return filepath.Join(j.Below(kind), durable.Name(id))
}

// record is the file of a VM's record at path, which is the VM's.
func (j *Journal[D, J]) record(path string) string {
	if j.layout.Own != "" {
		return filepath.Join(path, "domain")
	}
	return path
}

// Put keeps d against our death, and, when synced, against a loss of power.
func (j *Journal[D, J]) Put(d D, synced bool) error {
	kept := d.kept()
	path := j.Path("vms", string(kept.VM.ID))
	if err := keepable(string(kept.VM.ID), string(kept.Job)); err != nil {
		return err
	}
	if j.layout.Own != "" {
		if err := durable.Private(path); err != nil {
			return err
		}
	}
	return durable.Write(j.record(path), d, synced)
}

// keepable refuses ids that JSON would change.
func keepable(a, b string) error { return errors.Join(durable.Text(a), durable.Text(b)) }

// Remove forgets a VM, and removes all files in the directory that it has for itself.
func (j *Journal[D, J]) Remove(vm hypervisor.VMID) error {
	if j.layout.Own != "" {
		return durable.RemoveDir(j.Path("vms", string(vm)))
	}
	return j.remove("vms", string(vm))
}

// PutJob keeps a job against our death, and, when synced, against a loss of power.
func (j *Journal[D, J]) PutJob(job J, synced bool) error {
	id, vm := job.keys()
	if err := keepable(string(id), string(vm)); err != nil {
		return err
	}
	return durable.Write(j.Path("jobs", string(id)), job, synced)
}

// RemoveJob forgets a job.
func (j *Journal[D, J]) RemoveJob(id hypervisor.JobID) error { return j.remove("jobs", string(id)) }

func (j *Journal[D, J]) remove(kind, id string) error {
	err := os.Remove(j.Path(kind, id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Domains reads what is kept of all VMs. The error names every file that cannot be
// read, and what is wrong with it.
func (j *Journal[D, J]) Domains() ([]D, error) {
	swept := durable.Swept
	if j.layout.Own != "" {
		swept = durable.SweptDir
	}
	files, err := os.ReadDir(j.Below("vms"))
	if err != nil {
		return nil, err
	}
	var all []D
	err = j.each("vms", files, swept, func(path string, f fs.DirEntry) error {
		d, file := j.domain(), j.record(path)
		err := durable.Read(file, d)
		if errors.Is(err, fs.ErrNotExist) && j.layout.Own != "" {
			return j.sweep(path)
		}
		if err == nil {
			err = belongs(file, f.Name(), "VM.ID", string(d.kept().VM.ID))
		}
		if err == nil {
			all = append(all, d)
		}
		return err
	})
	return all, err
}

// sweep removes a directory in which a process died before it wrote a record. Where
// there is more, a record is missing, and only an operator can know why.
func (j *Journal[D, J]) sweep(dir string) error {
	_ = os.Remove(filepath.Join(dir, "domain"+durable.Unfinished)) // what is left is found below
	if err := os.Remove(dir); err != nil {
		return fmt.Errorf("%s: a VM was here whose record is missing: put back its file "+
			"domain, or, when its %s has ended, move the directory away", dir, j.layout.Own)
	}
	return nil
}

// Jobs reads what is kept of all jobs, and forgets those that ended long ago. The
// error names every file that cannot be read, and what is wrong with it.
func (j *Journal[D, J]) Jobs(now time.Time) ([]J, error) {
	domains, _ := j.Domains() // errors are reported to the caller of Domains
	named := map[hypervisor.JobID]bool{}
	for _, d := range domains {
		named[d.kept().Job] = true
	}
	files, err := os.ReadDir(j.Below("jobs"))
	if err != nil {
		return nil, err
	}
	horizon := durable.Horizon(files, now, forgetAfter)
	var all []J
	err = j.each("jobs", files, durable.Swept, func(path string, f fs.DirEntry) error {
		job := j.job()
		if err := durable.Read(path, job); err != nil {
			return err
		}
		id, _ := job.keys()
		if err := belongs(path, f.Name(), "ID", string(id)); err != nil {
			return err
		}
		i, err := f.Info()
		if err != nil {
			return err
		}
		if i.ModTime().Before(horizon) && !named[id] {
			return os.Remove(path)
		}
		all = append(all, job)
		return nil
	})
	return all, err
}

// each reads every record of a directory, and removes what a dead process had not
// finished to write.
func (j *Journal[D, J]) each(kind string, files []fs.DirEntry,
	swept func(path string) (bool, error), read func(string, fs.DirEntry) error) error {
	var bad []error
	for _, f := range files {
		path := filepath.Join(j.Below(kind), f.Name())
		was, err := swept(path)
		if !was {
			err = read(path, f)
		}
		bad = append(bad, err)
	}
	return errors.Join(bad...)
}

// belongs refuses a record that is in another one's file.
func belongs(path, name, field, id string) error {
	if durable.Name(id) != name {
		return fmt.Errorf("%s: %s: it is %q, which belongs elsewhere", path, field, id)
	}
	return nil
}
