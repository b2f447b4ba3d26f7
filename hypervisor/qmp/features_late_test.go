package qmp_test

import (
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// The end of a migration that QEMU tells of while its VM is being killed is not taken for that of
// the VM's next one, whose disks are still to be copied.
func TestAnEndThatComesTooLateIsNotThatOfTheNextMigration(t *testing.T) {
	var noted atomic.Pointer[func()]
	l := newLab(t, accelerator(t), whenNoted(&noted))
	vm := l.vm("suite/late", calm)
	l.start("n1", vm)
	l.begin("live", vm.ID, options{Bandwidth: 1 << 20})
	l.Until("n1", "live", hypervisor.JobActive)
	ctx := testutil.Context(t, testutil.DefaultLimit)
	begun, ended := make(chan struct{}), make(chan struct{})
	then := func() { // that it is to be killed is noted, and not done yet
		close(begun)
		<-ended
	}
	noted.Store(&then)
	killed := make(chan error)
	go func() { killed <- l.hosts["n1"].Do(ctx, vm.ID, hypervisor.Kill{}) }()
	<-begun
	l.set("n1", vm.ID, map[string]any{"max-bandwidth": 1 << 40})
	l.Eventually("it has moved", func() bool {
		return l.ask("n1", vm.ID, "query-migrate", nil)["status"] == "completed"
	})
	time.Sleep(100 * time.Millisecond) // its host has heard that
	close(ended)
	must(t, <-killed)
	l.Do("n2", vm.ID, hypervisor.Discard{Job: "live"})
	disk := hypervisor.Disk{Name: "data", Size: 64 * mib}
	l.Do("n1", vm.ID, hypervisor.AttachDisk{Disk: disk})
	contents := backendtest.Noise(0, disk.Size)
	must(t, os.WriteFile(l.disk("n1", disk.Name), contents, 0o600))
	l.begin("cold", vm.ID, options{})
	l.Until("n1", "cold", hypervisor.JobSucceeded)
	l.Becomes("n2", vm.ID, hypervisor.Shutoff)
	l.same("n2", map[string][]byte{disk.Name: contents})
	l.release("cold", vm.ID, "n1", "n2")
	l.Do("n2", vm.ID, hypervisor.Forget{})
}
