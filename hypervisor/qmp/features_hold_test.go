package qmp_test

import (
	"os"
	"strconv"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/qemu"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// crowd lets the threads of a QEMU run on one CPU only, where the one that obeys commands
// overtakes the others if that is allowed.
func (l *lab) crowd(n name, id vmid) {
	l.T.Helper()
	pid, err := l.pid(n, id)
	must(l.T, err)
	var one, may unix.CPUSet
	must(l.T, unix.SchedGetaffinity(0, &may))
	for cpu := 0; one.Count() == 0; cpu++ {
		if may.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	threads, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	must(l.T, err)
	for _, thread := range threads {
		tid, err := strconv.Atoi(thread.Name())
		must(l.T, err)
		must(l.T, unix.SchedSetaffinity(tid, &one)) // those that it starts inherit that
	}
	err = unix.SchedSetAttr(pid, &unix.SchedAttr{Size: unix.SizeofSchedAttr,
		Policy: unix.SCHED_NORMAL, Nice: -20}, 0)
	if err != nil {
		l.T.Logf("it does not overtake: %v", err)
	}
}

// whenNoted lets n1 do something when it has noted what it does next, and before it does that.
func whenNoted(then *atomic.Pointer[func()]) func(*qmp.Config) {
	return func(c *qmp.Config) {
		if c.Name != "n1" {
			return
		}
		c.Changed = func(hypervisor.VMID) {
			if f := then.Swap(nil); f != nil {
				(*f)()
			}
		}
	}
}

// A transfer that is held before its switch-over, and is cancelled in the very moment in which
// QEMU has stopped the guest for it, ends, and the guest runs on.
func TestAHeldTransferIsCancelledWhenItsGuestHasJustStopped(t *testing.T) {
	var noted atomic.Pointer[func()]
	l := newLab(t, accelerator(t), whenNoted(&noted))
	vm := l.vm("suite/held", calm)
	l.start("n1", vm)
	l.crowd("n1", vm.ID)
	m, err := l.hosts["n1"].Monitor(vm.ID)
	must(t, err)
	for i := range 5 {
		id := job("job" + strconv.Itoa(i))
		l.begin(id, vm.ID, options{HoldSwitchOver: true, Bandwidth: 1 << 20})
		l.Until("n1", id, hypervisor.JobActive)
		events := m.(qemu.Client).Subscribe()
		begun := make(chan struct{})
		then := func() { // that it is to be cancelled is noted, and QEMU not told yet
			close(begun)
			ctx := testutil.Context(t, testutil.DefaultLimit)
			for e, err := events.Next(ctx); err == nil && e.Name != "STOP"; {
				e, err = events.Next(ctx)
			}
		}
		noted.Store(&then)
		cancelled := make(chan error)
		go func() {
			cancelled <- l.hosts["n1"].Adjust(t.Context(), id, hypervisor.Cancel{})
		}()
		<-begun
		l.set("n1", vm.ID, map[string]any{"max-bandwidth": 1 << 40})
		must(t, <-cancelled)
		events.Close()
		l.Until("n1", id, hypervisor.JobCancelled)
		l.sound("n1", vm.ID)
		l.Do("n2", vm.ID, hypervisor.Discard{Job: id})
	}
	l.ends("n1", vm.ID)
}
