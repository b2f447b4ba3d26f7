//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// reserve has the kernel keep huge pages of 2 MiB until the test ends, and both hosts
// find them. It skips the test where there are none.
func (w *trial) reserve(pages int) {
	w.T.Helper()
	const file = "/proc/sys/vm/nr_hugepages"
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err == nil { // another process may do the same
		w.T.Cleanup(func() { f.Close() })
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	var before []byte
	if err == nil {
		before, err = os.ReadFile(file)
	}
	if err == nil {
		have, _ := strconv.Atoi(strings.TrimSpace(string(before)))
		w.T.Cleanup(func() { _ = os.WriteFile(file, before, 0o600) })
		err = os.WriteFile(file, []byte(strconv.Itoa(have+pages)), 0o600)
	}
	if err != nil {
		w.T.Skipf("no huge pages can be had: %v", err)
	}
	free, err := os.ReadFile("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
	if n, _ := strconv.Atoi(strings.TrimSpace(string(free))); err != nil || n < pages {
		w.T.Skipf("the kernel has %d free huge pages, and not %d: %v", n, pages, err)
	}
	for _, n := range []name{hosta, hostb} {
		const dir = "/run/huge"
		if err := os.MkdirAll(w.Outside(string(n), dir), 0o700); err != nil {
			w.T.Fatal(err)
		}
		if out, err := w.Run(string(n), "mount", "-t", "hugetlbfs", "hugetlbfs", dir); err != nil {
			w.T.Skipf("huge pages cannot be mounted: %v %s", err, out)
		}
		w.restartDaemon(n)
		w.T.Cleanup(func() {
			_, _ = w.Run(string(n), "umount", "-l", dir)
			w.KillDaemon(string(n))
			w.StartDaemon(string(n))
		})
	}
}

// restartDaemon kills a host's libvirtd, starts it again, and waits until the host
// answers.
func (w *trial) restartDaemon(n name) {
	w.T.Helper()
	w.KillDaemon(string(n))
	w.StartDaemon(string(n))
	w.Eventually(string(n)+" answers again", func() bool {
		_, err := w.hosts[n].Domains(w.T.Context())
		return err == nil
	})
}

func TestHugepagesAndPinsAreReal(t *testing.T) {
	w := newTrial(t, nil)
	w.reserve(12)
	vm := w.vm(traveller, calm)
	hardware := *vm.Hardware
	hardware.Hugepages, hardware.Pins = 2*mib, [][]int{{1}}
	vm.Hardware, vm.Memory = &hardware, 12*mib
	w.start(hosta, vm)
	for _, n := range []name{hosta, hostb} {
		if n == hostb {
			w.begin("job", vm.ID, transferOptions{})
			w.arrives("job", vm.ID)
		}
		if pins := w.virsh(n, "vcpupin", domainOf(vm.ID), "0"); !strings.HasSuffix(pins, " 1") {
			t.Errorf("on %s its CPU is pinned to %q", n, pins)
		}
		pid, err := w.QEMU(string(n), domainOf(vm.ID))
		if err != nil {
			t.Fatal(err)
		}
		args, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		if err != nil || !strings.Contains(string(args), "/run/huge") {
			t.Errorf("on %s QEMU's memory is not in huge pages: %q %v", n, args, err)
		}
		if d := w.Domain(n, vm.ID); !d.VM.Equal(vm) {
			t.Errorf("on %s it is %+v", n, d.VM.Hardware)
		}
	}
	w.ends(hostb, vm.ID)
}

// Snapshots are in the image, once each. libvirt moves none, and a VM that has some is
// not moved.
func TestSnapshotsAreInTheImage(t *testing.T) {
	w := newTrial(t, nil)
	both := backendtest.WithDisks(w.vm("suite/both", calm), twoDisks...)
	w.furnish(hosta, both)
	for disk, words := range map[string]string{"root": "raw", "data": "2 disks"} {
		w.Refuses(hosta, both.ID, hypervisor.Snapshot{Disk: disk, Name: "x"},
			hypervisor.Unsupported, words)
	}
	w.Do(hosta, both.ID, hypervisor.Forget{})

	vm := backendtest.WithDisks(w.vm(traveller, calm), twoDisks[1])
	contents := w.furnish(hosta, vm)
	keep := hypervisor.Snapshot{Disk: "data", Name: "before"}
	w.Do(hosta, vm.ID, keep, keep, hypervisor.Snapshot{Disk: "data", Name: "later"})
	list := backendtest.Image(t, "snapshot", "-l", w.disk(hosta, vm.ID, "data"))
	if strings.Count(list, "before") != 1 || strings.Count(list, "later") != 1 {
		t.Errorf("the image has the snapshots\n%s", list)
	}
	w.Refuses(hosta, vm.ID, hypervisor.Snapshot{Disk: "none", Name: "x"}, hypervisor.NotFound)
	backendtest.Image(t, "snapshot", "-a", "before", w.disk(hosta, vm.ID, "data"))
	w.same(hosta, vm.ID, contents)
	w.start(hosta, vm)
	w.Refuses(hosta, vm.ID, hypervisor.Snapshot{Disk: "data", Name: "now"}, hypervisor.Conflict)
	wantReasons(t, w.send("job", vm.ID, transferOptions{}), hypervisor.Conflict, "snapshots")
	w.Do(hostb, vm.ID, hypervisor.Discard{Job: "job"})
	for _, s := range []string{"before", "later"} {
		w.virsh(hosta, "snapshot-delete", domainOf(vm.ID), s, "--metadata")
	}
	w.begin("without", vm.ID, transferOptions{})
	w.arrives("without", vm.ID)
}

// A disk that was plugged into a VM that runs moves with it, and one that was
// unplugged does not come back. Contents are checked where it arrives.
func TestADiskThatWasPluggedInMoves(t *testing.T) {
	w := newTrial(t, nil)
	vm := backendtest.WithDisks(w.vm(traveller, calm), twoDisks[0])
	w.start(hosta, vm)
	w.Do(hosta, vm.ID, hypervisor.AttachDisk{Disk: twoDisks[1]})
	full := backendtest.WithDisks(vm, twoDisks...)
	if d := w.Domain(hosta, vm.ID); !d.VM.Equal(full) {
		t.Errorf("with the disk it is %+v", d.VM.Hardware)
	}
	w.virsh(hosta, "qemu-monitor-command", "--hmp", domainOf(vm.ID),
		`qemu-io -d libvirt-2-format "write -P 0x5a 0 64k"`)
	w.begin("job", vm.ID, transferOptions{})
	w.arrives("job", vm.ID)
	if d := w.Domain(hostb, vm.ID); !d.VM.Equal(full) {
		t.Errorf("at the target it is %+v", d.VM.Hardware)
	}
	w.keeps(hostb, vm.ID, []string{"suite_traveller.data"}, "--inactive")
	w.Do(hostb, vm.ID, hypervisor.Kill{}, hypervisor.DetachDisk{Name: "data"})
	w.Do(hostb, vm.ID, hypervisor.DetachDisk{Name: "data"})
	if d := w.Domain(hostb, vm.ID); !d.VM.Equal(vm) {
		t.Errorf("without the disk it is %+v", d.VM.Hardware)
	}
	w.Do(hostb, vm.ID, hypervisor.Start{VM: vm})
	w.sound(hostb, vm.ID)
	w.ends(hostb, vm.ID)
}

// What the guest writes is measured, within a factor.
func TestTheDirtyRateIsPlausible(t *testing.T) {
	w := newTrial(t, nil)
	p := guest.Params{Fill: 64 << 20, WorkingSet: 32 << 20, Rate: 16 << 20, Random: true}
	vm := w.vm(traveller, p)
	w.start(hosta, vm)
	w.Do(hosta, vm.ID, hypervisor.MeasureDirtyRate{For: time.Second})
	var d hypervisor.Domain
	w.Eventually("it is measured", func() bool {
		d = w.Domain(hosta, vm.ID)
		return !d.Measured.IsZero()
	})
	t.Logf("%v are measured of %v", d.DirtyRate, hypervisor.Bandwidth(p.Rate))
	if low, high := p.Rate/8, p.Rate*4; int64(d.DirtyRate) < low || int64(d.DirtyRate) > high {
		t.Errorf("it is said to write %v, and writes %v", d.DirtyRate, hypervisor.Bandwidth(p.Rate))
	}
	w.ends(hosta, vm.ID)
}

// libvirtd is killed and comes back: VMs notice nothing, hosts answer again, and what
// has happened meanwhile is found and told.
func TestLibvirtdMayDieWhileVMsRun(t *testing.T) {
	var mu sync.Mutex
	told := map[vmid]int{}
	w := newTrial(t, func(c *libvirt.Config) {
		c.Changed = func(id vmid) {
			mu.Lock()
			defer mu.Unlock()
			told[id]++
		}
	})
	calls := func(id vmid) int {
		mu.Lock()
		defer mu.Unlock()
		return told[id]
	}
	ids := []vmid{"suite/runs", "suite/crashes", "suite/stops"}
	for _, id := range ids {
		w.start(hosta, w.vm(id, calm))
	}
	pid, err := w.QEMU(string(hosta), domainOf("suite/crashes"))
	if err != nil {
		t.Fatal(err)
	}
	w.Do(hosta, "suite/stops", hypervisor.Stop{Grace: time.Minute})
	w.Becomes(hosta, "suite/stops", hypervisor.Shutoff)
	w.KillDaemon(string(hosta))
	if _, err := w.Host(hosta).Domain(t.Context(), "suite/runs"); err == nil {
		t.Error("a host answers whose libvirtd is dead")
	} else {
		backendtest.Refused(t, err, hypervisor.Transient)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	clear(told)
	mu.Unlock()
	w.StartDaemon(string(hosta))
	w.Eventually("the host answers again", func() bool {
		_, err := w.hosts[hosta].Domains(t.Context())
		return err == nil
	})
	w.Becomes(hosta, "suite/crashes", hypervisor.Crashed)
	w.Becomes(hosta, "suite/stops", hypervisor.Shutoff)
	w.sound(hosta, "suite/runs")
	w.Eventually("it is told", func() bool { return calls("suite/crashes") > 0 })
	w.Do(hosta, "suite/runs", hypervisor.Kill{})
	for _, id := range ids {
		w.Do(hosta, id, hypervisor.Forget{})
	}
}

// A libvirtd that was killed in a start, before it had a process, shows the domain as one that it starts, and does
// nothing with it. The host says what to do, and that helps.
func TestLibvirtdMayDieWhileItStartsAVM(t *testing.T) {
	testutil.Long(t)
	w := newTrial(t, nil)
	const id = vmid("suite/half")
	w.start(hosta, w.vm(id, calm))
	file := w.Outside(string(hosta), "/run/libvirt/qemu/"+domainOf(id)+".xml")
	w.KillDaemon(string(hosta))
	pid, err := w.QEMU(string(hosta), domainOf(id))
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	text, errRead := os.ReadFile(file)
	if err = errors.Join(err, errRead); err != nil {
		t.Fatal(err)
	}
	// What libvirt 9.0 has written when the file appears, seen with a kill at that moment.
	half := regexp.MustCompile(`<domstatus [^>]*>`).ReplaceAll(text, []byte(`<domstatus state='paused' reason='starting up' pid='0'>
  <job type='none' async='start' flags='0x0'/>`))
	if err := os.WriteFile(file, half, 0o600); err != nil {
		t.Fatal(err)
	}
	w.StartDaemonAsItIs(string(hosta))
	w.Becomes(hosta, id, hypervisor.Starting)
	err = w.hosts[hosta].Do(t.Context(), id, hypervisor.Kill{})
	if err == nil || !strings.Contains(err.Error(), "remove /run/libvirt/qemu/"+domainOf(id)+".xml") {
		t.Errorf("a kill answers %v", err)
	}
	w.restartDaemon(hosta)
	w.Eventually("it has crashed", func() bool { return !w.Domain(hosta, id).State.Executes() })
	w.start(hosta, w.vm(id, calm))
	w.ends(hosta, id)
}
