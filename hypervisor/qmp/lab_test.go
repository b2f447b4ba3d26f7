//go:build linux

package qmp_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/qemu"
	"github.com/godwit-vm/godwit/internal/testutil"
)

type (
	name = hypervisor.HostName
	vmid = hypervisor.VMID

	qmpHost = qmp.Host
)

const mib = hypervisor.MiB

// together makes the hosts of a lab one machine, as far as the locks of VMs go. They are two
// otherwise.
func together(c *qmp.Config) { c.Locks = filepath.Join(filepath.Dir(c.Dir), "locks", "both") }

// features asks the installed QEMU once what it can do.
var features = sync.OnceValues(func() (qemu.Features, error) {
	path, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		return qemu.Features{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), testutil.Limit(testutil.DefaultLimit))
	defer cancel()
	return qemu.Probe(ctx, path)
})

// needQEMU skips a test where there is no QEMU, or none with the accelerator.
func needQEMU(t testing.TB, accelerator string) qemu.Features {
	t.Helper()
	f, err := features()
	switch {
	case err != nil:
		t.Skipf("no QEMU runs here: %v", err)
	case accelerator == "kvm" && f.Accelerator != "kvm":
		t.Skipf("no KVM here: %s", f.NoKVM)
	}
	return f
}

// accelerator is the best that works here.
func accelerator(t testing.TB) string {
	t.Helper()
	return needQEMU(t, "tcg").Accelerator
}

// A lab is two hosts on this machine and the guests on them.
type lab struct {
	backendtest.Pair
	dir    string
	accel  string
	change func(*qmp.Config)
	hosts  map[name]*qmp.Host

	mu     sync.Mutex
	pulses map[vmid]*guest.HeartbeatListener
	params map[string]guest.Params // by firmware
	born   map[int]bool            // processes that are listened to
	roms   map[guest.Params]string
}

// newLab opens two hosts, n1 and n2. Change may change their configurations. The default
// tier runs a sample of the tests that need them.
func newLab(t testing.TB, accel string, change func(*qmp.Config)) *lab {
	t.Helper()
	if _, measures := t.(*testing.B); !measures {
		testutil.Sample(t, 12)
	}
	return openLab(t, accel, change)
}

func openLab(t testing.TB, accel string, change func(*qmp.Config)) *lab {
	t.Helper()
	needQEMU(t, accel)
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{Pair: backendtest.Pair{T: t, Source: "n1", Target: "n2"}, dir: dir, accel: accel,
		change: change, hosts: map[name]*qmp.Host{},
		pulses: map[vmid]*guest.HeartbeatListener{}, params: map[string]guest.Params{},
		roms: map[guest.Params]string{}, born: map[int]bool{}}
	l.Host = func(n name) hypervisor.Hypervisor { return &heard{l.hosts[n], l, n} }
	t.Cleanup(l.close)
	for _, n := range []name{"n1", "n2"} {
		if _, err := l.open(n); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// config is a host's configuration.
func (l *lab) config(n name) qmp.Config {
	f, _ := features()
	c := qmp.Config{Name: n, Dir: filepath.Join(l.dir, string(n)),
		Locks: filepath.Join(l.dir, "locks", string(n)), Memory: 4 * hypervisor.GiB,
		CPUs: 64, Accelerator: l.accel,
		TargetTimeout: 500 * time.Millisecond, Timeout: testutil.Limit(30 * time.Second)}
	c.SetFeatures(&f)
	if l.change != nil {
		l.change(&c)
	}
	return c
}

// open opens a host, again if it was open before.
func (l *lab) open(n name) (hypervisor.Hypervisor, error) {
	err := backendtest.Reopen(l.hosts, n, func() (*qmp.Host, error) {
		return qmp.New(context.Background(), l.config(n))
	})
	if err != nil {
		return nil, err
	}
	return l.Host(n), nil
}

func (l *lab) close() {
	backendtest.Close(l.T, l.hosts)
	for _, p := range l.pulses {
		p.Close()
	}
	if err := errors.Join(testutil.KillBelow(l.dir), os.RemoveAll(l.dir)); err != nil {
		l.T.Error(err)
	}
}

// vm describes a VM whose guest does what p says.
func (l *lab) vm(id vmid, p guest.Params) hypervisor.VM {
	l.mu.Lock()
	defer l.mu.Unlock()
	p = p.On(l.accel, testutil.QEMU())
	rom := l.roms[p]
	if rom == "" {
		image, err := p.Firmware()
		if err != nil {
			l.T.Fatal(err)
		}
		rom = filepath.Join(l.dir, fmt.Sprintf("rom%d", len(l.roms)))
		if err := os.WriteFile(rom, image, 0o600); err != nil {
			l.T.Fatal(err)
		}
		l.roms[p], l.params[rom] = rom, p
	}
	memory := hypervisor.Bytes(guest.Base+p.Fill)/mib*mib + 2*mib
	return hypervisor.VM{ID: id, Memory: memory, CPUs: 1,
		Hardware: &hypervisor.Hardware{Machine: "pc", Firmware: rom, DebugPort: 0xe9}}
}

// listen hears the heartbeats of a VM that was started, or opened, on a host.
func (l *lab) listen(n name, id vmid, pid int) error {
	l.mu.Lock()
	if l.born[pid] {
		l.mu.Unlock()
		return nil
	}
	p := l.pulses[id]
	if p == nil {
		var err error
		if p, err = guest.NewHeartbeatListener(); err != nil {
			l.mu.Unlock()
			return err
		}
		l.pulses[id] = p
	}
	l.born[pid] = true
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), testutil.Limit(testutil.DefaultLimit))
	defer cancel()
	return p.Connect(ctx, processOf(n, pid), l.hosts[n].Files(id).Debug)
}

