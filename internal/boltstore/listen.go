package boltstore

import (
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

// Listen makes a Unix socket that only we can reach, in a directory that is closed to others
// or is made. One that a dead server has left is replaced; while a living one listens there,
// Listen refuses. To close the listener removes the socket.
func Listen(path string) (net.Listener, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	if err := durable.Private(dir); err != nil {
		return nil, err
	}
	held, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer held.Close()
	// Of two servers that start at once, the second sees the socket of the first.
	if err := unix.Flock(int(held.Fd()), unix.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
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

// removeStale removes a socket that nobody listens on.
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
		return fmt.Errorf("somebody listens on %s already: stop that one, or choose another path",
			path)
	}
	return os.Remove(path)
}
