package boltstore

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/durable"
	"github.com/godwit-vm/godwit/store"
)

// Config says how to open a store. A zero field takes the default it names.
type Config struct {
	// Path is the file. Others must not be able to write to its directory, which is made if it
	// is missing; the file is closed to others by its own mode.
	Path string
	// LockTimeout is how long to wait for another process to close the file. Default: 1s.
	LockTimeout time.Duration
	// MaxSize is how large the file may become; then the store is Full. Default: what the
	// process may write (RLIMIT_FSIZE), which is the limit in any case.
	MaxSize hypervisor.Bytes
}

// smallest is how large a file must be allowed to become, in bytes.
const smallest = 64 << 10

// Open opens the store in a file, or makes an empty one where there is none. Close it. The
// error is a *[store.StoreError]: Unavailable while another process has the file open,
// Unreadable when it is damaged or a newer godwit has written it, Full when there is no room
// for a new one.
func Open(path string) (*Store, error) { return Config{Path: path}.Open() }

// Open opens the store that c describes, as the function Open does.
func (c Config) Open() (*Store, error) {
	s, err := c.open()
	if errors.Is(err, unix.EROFS) {
		err = fmt.Errorf("%w: nothing was written, and VMs run on: find out why the file system of %s is "+
			"read-only (dmesg says when the kernel made it so), mount it writable again, and start the "+
			"controller again", err, filepath.Dir(c.Path))
	}
	if err != nil {
		key := store.Key{Name: c.Path}
		return nil, &store.StoreError{Op: "Open", Key: key, Kind: kindOf(err), Err: err}
	}
	return s, nil
}

func (c Config) open() (*Store, error) {
	if c.LockTimeout <= 0 {
		c.LockTimeout = time.Second
	}
	if at := c.maxSize(); at > 0 && at < smallest {
		return nil, fmt.Errorf("files of %d bytes are allowed, and a store needs %d: %w", at,
			smallest, bbolterrors.ErrMaxSizeReached)
	}
	if err := durable.Owned(filepath.Dir(c.Path)); err != nil {
		return nil, err
	}
	if _, err := os.Stat(c.Path); errors.Is(err, fs.ErrNotExist) {
		if err := create(c.Path); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	var held *contents
	var file *os.File
	db, err := bbolt.Open(c.Path, 0o600, &bbolt.Options{
		Timeout: c.LockTimeout, MaxSize: c.maxSize(), FreelistType: bbolt.FreelistMapType,
		// What is opened is locked and checked before bbolt sees it. The lock belongs to
		// the open file, so bbolt has it, too.
		OpenFile: func(path string, _ int, _ os.FileMode) (_ *os.File, err error) {
			file, held, err = openChecked(path, c.LockTimeout)
			return file, err
		},
	})
	if err != nil {
		return nil, err
	}
	return newStore(c.Path, db, file, held), nil
}

// maxSize is how large the file may become. bbolt keeps to it, so that a limit of the
// process is an error and not its end (SIGXFSZ).
func (c Config) maxSize() int {
	var limit unix.Rlimit
	largest := int64(c.MaxSize)
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err == nil && limit.Cur < 1<<62 {
		if at := max(1, int64(limit.Cur)); largest <= 0 || at < largest {
			largest = at
		}
	}
	return int(max(0, largest))
}

// openChecked opens a file, locks it and reads all of it.
func openChecked(path string, timeout time.Duration) (_ *os.File, _ *contents, err error) {
	file, err := openLocked(path, os.O_RDWR, unix.LOCK_EX, timeout)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			file.Close()
		}
	}()
	info, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	held, err := readContents(file, info.Size())
	if err != nil {
		return nil, nil, &unreadable{path, err}
	}
	if info.Mode()&0o077 != 0 {
		if err := file.Chmod(0o600); err != nil {
			return nil, nil, fmt.Errorf("%s is open to others: %w: chmod 0600", path, err)
		}
	}
	return file, held, nil
}

// unreadable says that a file is not opened for what is in it.
type unreadable struct {
	path string
	why  error
}

func (u *unreadable) Error() string {
	if _, is := errors.AsType[damage](u.why); is {
		return fmt.Sprintf("%s: %v; nothing was changed: keep it, and put a copy (made by "+
			"a backup) in its place", u.path, u.why)
	}
	return fmt.Sprintf("%s: %v; nothing was changed", u.path, u.why)
}

func (u *unreadable) Unwrap() error { return u.why }

// A LockedError says that another process, or another store of this one, has the file open.
type LockedError struct {
	Path string
	PID  string // of the process, if that is known
}

// Error says who is in the way.
func (e *LockedError) Error() string {
	who := "another process"
	if e.PID != "" {
		who = "process " + e.PID
	}
	return fmt.Sprintf("%s has %s open: stop it, or go through its socket", who, e.Path)
}

// openLocked opens a file and locks it. When another one took its place until the lock was had, as when a backup is
// restored, that one is opened.
func openLocked(path string, flag, how int, timeout time.Duration) (*os.File, error) {
	for {
		file, err := os.OpenFile(path, flag, 0)
		if err != nil {
			return nil, err
		}
		stands := false
		if err = lock(file, how, timeout); err == nil {
			stands, err = at(path, file)
		}
		if err == nil && stands {
			return file, nil
		}
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
	}
}

// at reports whether a file is the one at a path.
func at(path string, file *os.File) (bool, error) {
	has, err := file.Stat()
	if err != nil {
		return false, err
	}
	is, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(has, is), err
}

// lock waits until no other process has the file open; how is unix.LOCK_EX, or unix.LOCK_SH to read it. The lock ends
// with the process.
func lock(file *os.File, how int, timeout time.Duration) error {
	const pause = 20 * time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		err := unix.Flock(int(file.Fd()), how|unix.LOCK_NB)
		if err == nil || !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		if waited >= timeout {
			return &LockedError{file.Name(), holder(file)}
		}
		time.Sleep(pause)
	}
}

// holder looks up which process holds the lock of a file; "" when that is not known.
func holder(file *os.File) string {
	var own unix.Stat_t
	if unix.Fstat(int(file.Fd()), &own) != nil {
		return ""
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return ""
	}
	defer locks.Close()
	// 1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF
	inode := fmt.Sprintf(":%d", own.Ino)
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) >= 6 && f[1] == "FLOCK" && strings.HasSuffix(f[5], inode) && f[4] != "-1" {
			return f[4]
		}
	}
	return ""
}

// create makes an empty store, all at once: a file that is empty, or half of one, is never
// the beginning of a store.
func create(path string) (err error) {
	dir := filepath.Dir(path)
	file, err := os.CreateTemp(dir, filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	name := file.Name()
	defer func() { err = errors.Join(err, os.Remove(name)) }()
	if err := file.Close(); err != nil {
		return err
	}
	db, err := bbolt.Open(name, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		about, err := tx.CreateBucket([]byte(aboutBucket))
		if err != nil {
			return err
		}
		if _, err := tx.CreateBucket([]byte(recordsBucket)); err != nil {
			return err
		}
		if err := about.Put([]byte(formatKey), fmt.Append(nil, Format)); err != nil {
			return err
		}
		return about.Put([]byte(totalsKey), totals{txn: uint64(tx.ID())}.encode())
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	if err := os.Link(name, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return durable.Sync(dir)
}
