package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/godwit-vm/godwit/hypervisor"
)

// forgetAfter is how long a job is kept that no domain names. Nobody repeats a
// request for that long.
const forgetAfter = 90 * 24 * time.Hour

// maxRecord bounds what is read as one record, in bytes.
const maxRecord = 1 << 20

// A Journal is an open directory. Its methods may be used at the same time for
// different VMs and jobs.
type Journal struct {
	dir  string
	lock *os.File
}

// A LockedError says that another process owns the directory.
type LockedError struct {
	Dir   string
	Owner string // its pid as it wrote it, for people
}

// Error says who is in the way.
func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is in use by process %s: stop it, or choose another directory",
		e.Dir, e.Owner)
}

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
		if err := private(d); err != nil {
			return nil, err
		}
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		owner, _ := os.ReadFile(lock.Name())
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &LockedError{dir, strings.TrimSpace(string(owner))}
		}
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	j := &Journal{dir, lock}
	if err := j.sign(); err != nil {
		lock.Close()
		return nil, err
	}
	return j, nil
}

// sign writes into the lock who holds it.
func (j *Journal) sign() error {
	if err := j.lock.Truncate(0); err != nil {
		return err
	}
	_, err := j.lock.WriteAt([]byte(fmt.Sprintln(os.Getpid())), 0)
	return err
}

// private makes a directory that only we can enter, or checks the one there.
func private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var s unix.Stat_t
	if err := unix.Lstat(dir, &s); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	switch {
	case s.Mode&unix.S_IFMT != unix.S_IFDIR:
		return fmt.Errorf("%s is no directory", dir)
	case int(s.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d, not to us (%d)", dir, s.Uid, os.Geteuid())
	case s.Mode&0o077 != 0:
		return fmt.Errorf("%s has mode %#o and is open to others: chmod 0700", dir, s.Mode&0o777)
	}
	return nil
}

// Close gives the directory free.
func (j *Journal) Close() error { return j.lock.Close() }

// Dir returns the private directory of a VM. Its name is short, as the path of a
// socket must be, and tells VMs apart that look alike.
func (j *Journal) Dir(vm hypervisor.VMID) string {
	return filepath.Join(j.dir, "vms", name(string(vm)))
}

// Disks returns the private directory of the local disks of a VM. It outlives the
// VM's record.
func (j *Journal) Disks(vm hypervisor.VMID) string {
	return filepath.Join(j.dir, "disks", name(string(vm)))
}

// name returns a name for a file: the readable beginning of id, and a digest.
func name(id string) string {
	plain := strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') {
			return r
		}
		return '-'
	}, id)
	sum := sha256.Sum256([]byte(id))
	return plain[:min(len(plain), 16)] + "." + hex.EncodeToString(sum[:8])
}

// ours reports whether a file has a name as name makes them.
func ours(file string) bool {
	dot := strings.LastIndexByte(file, '.')
	sum, err := hex.DecodeString(file[dot+1:])
	return dot >= 0 && err == nil && len(sum) == 8
}

// text refuses an id that cannot be kept: it would come back as another one.
func text(id string) error {
	if !utf8.ValidString(id) {
		return fmt.Errorf("the id %q is no text in UTF-8: choose another", id)
	}
	return nil
}

// Put keeps d against our death, and, when durable, against a loss of power.
func (j *Journal) Put(d *Domain, durable bool) error {
	dir := j.Dir(d.VM.ID)
	if err := errors.Join(text(string(d.VM.ID)), text(string(d.Job))); err != nil {
		return err
	}
	if err := private(dir); err != nil {
		return err
	}
	return write(filepath.Join(dir, "domain"), d, durable)
}

// gone ends the name of a directory that is being removed.
const gone = ".gone"

// Remove forgets a VM and removes all files in its directory.
func (j *Journal) Remove(vm hypervisor.VMID) error {
	dir := j.Dir(vm)
	if err := os.RemoveAll(dir + gone); err != nil {
		return err
	}
	if err := os.Rename(dir, dir+gone); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(dir + gone)
}

