package boltstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/godwit-vm/godwit/internal/durable"
)

// maxPath is how long the path of a Unix socket may be, in bytes (unix(7): sun_path).
const maxPath = 107

// Listen makes a Unix socket that only we can reach, in a directory that others cannot write to,
// or that is made. One that a dead server has left is replaced; while a living one listens there,
// Listen refuses. To close the listener removes the socket.
func Listen(path string) (net.Listener, error) { return listen(path, 0o600) }

// ListenTo is Listen for peers with roles: when there are any, all users of the machine can reach
// the socket, and [ServeTo] refuses those without a role. The directory has to let them.
func ListenTo(path string, access Access) (net.Listener, error) {
	if !access.Open() {
		return listen(path, 0o600)
	}
	l, err := listen(path, 0o666)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	if at, err := os.Stat(dir); err != nil || at.Mode().Perm()&0o001 == 0 {
		err = cmp.Or(err, fmt.Errorf("%s has mode %#o, and the groups that have a role cannot reach the "+
			"socket: chmod a+x, or choose another path with --socket", dir, at.Mode().Perm()))
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func listen(path string, mode os.FileMode) (net.Listener, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	if err := durable.Owned(filepath.Dir(path)); err != nil {
		return nil, err
	}
	// A file of our own, and not the directory: others may be able to open that, and to lock it.
	held, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	defer held.Close()
	// Of two servers that start at once, the second sees the socket of the first.
	if err := unix.Flock(int(held.Fd()), unix.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock %s: %w", held.Name(), err)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	// The file that bind makes has the mode of the socket, so that at no moment it is open to
	// others. Source: Linux 5.10 net/unix/af_unix.c (unix_bind).
	closed := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		return cmp.Or(c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), uint32(mode)) }), err)
	}}
	l, err := closed.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	if mode != 0o600 { // bind has applied the umask
		err = os.Chmod(path, mode)
	}
	if at, errStat := os.Lstat(path); err != nil || errStat != nil || at.Mode().Perm() != mode {
		err = cmp.Or(err, errStat, fmt.Errorf("%s does not get mode %#o: it would be open to others, or "+
			"closed to all", path, mode))
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func checkPath(path string) error {
	if path == "" || len(path) > maxPath {
		return fmt.Errorf("the path of a socket has 1 to %d bytes, and %q has %d: choose "+
			"another one", maxPath, path, len(path))
	}
	return nil
}

// removeStale removes a socket that nothing listens on.
func removeStale(path string) error {
	is, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case is.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is there and no socket: remove it, or choose another path", path)
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		c.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("another process listens on %s already: stop that one, or choose another path",
			path)
	}
	return os.Remove(path)
}
