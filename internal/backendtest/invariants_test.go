//go:build linux

package backendtest_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/qemu"
	"github.com/godwit-vm/godwit/internal/testutil"
)

type (
	hostName = hypervisor.HostName
	vmid     = hypervisor.VMID
)

// workload is what the guests do: moving one takes about two seconds. Without KVM they
// write nothing: QEMU's own emulation of a CPU forgets which pages were written when the
// machine is busy.
// Source: QEMU 7.2 include/exec/ram_addr.h (cpu_physical_memory_sync_dirty_bitmap): TLBs are
// reset only if a page is dirty that was not to be sent anyway.
func workload(accelerator string) guest.Params {
	p := guest.Params{Fill: 32 << 20, WorkingSet: 1 << 20, Random: true,
		Heartbeat: 5 * time.Millisecond}
	if accelerator == "kvm" {
		p.Rate = 2 << 20
	}
	return p
}

const preyMemory = 64 * hypervisor.MiB

// A qemu is one process that runs, or ran, a VM.
type qemuPath struct {
	pid    int
	host   hostName
	vm     vmid
	ended  bool
	client qemu.Client // of its second monitor; nil before it answers
}

// String tells processes apart: a Pulse needs that.
func (q *qemuPath) String() string { return fmt.Sprintf("%s#%d", q.host, q.pid) }

// wrapper stands in for QEMU: a guest's heartbeats are heard from the first on, because
// QEMU waits until a client listens, and a second monitor is for the checker. Twelve guests
// whose clocks tick a thousand times a second are most of what the machine has to do: they
// give way to who leads them.
const wrapper = `#!/bin/sh
vm=
for arg; do
	shift
	case $arg in
	socket,id=debug,*,wait=off) arg=${arg%%off}on vm=yes ;;
	esac
	set -- "$@" "$arg"
done
test -n "$vm" || exec %[1]s "$@"
test -w /proc/$$/autogroup && echo 10 >/proc/$$/autogroup
exec nice -n 10 %[1]s "$@" -qmp "unix:%[2]s/$$,server=on,wait=off"
`

// A checker listens to all guests, and knows all QEMUs.
type checker struct {
	t        *testing.T
	dir      string // the hosts' directories are in it: DIR/HOST/vms/…
	bin      string // the wrapper is in it
	monitors string // the second monitors are in it
	rom      string // the guests' firmware
	load     guest.Params
	ctx      context.Context
	stop     context.CancelFunc
	done     sync.WaitGroup
	// stops has the QEMU whose guest stopped last, when the test waits for that.
	stops chan *qemuPath

	mu      sync.Mutex
	pulses  map[vmid]*guest.HeartbeatListener
	qemus   map[int]*qemuPath // by number: none is used twice in a namespace so young
	order   []*qemuPath
	unheard []error // what could not be listened to
}

