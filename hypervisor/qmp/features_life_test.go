package qmp_test

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

func TestAGuestThatShutsDownEndsBeforeItsGrace(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	vm := l.vm("suite/polite", calm)
	l.start("n1", vm)
	l.Do("n1", vm.ID, hypervisor.Stop{Grace: time.Hour})
	l.Becomes("n1", vm.ID, hypervisor.Shutoff)
	if r := l.pulse(vm.ID).Log(); !r.Off || r.Check() != nil {
		t.Errorf("the guest did not power itself off: %+v", r)
	}
	l.Do("n1", vm.ID, hypervisor.Forget{})
	l.empty()
}

// The log of a console is cut while its QEMU appends to it.
func TestTheLogOfAConsoleIsCut(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	vm := l.vm("suite/talks", calm)
	l.start("n1", vm)
	log := l.hosts["n1"].Files(vm.ID).ConsoleLog
	f, err := os.OpenFile(log, os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	defer f.Close()
	_, err = f.Write(make([]byte, 5*mib))
	must(t, err)
	appends := 0
	all, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range all {
		if to, _ := os.Readlink(fd); to == log && !strings.HasPrefix(fd, "/proc/"+strconv.Itoa(os.Getpid())+"/") {
			var flags int
			info, err := os.ReadFile(strings.Replace(fd, "/fd/", "/fdinfo/", 1))
			must(t, err)
			_, err = fmt.Sscanf(string(info), "pos: %d\nflags: %o", new(int), &flags)
			must(t, err)
			if appends++; flags&os.O_APPEND == 0 {
				t.Errorf("QEMU does not append to it: %s", info)
			}
		}
	}
	if appends != 1 {
		t.Errorf("%d processes write to it", appends)
	}
	l.Do("n1", vm.ID, hypervisor.Pause{}, hypervisor.Unpause{}) // its worker looks
	l.Eventually("the log is cut", func() bool {
		at, err := os.Stat(log)
		return err == nil && at.Size() >= 1<<20 && at.Size() < 2<<20
	})
	l.sound("n1", vm.ID)
	l.ends("n1", vm.ID)
}

func TestAStubbornGuestIsStoppedByForceAfterItsGrace(t *testing.T) {
	const grace = 400 * time.Millisecond
	stubborn := calm
	stubborn.Stubborn = true
	l := newLab(t, accelerator(t), nil)
	vm := l.vm("suite/stubborn", stubborn)
	l.start("n1", vm)
	for _, c := range []hypervisor.Command{hypervisor.Reboot{}, hypervisor.Stop{Grace: time.Hour}} {
		l.Do("n1", vm.ID, c)
		backendtest.Monotonic(t, &qmp.RecordOf(l.hosts["n1"], vm.ID).Domain)
	}
	asked := time.Now()
	l.Do("n1", vm.ID, hypervisor.Stop{Grace: grace})
	if s := l.Domain("n1", vm.ID).State; s != hypervisor.Stopping && time.Since(asked) < grace {
		t.Errorf("it is %v", s)
	}
	l.Becomes("n1", vm.ID, hypervisor.Shutoff)
	if took := time.Since(asked); took < grace {
		t.Errorf("it had %v of %v", took, grace)
	}
	if r := l.pulse(vm.ID).Log(); r.Off || r.Check() != nil {
		t.Errorf("it was not stubborn: %+v", r)
	}
	l.start("n1", vm)
	l.sound("n1", vm.ID)
	l.ends("n1", vm.ID)
}

func TestAGuestThatRebootsBootsAnewInItsProcess(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	vm := l.vm("suite/rebooter", calm)
	l.start("n1", vm)
	before, err := l.pid("n1", vm.ID)
	if err != nil {
		t.Fatal(err)
	}
	hears := func(boots int) int {
		r, pulse := guest.HeartbeatLog{}, l.pulse(vm.ID)
		err := pulse.Wait(testutil.Context(t, testutil.DefaultLimit), func(now guest.HeartbeatLog) bool {
			r = now
			return r.Boots >= boots && r.Beats > 0 && (r.Ready || boots == 0)
		})
		if err != nil {
			t.Fatal(err)
		}
		l.sound("n1", vm.ID)
		return r.Boots
	}
	first := hears(0) // its first boot may have been before the test listened
	for again := range 2 {
		l.Do("n1", vm.ID, hypervisor.Reboot{})
		if boots := hears(first + again + 1); boots != first+again+1 {
			t.Fatalf("after %d reboots it has booted %d times more", again+1, boots-first)
		}
	}
	if after, err := l.pid("n1", vm.ID); err != nil || after != before {
		t.Errorf("process %d has become %d: %v", before, after, err)
	}
	l.begin("job", vm.ID, options{})
	l.arrives("job", vm.ID)
}

// affinities returns on which CPUs of the host each virtual CPU may run.
func (l *lab) affinities(n name, id vmid) []string {
	l.T.Helper()
	m, err := l.hosts[n].Monitor(id)
	var cpus []struct {
		Thread int `json:"thread-id"`
	}
	if err == nil {
		err = m.Execute(l.T.Context(), "query-cpus-fast", nil, &cpus)
	}
	if err != nil {
		l.T.Fatal(err)
	}
	var list []string
	for _, c := range cpus {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(c.Thread, &set); err != nil {
			l.T.Fatal(err)
		}
		var on []string
		for i := range 1024 {
			if set.IsSet(i) {
				on = append(on, strconv.Itoa(i))
			}
		}
		list = append(list, strings.Join(on, ","))
	}
	return list
}

func TestVirtualCPUsRunWhereTheyArePinned(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("this machine has one CPU: everything is pinned")
	}
	l := newLab(t, accelerator(t), nil)
	vm := l.vm("suite/pinned", calm)
	hw := *vm.Hardware
	hw.Pins = [][]int{{1}, {0, 1}, {0}}
	vm.CPUs, vm.Hardware = 3, &hw
	want := "1 0,1 0"
	l.start("n1", vm)
	if got := strings.Join(l.affinities("n1", vm.ID), " "); got != want {
		t.Errorf("the virtual CPUs run on %q, want %q", got, want)
	}
	l.begin("job", vm.ID, options{})
	l.Until("n1", "job", hypervisor.JobSucceeded)
	l.Eventually("the virtual CPUs are pinned at the target", func() bool {
		return strings.Join(l.affinities("n2", vm.ID), " ") == want
	})
	l.arrives("job", vm.ID)
}