func (l *lab) pulse(id vmid) *guest.HeartbeatListener {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pulses[id]
}

// anew notes that a VM was started anew if that was by a process that was not listened to: it
// counts its heartbeats from the beginning. The earlier ones are still listened to.
func (l *lab) anew(n name, id vmid) {
	pid, err := l.pid(n, id)
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.pulses[id]; p != nil && err == nil && !l.born[pid] {
		p.Anew(processOf(n, pid))
	}
}

// processOf is what a pulse calls a process.
func processOf(n name, pid int) string { return fmt.Sprintf("%s#%d", n, pid) }

// twice answers whether a VM has ever run twice.
func (l *lab) twice(id vmid) error {
	if p := l.pulse(id); p != nil {
		return p.Log().Twice()
	}
	return nil
}

// alive answers on which host the guest beats: not where it did half a heartbeat
// ago, but where it goes on to.
func (l *lab) alive(id vmid) ([]name, error) {
	p := l.pulse(id)
	if p == nil {
		return nil, nil
	}
	process, err := p.Alive()
	if process == "" {
		return nil, err
	}
	host, _, _ := strings.Cut(process, "#")
	return []name{name(host)}, err
}

// verify stops the guest for a moment, and reads all of its memory.
func (l *lab) verify(n name, id vmid) error {
	ctx, cancel := context.WithTimeout(context.Background(), testutil.Limit(testutil.DefaultLimit))
	defer cancel()
	p := l.pulse(id)
	if err := p.Up(ctx); err != nil {
		return err
	}
	m, err := l.hosts[n].Monitor(id)
	if err != nil {
		return err
	}
	return guest.Stopped(ctx, func() error { return m.Execute(ctx, "stop", nil, nil) },
		func() error { return l.dump(ctx, n, id) },
		func() error { return m.Execute(ctx, "cont", nil, nil) })
}

// dump checks every byte of the memory of a guest that stands.
func (l *lab) dump(ctx context.Context, n name, id vmid) error {
	m, err := l.hosts[n].Monitor(id)
	if err != nil {
		return err
	}
	d, err := l.hosts[n].Domain(ctx, id)
	if err != nil {
		return err
	}
	l.mu.Lock()
	p := l.params[d.VM.Hardware.Firmware]
	l.mu.Unlock()
	size := int64(guest.Base + p.Fill)
	path := filepath.Join(l.dir, "dump."+string(n))
	defer os.Remove(path)
	err = m.Execute(ctx, "pmemsave", map[string]any{"val": 0, "size": size, "filename": path}, nil)
	if err != nil {
		return err
	}
	return p.VerifyDump(path, size)
}

// pid returns the process of a VM on a host.
func (l *lab) pid(n name, id vmid) (int, error) {
	dir := filepath.Dir(l.hosts[n].Files(id).Log)
	text, err := os.ReadFile(filepath.Join(dir, "qemu.pid"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

func (l *lab) signal(n name, id vmid, s syscall.Signal) error {
	pid, err := l.pid(n, id)
	if err != nil {
		return err
	}
	return syscall.Kill(pid, s)
}

// checksum is the line that is removed from a record when it is edited.
var checksum = regexp.MustCompile(`,\n\t"checksum": "[^"]*"`)

// restart takes the power from a host and gives it back.
func (l *lab) restart(n name) (hypervisor.Hypervisor, error) {
	if err := l.hosts[n].Close(); err != nil {
		return nil, err
	}
	delete(l.hosts, n)
	dir := filepath.Join(l.dir, string(n))
	if err := testutil.KillBelow(dir); err != nil {
		return nil, err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, err
	}
	records, err := filepath.Glob(filepath.Join(dir, "vms", "*", "domain"))
	if err != nil {
		return nil, err
	}
	for _, path := range records { // all was written under an earlier name
		text, err := os.ReadFile(path)
		if err == nil {
			old := strings.ReplaceAll(string(text), strings.TrimSpace(string(boot)), "earlier")
			err = os.WriteFile(path, []byte(checksum.ReplaceAllString(old, "")), 0o600)
		}
		if err != nil {
			return nil, err
		}
	}
	return l.open(n)
}

// A heard host lets the lab listen to every guest that is made on it.
type heard struct {
	*qmpHost
	lab  *lab
	name name
}

func (h *heard) Receive(ctx context.Context, in hypervisor.Incoming) (hypervisor.Address, error) {
	address, err := h.qmpHost.Receive(ctx, in)
	return address, h.follow(in.VM.ID, err)
}

func (h *heard) Do(ctx context.Context, id vmid, c hypervisor.Command) error {
	err := h.qmpHost.Do(ctx, id, c)
	if _, starts := c.(hypervisor.Start); !starts || err != nil {
		return err
	}
	h.lab.anew(h.name, id)
	if err := h.follow(id, nil); err != nil || h.lab.pulse(id) == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, testutil.Limit(testutil.DefaultLimit))
	defer cancel()
	return h.lab.pulse(id).Wait(ctx, func(r guest.HeartbeatLog) bool { return r.Ready })
}

// follow listens to a VM's process that was not listened to.
func (h *heard) follow(id vmid, err error) error {
	d, _ := h.qmpHost.Domain(context.Background(), id)
	pid, gone := h.lab.pid(h.name, id)
	if err != nil || gone != nil || d.VM.Hardware == nil || d.VM.Hardware.DebugPort == 0 {
		return err
	}
	return h.lab.listen(h.name, id, pid)
}