// newChecker makes the wrapper and begins to look for QEMUs.
func newChecker(t *testing.T, dir string, f qemu.Features) *checker {
	t.Helper()
	w := &checker{t: t, dir: dir, bin: filepath.Join(dir, "bin"), monitors: filepath.Join(dir, "mon"),
		rom: filepath.Join(dir, "guest.rom"), pulses: map[vmid]*guest.HeartbeatListener{},
		qemus: map[int]*qemuPath{}, stops: make(chan *qemuPath), load: workload(f.Accelerator)}
	rom, err := w.load.Firmware()
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf(wrapper, f.Path, w.monitors)
	for _, err := range []error{os.Mkdir(w.bin, 0o700), os.Mkdir(w.monitors, 0o700),
		os.WriteFile(w.rom, rom, 0o600),
		os.WriteFile(filepath.Join(w.bin, "qemu-system-x86_64"), []byte(script), 0o700)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	w.ctx, w.stop = context.WithCancel(context.Background())
	w.done.Go(w.watch)
	t.Cleanup(w.close)
	return w
}

// vm describes a VM that the checker can hear.
func (w *checker) vm(id vmid) hypervisor.VM {
	return hypervisor.VM{ID: id, Memory: preyMemory, CPUs: 1, Hardware: &hypervisor.Hardware{
		Machine: "pc", Firmware: w.rom, DebugPort: 0xe9}}
}

// close kills all QEMUs and ends the listening.
func (w *checker) close() {
	w.stop()
	w.done.Wait()
	for _, q := range w.living() {
		w.kill(q)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pulses {
		p.Close()
	}
}

// watch looks for new QEMUs and for the ends of old ones.
func (w *checker) watch() {
	for w.ctx.Err() == nil {
		if err := w.look(); err != nil {
			w.fail(err)
			return
		}
		select {
		case <-w.ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (w *checker) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unheard = append(w.unheard, err)
}

func (w *checker) look() error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	there := map[int]bool{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		argv := arguments(pid)
		if len(argv) == 0 {
			continue // a zombie
		}
		there[pid] = true
		w.mu.Lock()
		known := w.qemus[pid] != nil
		w.mu.Unlock()
		if known {
			continue
		}
		if q := w.recognize(pid, argv); q != nil {
			if err := w.welcome(q); err != nil {
				return err
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for pid, q := range w.qemus {
		q.ended = !there[pid]
	}
	return nil
}

// arguments reads those of a process; one that has ended has none.
func arguments(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// recognize answers nil for what is no QEMU of a host of this test: those of the test before may still be ending.
func (w *checker) recognize(pid int, argv []string) *qemuPath {
	at := slices.Index(argv, "-pidfile")
	if filepath.Base(argv[0]) != "qemu-system-x86_64" || at < 0 {
		return nil
	}
	path, err := filepath.Rel(w.dir, argv[at+1])
	if err != nil || !filepath.IsLocal(path) {
		return nil
	}
	host, _, _ := strings.Cut(path, "/")
	for i, arg := range argv[:len(argv)-1] {
		name, isGuest := strings.CutPrefix(argv[i+1], "guest=")
		if arg == "-name" && isGuest {
			name, _, _ = strings.Cut(name, ",")
			return &qemuPath{pid: pid, host: hostName(host), vm: vmid(name)}
		}
	}
	return nil
}

// welcome begins to listen to a QEMU, which waits for that.
func (w *checker) welcome(q *qemuPath) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pulses[q.vm] == nil {
		p, err := guest.NewHeartbeatListener()
		if err != nil {
			return err
		}
		w.pulses[q.vm] = p
	}
	w.qemus[q.pid] = q
	w.order = append(w.order, q)
	pulse, argv := w.pulses[q.vm], arguments(q.pid)
	socket := ""
	for _, arg := range argv {
		if rest, ok := strings.CutPrefix(arg, "socket,id=debug,path="); ok {
			socket, _, _ = strings.Cut(rest, ",")
		}
	}
	w.done.Go(func() { w.watchQEMU(q) })
	w.done.Go(func() {
		ctx, cancel := context.WithCancel(w.ctx)
		defer cancel()
		w.done.Go(func() { // one that was killed makes no socket any more
			defer cancel()
			for ctx.Err() == nil && len(arguments(q.pid)) > 0 {
				time.Sleep(20 * time.Millisecond)
			}
		})
		if err := pulse.Connect(ctx, q.String(), socket); err != nil && ctx.Err() == nil {
			w.fail(fmt.Errorf("%s of %s: %w", q, q.vm, err))
		}
	})
	return nil
}

// living lists the QEMUs that run, in the order of their start.
func (w *checker) living() []*qemuPath {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.order), func(q *qemuPath) bool { return q.ended })
}

// of lists the QEMUs of each VM that run.
func (w *checker) of() map[vmid][]*qemuPath {
	all := map[vmid][]*qemuPath{}
	for _, q := range w.living() {
		all[q.vm] = append(all[q.vm], q)
	}
	return all
}

// kill ends a QEMU as kill -9 does.
func (w *checker) kill(q *qemuPath) bool {
	if argv := arguments(q.pid); len(argv) == 0 || !strings.Contains(argv[0], "qemu") {
		return false
	}
	return syscall.Kill(q.pid, syscall.SIGKILL) == nil
}

// pulse answers the pulse of a VM, nil before its first QEMU.
func (w *checker) pulse(vm vmid) *guest.HeartbeatListener {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pulses[vm]
}

// rhythm answers what was heard of a VM.
func (w *checker) rhythm(vm vmid) guest.HeartbeatLog {
	if p := w.pulse(vm); p != nil {
		return p.Log()
	}
	return guest.HeartbeatLog{}
}

// heard lists the VMs that were ever heard of, in order.
func (w *checker) heard() []vmid {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.pulses))
}

// await waits until every VM beats on, and answers those that do not.
func (w *checker) await(vms []vmid, within time.Duration) error {
	before := map[vmid]int64{}
	for _, vm := range vms {
		before[vm] = w.rhythm(vm).Beats
	}
	return testutil.Poll(context.Background(), within, func() error {
		var silent []string
		for _, vm := range vms {
			if r := w.rhythm(vm); !r.Ready || r.Beats < before[vm]+10 {
				silent = append(silent, fmt.Sprintf("%s (%d boots, last heard from %s at %s)", vm,
					r.Boots, r.From, r.Last.Format("15:04:05.000")))
			}
		}
		if len(silent) > 0 {
			return fmt.Errorf("no heartbeats of %s", strings.Join(silent, ", "))
		}
		return nil
	})
}