// Domains reads what is kept of all VMs. The error names every file that cannot
// be read, and what is wrong with it.
func (j *Journal) Domains() ([]*Domain, error) {
	dirs, err := os.ReadDir(filepath.Join(j.dir, "vms"))
	if err != nil {
		return nil, err
	}
	var all []*Domain
	var bad []error
	for _, dir := range dirs {
		d, path := new(Domain), filepath.Join(j.dir, "vms", dir.Name(), "domain")
		if removed, was := strings.CutSuffix(dir.Name(), gone); was && ours(removed) {
			bad = append(bad, os.RemoveAll(filepath.Dir(path)))
			continue
		}
		switch err := read(path, d); {
		case errors.Is(err, fs.ErrNotExist):
			bad = append(bad, sweep(filepath.Dir(path)))
		case err != nil:
			bad = append(bad, err)
		case name(string(d.VM.ID)) != dir.Name():
			bad = append(bad, fmt.Errorf("%s: VM.ID: it is %q, which belongs elsewhere",
				path, d.VM.ID))
		default:
			all = append(all, d)
		}
	}
	return all, errors.Join(bad...)
}

// sweep removes a directory in which a process died before it wrote a record. Where
// there is more, a record is missing, and nobody but a person knows why.
func sweep(dir string) error {
	_ = os.Remove(filepath.Join(dir, "domain"+unfinished)) // what is left is found below
	if err := os.Remove(dir); err != nil {
		return fmt.Errorf("%s: a VM was here whose record is missing: put back its file "+
			"domain, or move the directory away", dir)
	}
	return nil
}

// PutJob keeps a job against our death, and, when durable, against a loss of power.
func (j *Journal) PutJob(job *Job, durable bool) error {
	if err := errors.Join(text(string(job.ID)), text(string(job.VM.ID))); err != nil {
		return err
	}
	return write(filepath.Join(j.dir, "jobs", name(string(job.ID))), job, durable)
}

// RemoveJob forgets a job.
func (j *Journal) RemoveJob(id hypervisor.JobID) error {
	err := os.Remove(filepath.Join(j.dir, "jobs", name(string(id))))
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
		if d := new(Domain); read(path, d) == nil {
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
	named := j.named()
	for _, f := range files {
		path := filepath.Join(j.dir, "jobs", f.Name())
		if whole, half := strings.CutSuffix(f.Name(), unfinished); half && ours(whole) {
			bad = append(bad, os.Remove(path))
			continue
		}
		job := new(Job)
		if err := read(path, job); err != nil {
			bad = append(bad, err)
			continue
		}
		i, err := f.Info()
		switch {
		case err != nil:
			bad = append(bad, err)
		case name(string(job.ID)) != f.Name():
			bad = append(bad, fmt.Errorf("%s: ID: it is %q, which belongs elsewhere", path, job.ID))
		case now.Sub(i.ModTime()) > forgetAfter && !named[job.ID]:
			bad = append(bad, os.Remove(path))
		default:
			all = append(all, job)
		}
	}
	return all, errors.Join(bad...)
}

// unfinished ends the name of a file that is being written.
const unfinished = ".new"

// write replaces the file at path by v.
func write(path string, v any, durable bool) (err error) {
	text, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	f, err := os.OpenFile(path+unfinished, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(path + unfinished)
		}
	}()
	_, err = f.Write(append(text, '\n'))
	if err == nil { // a name without its contents would be worse than the old file
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Rename(path+unfinished, path); err != nil || !durable {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// read fills v from the file at path, and says where in it something is wrong.
func read(path string, v any) error {
	// Without O_NONBLOCK a pipe that was put there would make us wait for ever.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if i, err := f.Stat(); err != nil || !i.Mode().IsRegular() {
		return fmt.Errorf("%s is no file: move it away", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	case len(text) > maxRecord:
		return fmt.Errorf("%s: it has more than %d bytes and is no record", path, maxRecord)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	err = dec.Decode(v)
	at := dec.InputOffset()
	if _, end := dec.Token(); err == nil && end != io.EOF {
		return fmt.Errorf("%s:%d: there is something after the record: repair the file or "+
			"move it away", path, line(text, at))
	}
	if err == nil {
		return nil
	}
	where := path // of an unknown field the decoder says the name and not the place
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		where = fmt.Sprintf("%s:%d", path, line(text, syntax.Offset))
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		where = fmt.Sprintf("%s:%d", path, line(text, kind.Offset))
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		where = fmt.Sprintf("%s:%d", path, line(text, int64(len(text))))
	}
	return fmt.Errorf("%s: %w: repair the file or move it away", where, err)
}

// line returns the number of the line of text that an offset is in.
func line(text []byte, at int64) int {
	return 1 + bytes.Count(text[:min(at, int64(len(text)))], []byte("\n"))
}
