package qmp_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/backendtest"
)

// hangs opens a lab whose hosts wait for no QEMU for long.
func hangs(t *testing.T) *lab {
	t.Helper()
	return newLab(t, accelerator(t), func(c *qmp.Config) { c.Timeout = time.Second })
}

// What is said of a QEMU that does not answer names its VM, its process and the way out, which
// is there, whether or not it was heard since its host was opened.
func TestAQEMUThatHangsIsNamedAndCanBeKilled(t *testing.T) {
	for _, row := range []struct {
		name   string
		before func(*lab)
	}{
		{"it was heard before", func(*lab) {}},
		{"its host was opened since", func(l *lab) { l.reopen("n1") }},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := hangs(t)
			vm := l.vm("suite/hung", calm)
			l.start("n1", vm)
			must(t, l.signal("n1", vm.ID, syscall.SIGSTOP))
			row.before(l)
			pid, err := l.pid("n1", vm.ID)
			must(t, err)
			words := []string{string(vm.ID), "process " + strconv.Itoa(pid), "Kill ends it"}
			_, err = l.hosts["n1"].Domain(t.Context(), vm.ID)
			backendtest.Refused(t, err, hypervisor.Transient, words...)
			for _, c := range []hypervisor.Command{hypervisor.Pause{}, hypervisor.Reboot{},
				hypervisor.Forget{}, hypervisor.Start{VM: vm}} {
				l.Refuses("n1", vm.ID, c, hypervisor.Transient, words...)
			}
			l.ends("n1", vm.ID)
		})
	}
}

// A guest that was to stop is stopped by force when it has had its time, though its QEMU hangs.
func TestAStopOfAQEMUThatHangsIsDoneByForce(t *testing.T) {
	stubborn := calm
	stubborn.Stubborn = true
	for _, row := range []struct {
		name string
		stop func(*lab, vmid)
	}{
		{"after it was asked", func(l *lab, id vmid) {
			l.Do("n1", id, hypervisor.Stop{Grace: 2 * time.Second})
			must(l.T, l.signal("n1", id, syscall.SIGSTOP))
		}},
		{"after it was asked, and its host is opened anew", func(l *lab, id vmid) {
			l.Do("n1", id, hypervisor.Stop{Grace: 2 * time.Second})
			must(l.T, l.signal("n1", id, syscall.SIGSTOP))
			l.reopen("n1")
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := hangs(t)
			vm := l.vm("suite/hung", stubborn)
			l.start("n1", vm)
			asked := time.Now()
			row.stop(l, vm.ID)
			l.Eventually("it is stopped", func() bool {
				d, err := l.hosts["n1"].Domain(t.Context(), vm.ID)
				return err == nil && d.State == hypervisor.Shutoff
			})
			if took := time.Since(asked); took < 2*time.Second {
				t.Errorf("it had only %v", took)
			}
			l.Do("n1", vm.ID, hypervisor.Forget{})
			l.empty()
		})
	}
}

// The QEMU of a source that hangs when its host comes back may have handed its VM over, and the
// VM may run: it is not killed, and whatever ends it, the VM is not started a second time.
func TestASourceThatHangsMayHaveHandedOver(t *testing.T) {
	l := hangs(t)
	vm := l.vm("suite/hung", calm)
	l.start("n1", vm)
	l.begin("job", vm.ID, options{})
	l.Until("n1", "job", hypervisor.JobSucceeded)
	must(t, l.signal("n1", vm.ID, syscall.SIGSTOP))
	l.reopen("n1")
	l.Refuses("n1", vm.ID, hypervisor.Kill{}, hypervisor.Conflict, "may be HandingOver", "process")
	l.Refuses("n1", vm.ID, hypervisor.Stop{}, hypervisor.Transient)
	dead := hypervisor.Evidence{Proof: hypervisor.ProcessReaped, VM: vm.ID, Host: "n2", Job: "job"}
	l.Refuses("n1", vm.ID, hypervisor.Abandon{Job: "job", Dead: dead}, hypervisor.Transient)
	moved := hypervisor.Evidence{Proof: hypervisor.RunsAtTarget, VM: vm.ID, Host: "n2", Job: "job"}
	l.Refuses("n1", vm.ID, hypervisor.Release{Job: "job", Moved: moved}, hypervisor.Conflict,
		"may be HandingOver", "process")
	must(t, l.signal("n1", vm.ID, syscall.SIGKILL))
	l.Becomes("n1", vm.ID, hypervisor.Crashed)
	l.Refuses("n1", vm.ID, hypervisor.Start{VM: vm}, hypervisor.Conflict, "may run at the target")
	l.arrives("job", vm.ID)
}

