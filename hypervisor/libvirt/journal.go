package libvirt

// This file keeps what libvirt does not keep of VMs and migrations: one private
// directory, one file for each.
//
//	DIR/lock        held by the process that owns the directory
//	DIR/vms/NAME    what is known of one VM: a domainRecord
//	DIR/jobs/NAME   what is known of one migration: a jobRecord
//
// A file is replaced as a whole, so that it is the old or the new one whenever a
// process dies. What must survive a loss of power is also synced.
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

// openJournal makes or opens dir, which must belong to us and be closed to others, and owns
// it. It answers a [durable.LockedError] when another living process does.
func openJournal(dir string) (*journal, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	j := &journal{dir: dir}
	for _, d := range []string{dir, j.below("vms"), j.below("jobs")} {
		if err := durable.Private(d); err != nil {
			return nil, err
		}
	}
	j.lock, err = durable.Own(dir)
	return j, err
}

// Close gives the directory free.
func (j *journal) Close() error { return j.lock.Close() }

func (j *journal) below(kind string) string { return filepath.Join(j.dir, kind) }

func (j *journal) file(kind, id string) string {
	return filepath.Join(j.below(kind), durable.Name(id))
}

// Put keeps d against our death, and, when synced, against a loss of power.
func (j *journal) Put(d *domainRecord, synced bool) error {
	if err := errors.Join(durable.Text(string(d.VM.ID)), durable.Text(string(d.Job))); err != nil {
		return err
	}
	return durable.Write(j.file("vms", string(d.VM.ID)), d, synced)
}

// Remove forgets a VM.
func (j *journal) Remove(vm hypervisor.VMID) error {
	err := os.Remove(j.file("vms", string(vm)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// PutJob keeps a job against our death, and, when synced, against a loss of power.
func (j *journal) PutJob(job *jobRecord, synced bool) error {
	err := errors.Join(durable.Text(string(job.ID)), durable.Text(string(job.VM.ID)))
	if err != nil {
		return err
	}
	return durable.Write(j.file("jobs", string(job.ID)), job, synced)
}

// Domains reads what is kept of all VMs. The error names every file that cannot be
// read, and what is wrong with it.
func (j *journal) Domains() ([]*domainRecord, error) {
	var all []*domainRecord
	err := each(j.below("vms"), func(path string, _ fs.DirEntry) error {
		d := new(domainRecord)
		if err := durable.Read(path, d); err != nil {
			return err
		}
		if err := journalBelongs(path, "VM.ID", string(d.VM.ID)); err != nil {
			return err
		}
		all = append(all, d)
		return nil
	})
	return all, err
}

// Jobs reads what is kept of all jobs, and forgets those that ended long ago. The
// error names every file that cannot be read, and what is wrong with it.
func (j *journal) Jobs(now time.Time) ([]*jobRecord, error) {
	domains, _ := j.Domains() // who asks for them is told what is wrong
	named := map[hypervisor.JobID]bool{}
	for _, d := range domains {
		named[d.Job] = true
	}
	files, err := os.ReadDir(j.below("jobs"))
	if err != nil {
		return nil, err
	}
	horizon := durable.Horizon(files, now, forgetAfter)
	var all []*jobRecord
	err = each(j.below("jobs"), func(path string, f fs.DirEntry) error {
		job := new(jobRecord)
		if err := durable.Read(path, job); err != nil {
			return err
		}
		if err := journalBelongs(path, "ID", string(job.ID)); err != nil {
			return err
		}
		i, err := f.Info()
		if err != nil {
			return err
		}
		if i.ModTime().Before(horizon) && !named[job.ID] {
			return os.Remove(path)
		}
		all = append(all, job)
		return nil
	})
	return all, err
}

// each reads every record of a directory, and removes what a dead process had not
// finished to write.
func each(dir string, read func(string, fs.DirEntry) error) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var bad []error
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		swept, err := durable.Swept(path)
		if err == nil && !swept {
			err = read(path, f)
		}
		bad = append(bad, err)
	}
	return errors.Join(bad...)
}

// journalBelongs refuses a record that is in another one's file.
func journalBelongs(path, field, id string) error {
	if durable.Name(id) != filepath.Base(path) {
		return fmt.Errorf("%s: %s: it is %q, which belongs elsewhere", path, field, id)
	}
	return nil
}
