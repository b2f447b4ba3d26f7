package qmp_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/backendtest"
)

// has checks what a QEMU says that its guest has: the memory that was plugged in, and the CPUs.
func (l *lab) has(n name, id vmid, dimms, cpus int) {
	l.T.Helper()
	count := func(command string) int {
		m, err := l.hosts[n].Monitor(id)
		must(l.T, err)
		var all []any
		must(l.T, m.Execute(l.T.Context(), command, nil, &all))
		return len(all)
	}
	if d, c := count("query-memory-devices"), count("query-cpus-fast"); d != dimms || c != cpus {
		l.T.Errorf("QEMU of %s on %s has %d modules and %d CPUs, want %d and %d", id, n, d, c,
			dimms, cpus)
	}
}

// A resize of a VM that runs, that we did not survive, is noted by the next process as far as it was
// done, and its repetition does the rest. A target is started with what the source has.
func TestAHotplugThatWasCutIsFinished(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	vm := l.vm("suite/grower", calm)
	hardware := *vm.Hardware
	hardware.MaxMemory, hardware.MaxCPUs = hypervisor.GiB, vm.CPUs+2
	vm.Hardware = &hardware
	bigger := vm
	bigger.Memory, bigger.CPUs = vm.Memory+hypervisor.DIMMUnit, vm.CPUs+1
	bigger, err := vm.Grow(bigger)
	must(t, err)
	l.start("n1", vm)
	l.between("n1", vm.ID, "", func(d *qmp.DomainRecord, _ *qmp.Job) { // nothing was done
		d.Hotplug = &bigger
	})
	l.Eventually("the note is taken back", func() bool {
		return l.Domain("n1",
			vm.ID).VM.Equal(vm)
	})
	l.has("n1", vm.ID, 0, vm.CPUs)
	l.Do("n1", vm.ID, hypervisor.Resize{VM: bigger})
	l.has("n1", vm.ID, 1, vm.CPUs+1)
	l.between("n1", vm.ID, "", func(d *qmp.DomainRecord, _ *qmp.Job) { // nor was that noted
		d.VM, d.Hotplug = vm, &bigger
	})
	l.Eventually("it is noted", func() bool { return l.Domain("n1", vm.ID).VM.Equal(bigger) })
	l.sound("n1", vm.ID)
	l.begin("job", vm.ID, options{})
	l.Until("n1", "job", hypervisor.JobSucceeded)
	l.Becomes("n2", vm.ID, hypervisor.Running)
	l.has("n2", vm.ID, 1, vm.CPUs+1)
	l.arrives("job", vm.ID)
}

// The disks of a VM that runs grow, local ones and shared ones: its guest, its images and its target
// have the size that was asked for. What QEMU refuses stays as it is, and nothing is made smaller that
// is larger than was known. What was cut is noted by the next process.
func TestTheDisksOfAVMThatRunsGrow(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	shared := filepath.Join(t.TempDir(), "shared")
	backendtest.Image(t, "create", "-q", "-f", "raw", shared, "4M")
	vm := backendtest.WithDisks(l.vm("suite/grower", calm), hypervisor.Disk{Name: "data", Format: "qcow2", Size: 4 * mib},
		hypervisor.Disk{Name: "shared", Path: shared, Format: "raw", Size: 2 * mib})
	l.start("n1", vm)
	sized := func(data, shared hypervisor.Bytes) hypervisor.VM {
		bigger := enlarged(vm, data, shared)
		bigger.Memory, bigger.CPUs = vm.Memory, vm.CPUs
		return bigger
	}
	l.Refuses("n1", vm.ID, hypervisor.Resize{VM: sized(4*mib, 3*mib)}, hypervisor.Invalid,
		"disk shared: it has 4MiB already, and never shrinks")
	l.Refuses("n1", vm.ID, hypervisor.Resize{VM: sized(4<<50, 2*mib)}, hypervisor.Conflict,
		"disk data of 4MiB to 4096TiB")
	if d := l.Domain("n1", vm.ID); !d.VM.Equal(vm) {
		t.Errorf("it has become %+v", d.VM.Hardware)
	}
	bigger := sized(16*mib, 8*mib)
	l.Do("n1", vm.ID, hypervisor.Resize{VM: bigger})
	l.seesDisks("n1", vm.ID, 16*mib, 8*mib)
	l.between("n1", vm.ID, "", func(d *qmp.DomainRecord, _ *qmp.Job) { // one was done, and not noted
		half := sized(16*mib, 9*mib)
		d.VM, d.Hotplug = sized(4*mib, 8*mib), &half
	})
	l.Eventually("it is noted", func() bool { return l.Domain("n1", vm.ID).VM.Equal(bigger) })
	l.begin("job", vm.ID, options{})
	l.Until("n1", "job", hypervisor.JobSucceeded)
	l.Becomes("n2", vm.ID, hypervisor.Running)
	l.seesDisks("n2", vm.ID, 16*mib, 8*mib)
	l.arrives("job", vm.ID)
	if text := backendtest.Image(t, "info", "-U", l.disk("n2", "data")); !strings.Contains(text, "16 MiB") {
		t.Errorf("the image at the target: %s", text)
	}
}

// seesDisks checks how large a guest sees its disks data and shared.
func (l *lab) seesDisks(n name, id vmid, data, shared hypervisor.Bytes) {
	l.T.Helper()
	m, err := l.hosts[n].Monitor(id)
	must(l.T, err)
	var all []struct {
		Device   string `json:"qdev"`
		Inserted struct {
			Image struct {
				Size hypervisor.Bytes `json:"virtual-size"`
			}
		}
	}
	must(l.T, m.Execute(l.T.Context(), "query-block", nil, &all))
	got := map[string]hypervisor.Bytes{}
	for _, b := range all {
		got[filepath.Base(b.Device)] = b.Inserted.Image.Size
	}
	if got["dev.data"] != data || got["dev.shared"] != shared {
		l.T.Errorf("the guest of %s on %s sees %v, want %v and %v", id, n, got, data, shared)
	}
}