func TestACPUThatTheHostLacksIsInvalid(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	vm := l.vm("suite/pinned", calm)
	hw := *vm.Hardware
	hw.Pins = [][]int{{1000}}
	vm.Hardware = &hw
	l.Refuses("n1", vm.ID, hypervisor.Start{VM: vm}, hypervisor.Invalid, "pin", "1000")
	l.empty()
}

func TestMemoryComesInHugepages(t *testing.T) {
	const size = 2 * mib
	free, err := os.ReadFile("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
	if n, bad := strconv.Atoi(strings.TrimSpace(string(free))); err != nil || bad != nil || n < 24 {
		t.Skipf("this machine has %q free hugepages of 2 MiB, and two QEMUs take 24 (%v): "+
			"sysctl vm.nr_hugepages=24", strings.TrimSpace(string(free)), err)
	}
	l := newLab(t, accelerator(t), nil)
	vm := l.vm("suite/huge", calm)
	hw := *vm.Hardware
	hw.Hugepages = size
	vm.Memory, vm.Hardware = (vm.Memory+size-1)/size*size, &hw
	l.start("n1", vm)
	l.begin("job", vm.ID, options{})
	l.arrives("job", vm.ID)
}

func TestHugepagesThatTheHostLacksAreSaidToBeMissing(t *testing.T) {
	const size = 64 * mib
	l := newLab(t, accelerator(t), nil)
	vm := l.vm("suite/huge", calm)
	hw := *vm.Hardware
	hw.Hugepages = size // no x86 has them
	vm.Memory, vm.Hardware = size, &hw
	l.Refuses("n1", vm.ID, hypervisor.Start{VM: vm}, hypervisor.Invalid, "QEMU did not start")
	l.empty()
}

// A process that reaches the sockets controls the VM: they are the owner's alone.
func TestWhatAHostKeepsIsPrivate(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	vm := backendtest.WithDisks(l.vm("suite/private", calm), hypervisor.Disk{Name: "data", Size: 4 * mib})
	l.start("n1", vm)
	l.begin("job", vm.ID, options{HoldSwitchOver: true})
	l.Becomes("n1", vm.ID, hypervisor.HandingOver)
	for _, n := range []name{"n1", "n2"} {
		seen := 0
		err := filepath.WalkDir(filepath.Join(l.dir, string(n)),
			func(path string, f fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				i, err := f.Info()
				if err != nil {
					return err
				}
				seen++
				switch mode := i.Mode(); {
				case mode.IsDir() && mode.Perm() != 0o700,
					mode.IsRegular() && mode.Perm() != 0o600:
					t.Errorf("%s has the mode %v", path, mode)
				}
				return nil
			})
		if err != nil || seen < 12 {
			t.Errorf("%d files on %s: %v", seen, n, err)
		}
	}
	l.Adjust("job", hypervisor.SwitchOver{})
	l.arrives("job", vm.ID)
}

func TestTheSerialConsoleIsASocketAndALog(t *testing.T) {
	l := newLab(t, accelerator(t), nil)
	vm := l.vm("suite/talker", calm)
	l.start("n1", vm)
	f := l.hosts["n1"].Files(vm.ID)
	conn, err := net.Dial("unix", f.Console)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, path := range []string{f.ConsoleLog, f.Log, f.Debug} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	// A guest's driver would write to the port; here QEMU's own monitor does.
	m, err := l.hosts["n1"].Monitor(vm.ID)
	if err != nil {
		t.Fatal(err)
	}
	err = m.Execute(t.Context(), "human-monitor-command",
		map[string]any{"command-line": "o /b 0x3f8 0x21"}, nil)
	heard := make([]byte, 1)
	if err == nil {
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		_, err = conn.Read(heard)
	}
	if err != nil || heard[0] != '!' {
		t.Errorf("the console said %q: %v", heard, err)
	}
	if text, err := os.ReadFile(f.ConsoleLog); err != nil || string(text) != "!" {
		t.Errorf("the log has %q: %v", text, err)
	}
	l.ends("n1", vm.ID)
}
