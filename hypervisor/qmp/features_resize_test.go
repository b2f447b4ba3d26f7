package qmp_test

import (
	"os"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/backendtest"
)

// What a disk has beyond the size that is noted of it may have been written on: a resize that
// fails does not take it away, and none makes it smaller.
func TestAResizeThatFailsTakesNothingAway(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	vm := backendtest.WithDisks(l.vm("suite/grower", calm), hypervisor.Disk{Name: "data", Size: 4 * mib},
		hypervisor.Disk{Name: "last", Size: 4 * mib})
	contents := l.furnish("n1", vm)
	backendtest.Image(t, "resize", "-q", "-f", "raw", l.disk("n1", "data"), "8M")
	contents["data"] = append(contents["data"], make([]byte, 4<<20)...)
	l.start("n1", vm)
	l.write("n1", vm.ID, "data", contents["data"], 6<<20)
	l.Do("n1", vm.ID, hypervisor.Kill{})

	last := l.disk("n1", "last")
	must(t, os.Rename(last, last+".away"))
	must(t, os.Mkdir(last, 0o700))
	l.Refuses("n1", vm.ID, hypervisor.Resize{VM: enlarged(vm, 16*mib, 16*mib)},
		hypervisor.Transient, last)
	must(t, os.Remove(last))
	must(t, os.Rename(last+".away", last))
	l.same("n1", contents)
	l.Refuses("n1", vm.ID, hypervisor.Resize{VM: enlarged(vm, 6*mib, 16*mib)},
		hypervisor.Invalid, "data", "never shrinks", "8MiB")
	l.same("n1", contents)
	if d := l.Domain("n1", vm.ID); !d.VM.Equal(vm) {
		t.Errorf("it has become %+v", d.VM)
	}
	l.Do("n1", vm.ID, hypervisor.Resize{VM: enlarged(vm, 8*mib, 16*mib)}) // which it has
	contents["last"] = append(contents["last"], make([]byte, 12<<20)...)
	l.same("n1", contents)
	l.ends("n1", vm.ID)
}

// A resize that we did not survive, after a disk had grown, is done by its repetition.
func TestAResizeThatWasCutIsRepeated(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	vm := backendtest.WithDisks(l.vm("suite/grower", calm), hypervisor.Disk{Name: "data", Size: 4 * mib},
		hypervisor.Disk{Name: "last", Format: "qcow2", Size: 4 * mib})
	contents := l.furnish("n1", vm)
	bigger := enlarged(vm, 8*mib, 8*mib)
	l.between("n1", vm.ID, "", func(*qmp.DomainRecord, *qmp.Job) {
		backendtest.Image(t, "resize", "-q", "-f", "raw", l.disk("n1", "data"), "8M")
	})
	if d := l.Domain("n1", vm.ID); !d.VM.Equal(vm) {
		t.Errorf("it has become %+v", d.VM)
	}
	for range 2 {
		l.Do("n1", vm.ID, hypervisor.Resize{VM: bigger})
	}
	for disk := range contents {
		contents[disk] = append(contents[disk], make([]byte, 4<<20)...)
	}
	l.same("n1", contents)
	l.start("n1", bigger)
	l.begin("job", vm.ID, options{})
	l.Until("n1", "job", hypervisor.JobSucceeded)
	l.afterwards("job", vm.ID, contents)
}

// A resize whose end could not be noted, or that we did not survive, and that is not repeated does
// not keep the VM from moving, nor from running: its disks are what they were.
func TestAResizeThatWasCutAndIsNotRepeatedIsUndone(t *testing.T) {
	for _, row := range []struct {
		name   string
		resize func(l *lab, before, after hypervisor.VM)
	}{
		{"it could not be noted", func(l *lab, before, after hypervisor.VM) {
			last := l.unwritable("n1", before.ID)
			l.Refuses("n1", before.ID, hypervisor.Resize{VM: after}, hypervisor.Transient)
			last()
			l.Refuses("n1", before.ID, hypervisor.Resize{VM: after}, hypervisor.Transient)
		}},
		{"we did not survive it", func(l *lab, before, _ hypervisor.VM) {
			l.between("n1", before.ID, "", func(d *qmp.DomainRecord, _ *qmp.Job) {
				d.Growing = before.Hardware.Disks
				backendtest.Image(l.T, "resize", "-q", "-f", "raw", l.disk("n1", "data"), "8M")
			})
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t, accelerator(t), nil)
			vm := backendtest.WithDisks(l.vm("suite/grower", calm),
				hypervisor.Disk{Name: "data", Size: 4 * mib},
				hypervisor.Disk{Name: "last", Format: "qcow2", Size: 4 * mib})
			contents := l.furnish("n1", vm)
			row.resize(l, vm, enlarged(vm, 8*mib, 8*mib))
			l.begin("cold", vm.ID, options{})
			l.Until("n1", "cold", hypervisor.JobSucceeded)
			l.Becomes("n2", vm.ID, hypervisor.Shutoff)
			l.afterwards("cold", vm.ID, contents)
		})
	}
}
