package qmp_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/durable"
)

// reopen replaces a host as if its process had died and another had come.
func (l *lab) reopen(n name) {
	l.T.Helper()
	if _, err := l.open(n); err != nil {
		l.T.Fatal(err)
	}
}

// A QEMU that hangs when its host comes back keeps neither the host nor other VMs,
// and is managed again when it goes on.
func TestAHungQEMUDelaysNoOther(t *testing.T) {
	l := newLab(t, accelerator(t), func(c *qmp.Config) { c.Timeout = silence })
	hung := []hypervisor.VM{l.vm("suite/hung-1", calm), l.vm("suite/hung-2", calm),
		l.vm("suite/hung-3", calm)}
	well := l.vm("suite/well", calm)
	l.start("n1", well)
	for _, vm := range hung {
		l.start("n1", vm)
		if err := l.signal("n1", vm.ID, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	patience := l.config("n1").Timeout
	began := time.Now()
	l.reopen("n1")
	if took := time.Since(began); took > patience {
		t.Errorf("the host took %v to come back, and three QEMUs hang for %v each", took, patience)
	}
	began = time.Now()
	l.sound("n1", well.ID)
	l.begin("job", well.ID, options{})
	l.Until("n1", "job", hypervisor.JobSucceeded)
	l.sound("n2", well.ID)
	l.release("job", well.ID, "n1", "n2")
	if _, err := l.hosts["n1"].Domain(t.Context(), hung[0].ID); err == nil {
		t.Error("a QEMU that hangs has answered")
	}
	backendtest.Refused(t, l.hosts["n1"].Do(t.Context(), hung[0].ID, hypervisor.Pause{}),
		hypervisor.Transient)
	t.Logf("beside three QEMUs that hang, all that took %v", time.Since(began))
	l.Do("n1", hung[2].ID, hypervisor.Kill{}, hypervisor.Forget{}) // it need not answer for that
	for _, vm := range hung[:2] {
		if err := l.signal("n1", vm.ID, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		l.Eventually("it answers again", func() bool {
			d, err := l.hosts["n1"].Domain(t.Context(), vm.ID)
			return err == nil && d.State == hypervisor.Running
		})
		l.sound("n1", vm.ID)
		l.Do("n1", vm.ID, hypervisor.Kill{}, hypervisor.Forget{})
	}
	l.ends("n2", well.ID)
}

// A number that belonged to a QEMU belongs to another process when its host comes
// back: that one is left alone, and the VM is known to have crashed.
func TestAForeignProcessWithTheNumberOfAQEMUIsNotTouched(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	vm := l.vm("suite/gone", calm)
	l.start("n1", vm)
	foreign := exec.CommandContext(t.Context(), "sleep", "300")
	if err := foreign.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- foreign.Wait() }()
	defer func() { foreign.Process.Kill(); <-ended }()

	file := filepath.Join(filepath.Dir(l.hosts["n1"].Files(vm.ID).Log), "qemu.pid")
	pid, err := l.pid("n1", vm.ID)
	if err != nil {
		t.Fatal(err)
	}
	err = l.hosts["n1"].Close()
	delete(l.hosts, "n1")
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err == nil {
		l.Eventually("the process is gone", func() bool { return syscall.Kill(pid, 0) != nil })
		err = os.WriteFile(file, []byte(strconv.Itoa(foreign.Process.Pid)+"\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	l.reopen("n1")
	l.Becomes("n1", vm.ID, hypervisor.Crashed)
	l.Do("n1", vm.ID, hypervisor.Kill{})
	l.start("n1", vm)
	l.sound("n1", vm.ID)
	l.ends("n1", vm.ID)
	select {
	case err := <-ended:
		ended <- err
		t.Errorf("the foreign process has ended: %v", err)
	default:
	}
}

// What does not belong into a host's directory is named, and never removed: an operator
// has put it there. What cannot be told from our own leftovers does no harm.
func TestStrayFilesInTheDirectoryOfAHost(t *testing.T) {
	for _, row := range []struct {
		name, path string
		dir        bool
		words      []string // none: the host comes back
	}{
		{"a file beside everything is not looked at", "notes", false, nil},
		{"a directory beside everything is not looked at", "lost+found", true, nil},
		{"an empty directory is one that a process died in", "vms/stray", true, nil},
		{"a file among the VMs", "vms/stray", false, []string{"vms/stray"}},
		{"a directory with a file in it among the VMs", "vms/stray/file", false,
			[]string{"vms/stray", "record is missing"}},
		{"a file among the jobs", "jobs/stray", false, []string{"jobs/stray"}},
		{"a directory among the jobs", "jobs/stray", true, []string{"jobs/stray"}},
		{"a file among the disks is not looked at", "disks/stray", false, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t, accelerator(t), nil)
			vm := l.vm("suite/there", calm)
			l.start("n1", vm)
			path := filepath.Join(l.dir, "n1", row.path)
			err := os.MkdirAll(filepath.Dir(path), 0o700)
			if row.dir && err == nil {
				err = os.Mkdir(path, 0o700)
			} else if err == nil {
				err = os.WriteFile(path, []byte("stray\n"), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			_, err = l.open("n1")
			if row.words != nil {
				backendtest.Refused(t, err, hypervisor.Invalid, row.words...)
				if _, err := os.Lstat(path); err != nil {
					t.Errorf("it was removed: %v", err)
				}
				if err := os.RemoveAll(filepath.Join(l.dir, "n1", "vms", "stray")); err != nil {
					t.Fatal(err)
				}
				if err := os.RemoveAll(filepath.Join(l.dir, "n1", "jobs", "stray")); err != nil {
					t.Fatal(err)
				}
				l.reopen("n1")
			} else if err != nil {
				t.Fatal(err)
			}
			l.sound("n1", vm.ID)
			l.ends("n1", vm.ID)
		})
	}
}

// A VM that runs, which a process that died or had no answer in time has not noted, is not
// for ever one that starts: it is paused, goes on and moves like any other.
func TestAStartWhoseEndWasNotNotedIsAtItsEnd(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	vm := l.vm("suite/started", calm)
	l.start("n1", vm)
	l.Becomes("n1", vm.ID, hypervisor.Running)
	must(t, l.hosts["n1"].Close())
	delete(l.hosts, "n1")
	path := filepath.Join(l.dir, "n1", "vms", durable.Name(string(vm.ID)), "domain")
	var noted qmp.DomainRecord
	must(t, durable.Read(path, &noted))
	noted.Doing = hypervisor.Starting
	must(t, durable.Write(path, &noted, true))
	l.reopen("n1")
	l.Becomes("n1", vm.ID, hypervisor.Running)
	l.Do("n1", vm.ID, hypervisor.Pause{})
	time.Sleep(100 * time.Millisecond)
	l.Becomes("n1", vm.ID, hypervisor.Paused)
	l.Do("n1", vm.ID, hypervisor.Unpause{})
	l.sound("n1", vm.ID)
	l.begin("job", vm.ID, options{})
	l.Until("n1", "job", hypervisor.JobSucceeded)
	l.arrives("job", vm.ID)
}