// A guest that cannot be asked is not stopped by force later: nothing is noted.
func TestAStopThatTheGuestWasNotAskedForIsNone(t *testing.T) {
	l := hangs(t)
	vm := l.vm("suite/hung", calm)
	l.start("n1", vm)
	must(t, l.signal("n1", vm.ID, syscall.SIGSTOP))
	for range 2 {
		l.Refuses("n1", vm.ID, hypervisor.Stop{Grace: time.Second}, hypervisor.Transient)
	}
	time.Sleep(1500 * time.Millisecond)
	must(t, l.signal("n1", vm.ID, syscall.SIGCONT))
	l.Eventually("it runs on", func() bool {
		d, err := l.hosts["n1"].Domain(t.Context(), vm.ID)
		return err == nil && d.State == hypervisor.Running
	})
	l.sound("n1", vm.ID)
	l.ends("n1", vm.ID)
}

// Nor is a guest whose power button could not be pressed, after that was noted.
func TestAGuestThatCouldNotBeAskedRunsOn(t *testing.T) {
	for _, c := range []hypervisor.Command{hypervisor.Stop{Grace: time.Second},
		hypervisor.Reboot{}} {
		t.Run(fmt.Sprintf("%T", c), func(t *testing.T) {
			var gone atomic.Pointer[context.CancelFunc]
			l := newLab(t, accelerator(t), func(c *qmp.Config) {
				c.Changed = func(hypervisor.VMID) {
					if cancel := gone.Load(); cancel != nil {
						(*cancel)()
					}
				}
			})
			vm := l.vm("suite/sleeper", calm)
			l.start("n1", vm)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			gone.Store(&cancel)
			err := l.hosts["n1"].Do(ctx, vm.ID, c)
			backendtest.Refused(t, err, hypervisor.Transient, "not sent")
			l.Becomes("n1", vm.ID, hypervisor.Running)
			time.Sleep(1500 * time.Millisecond)
			l.sound("n1", vm.ID)
			l.ends("n1", vm.ID)
		})
	}
}

// A QEMU that has just been started may take longer until it answers than one that runs: it may
// touch all memory of its guest before. It is waited for.
func TestAQEMUThatBeginsSlowlyIsWaitedFor(t *testing.T) {
	program, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		t.Skip("no QEMU here: ", err)
	}
	slow := filepath.Join(t.TempDir(), "qemu")
	must(t, os.WriteFile(slow, []byte("#!/bin/sh\nsleep 2.5\nexec "+program+" \"$@\"\n"), 0o755))
	l := newLab(t, accelerator(t), func(c *qmp.Config) { c.QEMU, c.Timeout = slow, time.Second })
	vm := l.vm("suite/slow", calm)
	began := time.Now()
	l.start("n1", vm)
	if took := time.Since(began); took < 2*time.Second {
		t.Fatalf("it began within %v: it was not slow", took)
	}
	l.Becomes("n1", vm.ID, hypervisor.Running)
}

// A QEMU that is killed while it starts, as when the host has no memory left, says nothing against
// its VM: it is worth another attempt.
func TestAQEMUThatIsKilledWhileItStartsIsTransient(t *testing.T) {
	killed := filepath.Join(t.TempDir(), "qemu")
	must(t, os.WriteFile(killed, []byte("#!/bin/sh\nkill -9 $$\n"), 0o755))
	l := newLab(t, accelerator(t), func(c *qmp.Config) { c.QEMU = killed })
	vm := l.vm("suite/killed", calm)
	l.Refuses("n1", vm.ID, hypervisor.Start{VM: vm}, hypervisor.Transient, "signal 9 (killed)",
		"kernel's log")
}
