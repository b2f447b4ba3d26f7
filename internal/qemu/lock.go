//go:build linux

package qemu

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrLocked says that a living process holds a lock.
var ErrLocked = errors.New("a living process holds the lock")

// A Lock is one name in a file of locks. It is held by every process that has inherited it, and
// is free when the last of them has ended, whatever has become of the process that took it.
type Lock struct{ file *os.File }

// TakeLock takes the lock of a name in a file, which is made if it is missing. It fails with
// [ErrLocked] when a process holds it, the caller's own included.
//
// The names share one file: each is one byte of it, far from all others, and nothing is left
// to be cleared away when a name is no longer used.
// Source: Linux fcntl(2), "Open file description locks".
func TakeLock(path, name string) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	lock := processPlace(name)
	err = unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &lock)
	if err == nil {
		return &Lock{file}, nil
	}
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		err = ErrLocked
	}
	return nil, errors.Join(fmt.Errorf("%s: lock %q: %w", path, name, err), file.Close())
}

// Locked reports whether a process holds the lock of a name in a file. It takes nothing, and
// makes no file.
func Locked(path, name string) (bool, error) {
	file, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	lock := processPlace(name)
	err = unix.FcntlFlock(file.Fd(), unix.F_OFD_GETLK, &lock)
	return lock.Type != unix.F_UNLCK, errors.Join(err, file.Close())
}

// processPlace is the byte of a name.
func processPlace(name string) unix.Flock_t {
	sum := sha256.Sum256([]byte(name))
	return unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Len: 1,
		Start: int64(binary.BigEndian.Uint64(sum[:]) >> 2)}
}

// Close closes the caller's copy: the lock is free when no process has inherited it.
func (l *Lock) Close() error { return l.file.Close() }
