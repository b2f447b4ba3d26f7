package qmp_test

import (
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
)

// has checks what a QEMU says that its guest has: the memory that was plugged in, and the CPUs.
func (l *lab) has(n name, id vmid, dimms, cpus int) {
	l.t.Helper()
	count := func(command string) int {
		m, err := l.hosts[n].Monitor(id)
		must(l.t, err)
		var all []any
		must(l.t, m.Execute(l.t.Context(), command, nil, &all))
		return len(all)
	}
	if d, c := count("query-memory-devices"), count("query-cpus-fast"); d != dimms || c != cpus {
		l.t.Errorf("QEMU of %s on %s has %d modules and %d CPUs, want %d and %d", id, n, d, c, dimms, cpus)
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
	l.eventually("the note is taken back", func() bool { return l.domain("n1", vm.ID).VM.Equal(vm) })
	l.has("n1", vm.ID, 0, vm.CPUs)
	l.do("n1", vm.ID, hypervisor.Resize{VM: bigger})
	l.has("n1", vm.ID, 1, vm.CPUs+1)
	l.between("n1", vm.ID, "", func(d *qmp.DomainRecord, _ *qmp.Job) { // nor was that noted
		d.VM, d.Hotplug = vm, &bigger
	})
	l.eventually("it is noted", func() bool { return l.domain("n1", vm.ID).VM.Equal(bigger) })
	l.sound("n1", vm.ID)
	l.begin("job", vm.ID, options{})
	l.until("n1", "job", hypervisor.JobSucceeded)
	l.becomes("n2", vm.ID, hypervisor.Running)
	l.has("n2", vm.ID, 1, vm.CPUs+1)
	l.arrives("job", vm.ID)
}
