package daemon

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/durable"
	"github.com/godwit-vm/godwit/store"
)

// card is what the file "identity" in the directory of an agent says.
type card struct {
	Host hypervisor.HostName
	ID   string
}

// OtherHostError is a directory that belongs to another host.
type OtherHostError struct {
	Dir  string
	Host hypervisor.HostName // whose it is
}

// Error says whose directory it is.
func (e *OtherHostError) Error() string {
	return fmt.Sprintf("--dir: %s is the directory of host %s: give each host its own, or say "+
		"--host %s", e.Dir, e.Host, e.Host)
}

// IdentifyHost returns the identity of a host's agent: what its directory says, and its machine. A
// directory that says nothing gets an id that no other has. The error is an *[OtherHostError] for
// a directory of another host.
func IdentifyHost(c HostConfig) (store.Identity, error) {
	if err := durable.Private(c.Dir); err != nil {
		return store.Identity{}, err
	}
	path := filepath.Join(c.Dir, "identity")
	var known card
	switch err := durable.Read(path, &known); {
	case errors.Is(err, fs.ErrNotExist):
		known = card{c.Name, strings.ToLower(rand.Text())}
		if err := durable.Write(path, known, true); err != nil {
			return store.Identity{}, err
		}
	case err != nil:
		return store.Identity{}, err
	case known.ID == "":
		return store.Identity{}, fmt.Errorf("%s: ID: it is empty", path)
	case known.Host != c.Name:
		return store.Identity{}, &OtherHostError{c.Dir, known.Host}
	}
	return store.Identity{ID: known.ID, Machine: machine()}, nil
}

// machine names the machine, without telling its name to others; "" is not known.
// Source: machine-id(5): it is confidential, and applications hash it.
func machine() string {
	text, err := os.ReadFile("/etc/machine-id")
	if id := strings.TrimSpace(string(text)); err == nil && id != "" {
		sum := sha256.Sum256([]byte("godwit" + id))
		return hex.EncodeToString(sum[:8])
	}
	return ""
}

// BusyError is a host, or what runs its VMs, for which another agent acts on this machine.
type BusyError struct {
	What  string // "host h1", or libvirt's URI
	Owner string // the other process
}

// Error says which process it is, and what to do.
func (e *BusyError) Error() string {
	return fmt.Sprintf("process %s on this machine is the agent of %s already: nothing is "+
		"started: stop one of the two, or give it another name", e.Owner, e.What)
}

// LockHost makes this process the only one on this machine that acts for a host, and for the
// libvirtd that runs its VMs, until it ends or closes what is returned. It holds whatever
// directory another agent has. The name tells the lock from those in other places. The error is
// a *[BusyError] when there is another.
func LockHost(c HostConfig) (held io.Closer, name string, err error) {
	names := []string{"host " + string(c.Name)}
	if c.Backend == Libvirt && c.URI != "" {
		names = append(names, "libvirtd "+c.URI)
	} else if c.Backend == Libvirt {
		names = append(names, "libvirtd qemu:///system")
	}
	if c.Locks == "" {
		c.Locks = durable.Runtime()
	}
	var all locks
	for i, what := range names {
		dir := filepath.Join(c.Locks, "agents", durable.Name(what))
		lock, err := own(dir, what)
		if err == nil && i == 0 {
			name, err = inode(dir)
		}
		if lock != nil {
			all = append(all, lock)
		}
		if err != nil {
			return nil, "", errors.Join(err, all.Close())
		}
	}
	return all, name, nil
}

// own makes and takes one lock.
func own(dir, what string) (*durable.Lock, error) {
	if err := durable.Private(dir); err != nil {
		return nil, err
	}
	lock, err := durable.Own(dir)
	if locked, is := errors.AsType[*durable.LockedError](err); is {
		err = &BusyError{what, locked.Owner}
	}
	return lock, err
}

// inode names a directory as no other on this machine is named.
func inode(dir string) (string, error) {
	i, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	s, is := i.Sys().(*syscall.Stat_t)
	if !is {
		return "", nil
	}
	return fmt.Sprintf("%d:%d", s.Dev, s.Ino), nil
}

// locks are closed together.
type locks []*durable.Lock

// Close gives all of them free.
func (l locks) Close() error {
	var bad []error
	for _, lock := range l {
		bad = append(bad, lock.Close())
	}
	return errors.Join(bad...)
}
