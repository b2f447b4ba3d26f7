package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A LockedError says that another process owns a directory.
type LockedError struct {
	Dir   string
	Owner string // its pid as it wrote it, for people
}

// Error says who is in the way.
func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is in use by process %s: stop it, or choose another directory",
		e.Dir, e.Owner)
}

// A Lock is the ownership of a directory. It ends with its process.
type Lock struct{ file *os.File }

// Own takes the lock of dir, the file lock in it. A lock that a dead process left
// behind is free. It answers a *[LockedError] when a living one holds it, ours
// included.
func Own(dir string) (*Lock, error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		owner, _ := os.ReadFile(file.Name())
		file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &LockedError{dir, strings.TrimSpace(string(owner))}
		}
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if err := sign(file); err != nil {
		file.Close()
		return nil, err
	}
	return &Lock{file}, nil
}

// sign writes into the lock who holds it.
func sign(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(fmt.Sprintln(os.Getpid())), 0)
	return err
}

// Close gives the directory free.
func (l *Lock) Close() error { return l.file.Close() }

// Private makes a directory that only we can enter, with its parents, or checks that
// the one there is ours and closed to others.
func Private(dir string) error {
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
