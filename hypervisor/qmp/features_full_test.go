package qmp_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
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
	l.eventually("it is noted", func() bool {
		p, err := l.hosts["n1"].Progress(t.Context(), "job")
		return err == nil && p.Status == hypervisor.JobFailed
	})
}

// diesUncleared kills the QEMU of a target, whose files cannot be removed until the answer is
// called, and waits until its end is noted.
func (l *lab) diesUncleared(n name, vm vmid, job hypervisor.JobID) (clearing func()) {
	l.t.Helper()
	obstacle := filepath.Join(l.config(n).Dir, "vms", durable.Name(string(vm)), "disks.sock",
		"obstacle")
	if err := os.MkdirAll(obstacle, 0o700); err != nil {
		l.t.Fatal(err)
	}
	if err := l.signal(n, vm, syscall.SIGKILL); err != nil {
		l.t.Fatal(err)
	}
	l.until(n, job, hypervisor.JobFailed)
	return func() {
		l.t.Helper()
		if err := os.Remove(obstacle); err != nil {
			l.t.Fatal(err)
		}
	}
}

// A target that did not come and cannot be cleared away is not there, and does not look like a
// VM that came and was lost. It is cleared away when somebody needs the place.
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
