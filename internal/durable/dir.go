package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

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
// behind is free, and one that a child of it still has is waited for. It answers a
// *[LockedError] when a living one holds it, ours included.
func Own(dir string) (*Lock, error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := take(file); err != nil {
		owner := signed(file)
		file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &LockedError{dir, owner}
		}
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if err := sign(file); err != nil {
		file.Close()
		return nil, err
	}
	return &Lock{file}, nil
}

// orphaned is how long a child of a dead process may keep its lock. Between fork and
// exec a child has all files of its parent open, and the locks with them; what closes
// them is the exec.
const orphaned = 500 * time.Millisecond

// take takes a lock, and waits for the child of a dead owner.
func take(file *os.File) error {
	for end := time.Now().Add(orphaned); ; time.Sleep(5 * time.Millisecond) {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || lives(signed(file)) || time.Now().After(end) {
			return err
		}
	}
}

// lives tells whether there is a process with this pid. A process that has not signed yet counts as alive.
func lives(pid string) bool {
	n, err := strconv.Atoi(pid)
	return err != nil || n <= 0 || !errors.Is(unix.Kill(n, 0), unix.ESRCH)
}

// signed returns what the last owner wrote into its lock.
func signed(file *os.File) string {
	owner, _ := os.ReadFile(file.Name())
	return strings.TrimSpace(string(owner))
}

// sign writes the name of its holder into the lock.
func sign(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(fmt.Sprintln(os.Getpid())), 0)
	return err
}

// Close gives the directory free, also when a child of ours that has not come to its
// exec yet has the file open, too.
func (l *Lock) Close() error {
	return errors.Join(unix.Flock(int(l.file.Fd()), unix.LOCK_UN), l.file.Close())
}

// Private makes a directory that only we can enter, with its parents, or checks that
// the one there is ours and closed to others.
func Private(dir string) error {
	mode, err := ours(dir)
	if err == nil && mode&0o077 != 0 {
		return fmt.Errorf("%s has mode %#o and is open to others: chmod 0700", dir, mode)
	}
	return err
}

// Owned makes a directory as [Private] does, or checks that the one there is ours and that
// others cannot change what is in it. They may read it: the mode of a file protects the file.
func Owned(dir string) error {
	mode, err := ours(dir)
	if err == nil && mode&0o022 != 0 {
		return fmt.Errorf("%s has mode %#o, and others can replace the files in it: chmod go-w", dir,
			mode)
	}
	return err
}

// ours makes a directory or checks that the one there is ours. It returns its permissions.
func ours(dir string) (mode uint32, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	var s unix.Stat_t
	if err := unix.Lstat(dir, &s); err != nil {
		return 0, fmt.Errorf("%s: %w", dir, err)
	}
	switch {
	case s.Mode&unix.S_IFMT != unix.S_IFDIR:
		return 0, fmt.Errorf("%s is no directory", dir)
	case int(s.Uid) != os.Geteuid():
		return 0, fmt.Errorf("%s belongs to user %d, not to us (%d)", dir, s.Uid, os.Geteuid())
	}
	return uint32(s.Mode) & 0o777, nil // 16 bits on some systems
}

const runtimeVariable = "XDG_RUNTIME_DIR" // Where locks and sockets of users other than root are, in a directory godwit.

// Runtime returns the directory for what lives no longer than the machine runs: /run/godwit for
// root, and for others one of their own.
// Source: XDG Base Directory Specification 0.8 (XDG_RUNTIME_DIR); file-hierarchy(7) (/run).
func Runtime() string {
	if os.Geteuid() == 0 {
		return "/run/godwit"
	}
	if dir := os.Getenv(runtimeVariable); dir != "" {
		return filepath.Join(dir, "godwit")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("godwit-%d", os.Geteuid()))
}
