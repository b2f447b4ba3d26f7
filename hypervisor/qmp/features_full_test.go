package qmp_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/durable"
)

// cpu is what this process has used of it.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// The end of a QEMU that cannot be noted, because the disk is full, is noted later, and not
// tried to be all the time.
func TestAnEndThatCannotBeNotedIsNotedLater(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	vm := l.vm("suite/gone", calm)
	in := hypervisor.Incoming{Job: "job", VM: vm}
	if _, err := l.hosts["n1"].Receive(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	full := filepath.Join(l.config("n1").Dir, "jobs", durable.Name("job")+durable.Unfinished)
	if err := os.Mkdir(full, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.signal("n1", vm.ID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	before := cpu(t)
	time.Sleep(2 * time.Second)
	if used := cpu(t) - before; used > 200*time.Millisecond {
		t.Errorf("in 2 s it has used %v of CPU", used)
	}
	if err := os.Remove(full); err != nil {
		t.Fatal(err)
	}
	l.Eventually("it is noted", func() bool {
		p, err := l.hosts["n1"].Progress(t.Context(), "job")
		return err == nil && p.Status == hypervisor.JobFailed
	})
}

// obstruct keeps the files of a QEMU from being removed until the answer is called.
func (l *lab) obstruct(n name, vm vmid) (clearing func()) {
	l.T.Helper()
	obstacle := filepath.Join(l.config(n).Dir, "vms", durable.Name(string(vm)), "disks.sock",
		"obstacle")
	must(l.T, os.MkdirAll(obstacle, 0o700))
	return func() {
		l.T.Helper()
		must(l.T, os.Remove(obstacle))
	}
}

// diesUncleared kills the QEMU of a target, whose files cannot be removed until the answer is
// called, and waits until its end is noted.
func (l *lab) diesUncleared(n name, vm vmid, job hypervisor.JobID) (clearing func()) {
	l.T.Helper()
	clearing = l.obstruct(n, vm)
	must(l.T, l.signal(n, vm, syscall.SIGKILL))
	l.Until(n, job, hypervisor.JobFailed)
	return clearing
}

// A target that did not come and cannot be cleared away is not there, and does not look like a
// VM that came and was lost. It is cleared away when the place is needed.
func TestATargetThatCannotBeClearedAwayDidNotCome(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	vm, h := l.vm("suite/left", calm), l.hosts["n1"]
	if _, err := h.Receive(t.Context(), hypervisor.Incoming{Job: "job", VM: vm}); err != nil {
		t.Fatal(err)
	}
	clearing := l.diesUncleared("n1", vm.ID, "job")
	for range 20 {
		d, err := h.Domain(t.Context(), vm.ID)
		all, listed := h.Domains(t.Context())
		absent := d.State == hypervisor.Absent && d.Job == "" && len(all) == 0
		if err != nil || listed != nil || !absent {
			t.Fatalf("it is %+v, %v; listed %+v, %v", d, err, all, listed)
		}
		time.Sleep(10 * time.Millisecond)
	}
	again := hypervisor.Incoming{Job: "again", VM: vm}
	if _, err := h.Receive(t.Context(), again); !errors.Is(err, hypervisor.Transient) {
		t.Fatalf("another target beside what is left: %v", err)
	}
	clearing()
	if _, err := h.Receive(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if d, err := h.Domain(t.Context(), vm.ID); err != nil || d.State != hypervisor.Receiving {
		t.Fatalf("it is %+v, %v", d, err)
	}
}

// What a QEMU leaves and cannot be removed for a moment does not keep the room of its VM: it is
// tried again, unasked.
func TestWhatCannotBeRemovedIsRemovedLater(t *testing.T) {
	l := newLab(t, accelerator(t), func(c *qmp.Config) { c.CPUs = 1 })
	vm, other := l.vm("suite/gone", calm), l.vm("suite/next", calm)
	l.start("n1", vm)
	clearing := l.obstruct("n1", vm.ID)
	must(t, l.signal("n1", vm.ID, syscall.SIGKILL))
	l.Eventually("its log is removed, and what follows is tried", func() bool {
		_, err := os.Stat(l.hosts["n1"].Files(vm.ID).Log)
		return errors.Is(err, os.ErrNotExist)
	})
	time.Sleep(100 * time.Millisecond)
	l.Becomes("n1", vm.ID, hypervisor.Crashed)
	l.Refuses("n1", other.ID, hypervisor.Start{VM: other}, hypervisor.NoRoom)
	clearing()
	l.Eventually("there is room", func() bool {
		return l.Host("n1").Do(t.Context(), other.ID, hypervisor.Start{VM: other}) == nil
	})
	l.Do("n1", vm.ID, hypervisor.Forget{})
	l.ends("n1", other.ID)
}

// A VM whose local disk cannot be removed is not forgotten before it is: nothing would know of
// that disk. Its host can be opened meanwhile.
func TestAReleaseIsNotDoneBeforeTheDisksAreGone(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	vm := backendtest.WithDisks(l.vm("suite/gone", calm), twoDisks[1])
	l.furnish("n1", vm)
	l.start("n1", vm)
	l.begin("job", vm.ID, options{})
	l.Until("n1", "job", hypervisor.JobSucceeded)
	disk := l.disk("n1", "data")
	must(t, os.Rename(disk, disk+".away"))
	must(t, os.MkdirAll(filepath.Join(disk, "obstacle"), 0o700)) // it is no file for a while
	release := hypervisor.Release{Job: "job", Moved: hypervisor.Evidence{VM: vm.ID, Host: "n2",
		Proof: hypervisor.RunsAtTarget, Job: "job", By: "test"}}
	for range 2 {
		for range 2 {
			l.Refuses("n1", vm.ID, release, hypervisor.Transient, disk)
		}
		if d := l.Domain("n1", vm.ID); d.State != hypervisor.Absent {
			t.Errorf("of a VM that runs elsewhere there is %+v", d)
		}
		l.Refuses("n1", vm.ID, hypervisor.Start{VM: vm}, hypervisor.Transient, disk)
		l.reopen("n1")
	}
	must(t, os.RemoveAll(disk))
	must(t, os.Rename(disk+".away", disk))
	l.Do("n1", vm.ID, release)
	if left := l.disks("n1"); len(left) > 0 {
		t.Errorf("the source has %v", left)
	}
	l.sound("n2", vm.ID)
	l.ends("n2", vm.ID)
}
