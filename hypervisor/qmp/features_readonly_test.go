package qmp_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backendtest"
)

// readOnly makes what is below a directory read-only for files that are opened from now on, until
// the answer is called. It skips the test where mounting is not allowed.
func readOnly(t *testing.T, dir string) (writable func()) {
	t.Helper()
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	mounted := true
	writable = func() {
		if mounted {
			mounted = false
			must(t, unix.Unmount(dir, unix.MNT_DETACH))
		}
	}
	t.Cleanup(writable)
	must(t, unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	if f, err := os.CreateTemp(dir, ""); err == nil {
		_ = f.Close()
		t.Fatalf("%s can be written to", f.Name())
	}
	return writable
}

// TestAHostWhoseDirectoryIsReadOnly refuses what it would have to note, and says why; its VMs run
// on, and it goes on when the directory can be written to again.
func TestAHostWhoseDirectoryIsReadOnly(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	vm, other := l.vm("suite/traveller", calm), l.vm("suite/other", calm)
	l.start("n1", vm)
	writable := readOnly(t, l.config("n1").Dir)
	const why = "read-only file system"
	l.Refuses("n1", other.ID, hypervisor.Start{VM: other}, hypervisor.Transient, why)
	l.Refuses("n1", vm.ID, hypervisor.Kill{}, hypervisor.Transient, why)
	if err := l.send("job", vm.ID, options{}); err == nil {
		t.Error("a migration has begun that cannot be noted")
	} else {
		backendtest.Refused(t, err, hypervisor.Transient, why)
	}
	l.sound("n1", vm.ID)
	if all, err := l.Host("n1").Domains(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("the host has %+v, %v", all, err)
	}
	writable()
	l.Do("n2", vm.ID, hypervisor.Discard{Job: "job"})
	l.begin("again", vm.ID, options{})
	l.arrives("again", vm.ID)
}
