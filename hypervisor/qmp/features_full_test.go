package qmp_test

import (
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
