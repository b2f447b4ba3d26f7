//go:build linux

package qmp_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/durable"
	"github.com/godwit-vm/godwit/internal/qemu"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// processesBelow lists the processes that work in a directory.
func processesBelow(dir string) []int {
	found, _ := qemu.Find(func(argv []string) bool {
		return strings.HasPrefix(qemu.Owned(argv), dir+string(filepath.Separator))
	})
	var pids []int
	for _, f := range found {
		pids = append(pids, f.Identity.PID)
	}
	return pids
}

// another opens a host with another directory on this machine, and starts a VM there.
func (l *lab) another(n name, dir string, vm hypervisor.VM) error {
	l.T.Helper()
	c := l.config(n)
	c.Dir = filepath.Join(l.dir, dir)
	h, err := qmp.New(testutil.Context(l.T, testutil.DefaultLimit), c)
	must(l.T, err)
	defer func() { must(l.T, h.Close()) }()
	return h.Do(testutil.Context(l.T, testutil.DefaultLimit), vm.ID, hypervisor.Start{VM: vm})
}

// refusesSecond checks that a start was refused because a QEMU runs the VM, and that this
// goes on as the only one.
func (l *lab) refusesSecond(n name, vm hypervisor.VM, err error) {
	l.T.Helper()
	if !errors.Is(err, hypervisor.Conflict) ||
		!strings.Contains(err.Error(), "a QEMU runs the VM on this machine already: process ") {
		l.T.Errorf("it is started beside itself: %v", err)
	}
	if pids := processesBelow(l.dir); len(pids) != 1 {
		l.T.Errorf("%d QEMUs run: %v", len(pids), pids)
	}
	l.Becomes(n, vm.ID, hypervisor.Running)
}

func TestNoSecondQEMUOfAVMOnOneMachine(t *testing.T) {
	for _, row := range []struct {
		name string
		host name
		dir  string
	}{
		{"its host comes with an empty directory", "n1", "empty"},
		{"another host starts it", "n3", "n3"},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t, accelerator(t), together)
			vm := l.vm("suite/once", calm)
			l.start("n1", vm)
			l.refusesSecond("n1", vm, l.another(row.host, row.dir, vm))
		})
	}
	t.Run("an empty directory does not say what the VM does", func(t *testing.T) {
		l := newLab(t, accelerator(t), together)
		vm := l.vm("suite/once", calm)
		l.start("n1", vm)
		must(t, l.hosts["n1"].Close())
		delete(l.hosts, "n1")
		c := l.config("n1")
		c.Dir = filepath.Join(l.dir, "empty")
		h, err := qmp.New(testutil.Context(t, testutil.DefaultLimit), c)
		must(t, err)
		d, err := h.Domain(testutil.Context(t, testutil.DefaultLimit), vm.ID)
		if !errors.Is(err, hypervisor.Conflict) {
			t.Errorf("it is %v: %v", d.State, err)
		}
		for _, c := range []hypervisor.Command{hypervisor.Kill{}, hypervisor.Stop{},
			hypervisor.Discard{Job: "web#1"}, hypervisor.Forget{}} {
			err := h.Do(testutil.Context(t, testutil.DefaultLimit), vm.ID, c)
			if !errors.Is(err, hypervisor.Conflict) {
				t.Errorf("%T is done: %v", c, err)
			}
		}
		other := vm
		other.ID = "suite/another"
		if d, err := h.Domain(testutil.Context(t, testutil.DefaultLimit), other.ID); err != nil ||
			d.State != hypervisor.Absent {
			t.Errorf("another VM is %v: %v", d.State, err)
		}
		for _, pid := range processesBelow(l.dir) {
			must(t, syscall.Kill(pid, syscall.SIGKILL))
		}
		d, err = h.Domain(testutil.Context(t, testutil.DefaultLimit), vm.ID)
		if err != nil || d.State != hypervisor.Absent { // also when it has just been killed
			t.Errorf("its QEMU was killed, and it is %v: %v", d.State, err)
		}
		must(t, h.Close())
	})
	t.Run("the directory of the VM is moved away, as it was advised", func(t *testing.T) {
		l := newLab(t, accelerator(t), together)
		vm := l.vm("suite/once", calm)
		l.start("n1", vm)
		must(t, l.hosts["n1"].Close())
		delete(l.hosts, "n1")
		of := filepath.Join(l.config("n1").Dir, "vms", durable.Name(string(vm.ID)))
		must(t, os.Rename(of, filepath.Join(l.dir, "away")))
		_, err := l.open("n1")
		must(t, err)
		err = l.hosts["n1"].Do(testutil.Context(t, testutil.DefaultLimit), vm.ID, hypervisor.Start{VM: vm})
		if !errors.Is(err, hypervisor.Conflict) {
			t.Errorf("it is started beside itself: %v", err)
		}
		if pids := processesBelow(l.dir); len(pids) != 1 {
			t.Errorf("%d QEMUs run: %v", len(pids), pids)
		}
		// What the message says: the directory is given back.
		must(t, l.hosts["n1"].Close())
		delete(l.hosts, "n1")
		must(t, os.Rename(filepath.Join(l.dir, "away"), of))
		_, err = l.open("n1")
		must(t, err)
		l.Becomes("n1", vm.ID, hypervisor.Running)
	})
	t.Run("the lock dies with the QEMU and not with its agent", func(t *testing.T) {
		l := newLab(t, accelerator(t), together)
		vm := l.vm("suite/once", calm)
		l.start("n1", vm)
		must(t, l.hosts["n1"].Close()) // nothing of the agent is left
		delete(l.hosts, "n1")
		if err := l.another("n1", "empty", vm); !errors.Is(err, hypervisor.Conflict) {
			t.Errorf("it is started beside itself: %v", err)
		}
		for _, pid := range processesBelow(l.dir) {
			must(t, syscall.Kill(pid, syscall.SIGKILL))
		}
		l.Eventually("the QEMU has ended", func() bool { return len(processesBelow(l.dir)) == 0 })
		if err := l.another("n1", "empty", vm); err != nil {
			t.Errorf("its QEMU has ended: %v", err)
		}
	})
	t.Run("a host of another installation is not in the way", func(t *testing.T) {
		l := newLab(t, accelerator(t), together)
		vm := l.vm("suite/once", calm)
		l.start("n1", vm)
		other := newLab(t, accelerator(t), together)
		other.start("n1", other.vm("suite/once", calm))
	})
}

