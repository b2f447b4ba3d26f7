//go:build linux

package qemu

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/durable"
)

// What the environment of a QEMU says of the process that has started it. Its guest does not see that.
const (
	hostVariable  = "GODWIT_HOST"
	locksVariable = "GODWIT_LOCKS"
)

// environment is that of a QEMU of this host.
func (l *Launcher) environment() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		hostVariable + "=" + string(l.Host), locksVariable + "=" + l.Locks}
}

// alone takes the lock without which no QEMU runs a VM on this host, for the QEMU that is about
// to be started: it inherits the lock, and holds it until it ends. No second QEMU of the same
// host can have it, whatever agent or directory starts it. It answers Conflict when one has.
//
// A VM that is to start, and does not come from elsewhere, must have no QEMU on this machine at
// all: also none of another host's name, and none from before there were locks. The arguments
// of all processes say so.
//
// A QEMU that was just killed keeps the lock until the kernel has taken its memory away, with or
// without arguments meanwhile: it is waited for, and what lasts longer is Transient.
func (l *Launcher) alone(ctx context.Context, vm hypervisor.VMID, incoming bool) (*Lock,
	error) {
	var lock *Lock
	err := cleared(ctx, l.Timeout, hypervisor.Conflict, func() (clear bool, others []Found, err error) {
		lock, others, err = l.try(vm, incoming)
		return lock != nil, others, err
	})
	return lock, err
}

// cleared looks again until no QEMU of a VM is in the way, or one is that was not killed: that is Conflict. One
// that was killed and is not gone in time is Transient. What is in the way and cannot be seen is unseen.
func cleared(ctx context.Context, within time.Duration, unseen hypervisor.Kind,
	look func() (clear bool, others []Found, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		clear, others, err := look()
		switch {
		case err != nil || clear:
			return err
		case slices.ContainsFunc(others, func(f Found) bool { return !f.killed() }):
			return Refuse(hypervisor.Conflict, "%s", twice(others))
		}
		select {
		case <-ctx.Done():
			if len(others) > 0 {
				return Refuse(hypervisor.Transient, "%s", twice(others))
			}
			return Refuse(unseen, "%s", twice(nil))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// try is alone, once. Without a lock and an error it answers which QEMUs are in the way, or none
// where the lock is held by what cannot be seen.
func (l *Launcher) try(vm hypervisor.VMID, incoming bool) (*Lock, []Found, error) {
	if err := durable.Private(l.Locks); err != nil {
		return nil, nil, Refuse(hypervisor.Transient, "the directory of locks: %v", err)
	}
	lock, err := TakeLock(l.lockOf(vm))
	held := errors.Is(err, ErrLocked)
	if err != nil && !held {
		return nil, nil, Refuse(hypervisor.Transient, "take the lock of the VM: %v", err)
	}
	if !held && incoming {
		return lock, nil, nil
	}
	others, err := l.running(vm)
	if err == nil && !held && len(others) == 0 {
		return lock, nil, nil
	}
	if lock != nil {
		_ = lock.Close() // nothing was written to it
	}
	if err != nil {
		return nil, nil, Refuse(hypervisor.Transient,
			"look for another QEMU of the VM: %v", err)
	}
	return nil, others, nil
}

// lockOf returns the file and the name of a VM's lock.
func (l *Launcher) lockOf(vm hypervisor.VMID) (path, name string) {
	return filepath.Join(l.Locks, "vms"), string(l.Host) + "\x00" + string(vm)
}

// burial is how long the kernel may take to clear away a QEMU that was killed.
const burial = time.Second

// Unknown answers Conflict when a QEMU of this host runs a VM of which the directory says
// nothing: the directory was emptied, or moved away. What the VM does is then unknown here, and
// that it is not in the directory proves nothing.
func (l *Launcher) Unknown(ctx context.Context, vm hypervisor.VMID) error {
	return cleared(ctx, burial, hypervisor.Transient, func() (clear bool, others []Found, err error) {
		held, err := Locked(l.lockOf(vm))
		if err != nil {
			return false, nil, Refuse(hypervisor.Transient, "look at the lock of the VM: %v", err)
		}
		if !held {
			return true, nil, nil
		}
		if others, err = l.running(vm); err != nil {
			return false, nil, Refuse(hypervisor.Transient, "look for another QEMU of the VM: %v", err)
		}
		return false, others, nil
	})
}

// running returns the QEMUs on this machine that run a VM. Those of hosts with another directory
// of locks are not counted: they say that they belong to another installation. A QEMU that says
// nothing was started by an earlier godwit, or by libvirt: it counts where the directory of locks
// is the usual one, which an installation that is kept apart does not use.
func (l *Launcher) running(vm hypervisor.VMID) ([]Found, error) {
	uuid := UUID(vm)
	found, err := FindAll(func(argv []string) bool { return runs(argv) == uuid })
	return slices.DeleteFunc(found, func(f Found) bool {
		locks, known := variable(f.Env, locksVariable)
		if !known {
			locks = durable.Runtime()
		}
		return locks != l.Locks
	}), err
}

// variable returns the value of a variable in an environment.
func variable(env []string, name string) (string, bool) {
	for _, entry := range env {
		if value, is := strings.CutPrefix(entry, name+"="); is {
			return value, true
		}
	}
	return "", false
}

// twice says which QEMUs are in the way, and what to do.
func twice(others []Found) string {
	if len(others) == 0 {
		return "another QEMU of this host holds the lock of the VM: it may be in another " +
			"namespace of processes: find it, and see whether its guest is the one that is wanted"
	}
	var list []string
	for _, o := range others {
		text := fmt.Sprintf("process %d", o.Identity.PID)
		if host, known := variable(o.Env, hostVariable); known {
			text += " of host " + host
		}
		if file := Owned(o.Args); file != "" {
			text += " in " + filepath.Dir(file)
		}
		list = append(list, text)
	}
	return "a QEMU runs the VM on this machine already: " + strings.Join(list, ", ") + ": the VM " +
		"is not started beside it: give its agent back the directory that it belongs to, or shut " +
		"its guest down and end the process"
}
