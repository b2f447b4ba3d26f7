//go:build linux

package qmp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/qemu"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// busy is a guest that writes as it moves.
var busy = guest.Params{Fill: 16 << 20, WorkingSet: 4 << 20, Rate: 100 << 20, Random: true}

// move moves a VM from one host to the other and returns when it runs there.
func (l *lab) move(job hypervisor.JobID, vm hypervisor.VM, from, to name) {
	l.T.Helper()
	ctx := l.T.Context()
	address, err := l.Host(to).Receive(ctx, hypervisor.Incoming{Job: job, VM: vm})
	if err == nil {
		err = l.hosts[from].Migrate(ctx, hypervisor.Outgoing{Job: job, VM: vm.ID, Target: to,
			Address: address})
	}
	if err != nil {
		l.T.Fatal(err)
	}
	l.Until(from, job, hypervisor.JobSucceeded)
}

// release removes what is left of a VM that has moved.
func (l *lab) release(job hypervisor.JobID, id vmid, from, to name) {
	l.T.Helper()
	err := l.hosts[from].Do(l.T.Context(), id, hypervisor.Release{Job: job,
		Moved: hypervisor.Evidence{Proof: hypervisor.RunsAtTarget, VM: id, Host: to, Job: job,
			By: "test"}})
	if err != nil {
		l.T.Fatal(err)
	}
}

// A busy guest moves there and back again, and again. All of its memory is read
// each time, nothing is left behind, and nothing grows.
func TestManyMigrationsKeepTheMemoryAndLeakNothing(t *testing.T) {
	testutil.Sample(t, 5)
	const warmUp = 5
	rounds := testutil.Rounds(t, 10, 200)
	l := newLab(t, accelerator(t), nil)
	vm := l.vm("suite/traveller", busy)
	if err := l.Host("n1").Do(t.Context(), vm.ID, hypervisor.Start{VM: vm}); err != nil {
		t.Fatal(err)
	}
	from, to := name("n1"), name("n2")
	var before usage
	for i := range rounds {
		if i == warmUp {
			before = l.usage()
		}
		job := hypervisor.JobID(fmt.Sprintf("job-%d", i))
		l.move(job, vm, from, to)
		if err := l.verify(to, vm.ID); err != nil {
			t.Fatalf("round %d, on %s: %v", i, to, err)
		}
		l.release(job, vm.ID, from, to)
		from, to = to, from
	}
	after := l.usage()
	t.Logf("%d migrations, memory verified after each; used before %v, after %v",
		rounds, before, after)
	if after.processes != 1 || after.files > before.files+4 || after.sockets > before.sockets ||
		after.goroutines > before.goroutines+4 || after.heap > before.heap+8<<20 {
		t.Error("something grows")
	}
	if r := l.pulse(vm.ID).Log(); r.Check() != nil || r.Boots > 1 {
		t.Errorf("the guest booted %d times: %v", r.Boots, r.Check())
	}
}

// A usage is what the lab has of the machine.
type usage struct {
	files, sockets, processes, goroutines int
	heap                                  uint64
}

func (u usage) String() string {
	return fmt.Sprintf("%d open files, %d sockets on disk, %d QEMUs, %d goroutines, %d KiB",
		u.files, u.sockets, u.processes, u.goroutines, u.heap>>10)
}

func (l *lab) usage() usage {
	l.T.Helper()
	time.Sleep(100 * time.Millisecond) // what was told to end ends
	var u usage
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		u.files = len(open)
	}
	found, err := qemu.Find(func(argv []string) bool {
		return strings.Contains(strings.Join(argv, " "), l.dir) && argv[0] != os.Args[0]
	})
	if err != nil {
		l.T.Fatal(err)
	}
	u.processes = len(found)
	sockets, err := filepath.Glob(filepath.Join(l.dir, "n*", "vms", "*", "*.sock"))
	if err != nil {
		l.T.Fatal(err)
	}
	u.sockets = len(sockets)
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.heap, u.goroutines = m.HeapAlloc, runtime.NumGoroutine()
	return u
}