// A QEMU that an earlier godwit has started holds no lock, and says nothing of its host.
func TestAQEMUWithoutALockIsFoundByItsArguments(t *testing.T) {
	l := newLab(t, accelerator(t), func(c *qmp.Config) { c.Locks = durable.Runtime() })
	vm := l.vm(vmid(fmt.Sprintf("suite/unmarked-%d", os.Getpid())), calm)
	path, err := exec.LookPath("qemu-system-x86_64")
	must(t, err)
	p, err := qemu.Start(qemu.Spec{Path: path, Args: []string{"-machine", "none", "-display",
		"none", "-S", "-uuid", qemu.UUID(vm.ID), "-pidfile", filepath.Join(l.dir, "pid")}})
	must(t, err)
	t.Cleanup(func() { _ = p.Kill(); <-p.Done() })
	l.Eventually("it has arguments", func() bool { return len(processesBelow(l.dir)) == 1 })
	if err := l.another("n1", "empty", vm); !errors.Is(err, hypervisor.Conflict) {
		t.Errorf("it is started beside itself: %v", err)
	}
}

// QEMU locks the images of disks: two hosts with one file, which know nothing of each other,
// do not both run the VM.
func TestTwoHostsWithOneImage(t *testing.T) {
	l := newLab(t, accelerator(t), together)
	vm := l.vm("suite/once", calm)
	path := filepath.Join(l.dir, "shared.img")
	must(t, os.WriteFile(path, make([]byte, 1<<20), 0o600))
	vm = vm.WithDisks([]hypervisor.Disk{{Name: "root", Path: path, Size: 1 << 20}})
	l.start("n1", vm)
	apart := newLab(t, accelerator(t), together)
	err := apart.hosts["n2"].Do(testutil.Context(t, testutil.DefaultLimit), vm.ID, hypervisor.Start{VM: vm})
	if !errors.Is(err, hypervisor.Invalid) || !strings.Contains(err.Error(), "lock") {
		t.Errorf("both write to one image: %v", err)
	}
	if pids := processesBelow(apart.dir); len(pids) != 0 {
		t.Errorf("%d QEMUs run beside it", len(pids))
	}
	l.Becomes("n1", vm.ID, hypervisor.Running)
	must(t, l.hosts["n1"].Do(context.Background(), vm.ID, hypervisor.Kill{}))
	l.Becomes("n1", vm.ID, hypervisor.Shutoff)
	must(t, apart.hosts["n2"].Do(testutil.Context(t, testutil.DefaultLimit), vm.ID, hypervisor.Start{VM: vm}))
}
