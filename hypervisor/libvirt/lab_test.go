//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/domxml"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/libvirttest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

func TestMain(m *testing.M) {
	backendtest.Serve(openPost)
	os.Exit(libvirttest.Main(m))
}

type (
	name = hypervisor.HostName
	vmid = hypervisor.VMID

	libvirtHost = libvirt.Host
)

const (
	mib = hypervisor.MiB

	hosta, hostb name = libvirttest.HostA, libvirttest.HostB
)

// A world is two hosts with real libvirtds, and the guests on them.
type world struct {
	*libvirttest.Lab
	backendtest.Pair
	accel string
	dir   string
	hosts map[name]*libvirt.Host
	// change changes the configurations.
	change func(*libvirt.Config)

	mu        sync.Mutex
	listeners map[vmid]*guestListener
	params    map[string]guest.Params // by firmware
	starts    sync.Mutex
	roms      map[guest.Params]string
}

// A guestListener hears a guest, on whatever host.
type guestListener struct {
	pulse *guest.HeartbeatListener
	stop  func()
}

// newWorld opens two clean hosts. The default tier runs a sample of the tests that need them.
func newWorld(t testing.TB, accel string, change func(*libvirt.Config)) *world {
	t.Helper()
	if _, measures := t.(*testing.B); !measures {
		testutil.Sample(t, 18)
	}
	return worldOf(t, libvirttest.Options{}, accel, change)
}

func worldOf(t testing.TB, o libvirttest.Options, accel string,
	change func(*libvirt.Config)) *world {
	t.Helper()
	if why := libvirttest.Missing(); why != "" {
		t.Skip(why)
	}
	if accel == domxml.KVM && !testutil.HasKVM() {
		t.Skip("no KVM here")
	}
	w := &world{Lab: libvirttest.Shared(t, o), accel: accel, dir: t.TempDir(),
		Pair:  backendtest.Pair{T: t, Source: hosta, Target: hostb},
		hosts: map[name]*libvirt.Host{}, change: change, listeners: map[vmid]*guestListener{},
		params: map[string]guest.Params{}, roms: map[guest.Params]string{}}
	w.Host = func(n name) hypervisor.Hypervisor { return &heard{w.hosts[n], w, n} }
	t.Cleanup(w.close)
	for _, n := range []name{hosta, hostb} {
		if _, err := w.open(n); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *world) config(n name) libvirt.Config {
	c := libvirt.Config{Name: n, Dir: filepath.Join(w.dir, string(n)), URI: w.URI(string(n)),
		Peer: w.PeerURI(string(n)), Memory: 4 * hypervisor.GiB, CPUs: 64, Accelerator: w.accel,
		DebugDir: "/run", Timeout: 30 * time.Second, KeepAlive: 2 * time.Second,
		Grace: 500 * time.Millisecond,
		Reach: func(peer string) string {
			for _, h := range []name{hosta, hostb} {
				if peer == w.PeerURI(string(h)) {
					return w.URI(string(h))
				}
			}
			return peer
		}}
	if w.change != nil {
		w.change(&c)
	}
	return c
}

// open opens a host, again if it was open before.
func (w *world) open(n name) (hypervisor.Hypervisor, error) {
	ctx, cancel := context.WithTimeout(context.Background(), testutil.Limit(testutil.DefaultLimit))
	defer cancel()
	err := backendtest.Reopen(w.hosts, n, func() (*libvirt.Host, error) {
		return libvirt.New(ctx, w.config(n))
	})
	if err != nil {
		return nil, err
	}
	return w.Host(n), nil
}

func (w *world) close() {
	backendtest.Close(w.T, w.hosts)
	for _, e := range w.listeners {
		e.stop()
	}
}

// vm describes a VM whose guest does what p says.
func (w *world) vm(id vmid, p guest.Params) hypervisor.VM {
	p = p.On(w.accel, testutil.QEMU())
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.roms[p] == "" {
		w.roms[p] = w.Guest(w.T, p)
		w.params[w.roms[p]] = p
	}
	return hypervisor.VM{ID: id, Memory: hypervisor.Bytes(libvirttest.Memory(p)) * mib, CPUs: 1,
		Hardware: &hypervisor.Hardware{Machine: "pc", Firmware: w.roms[p], DebugPort: 0xe9}}
}

// domain is the name of a VM in libvirt.
func domainOf(id vmid) string {
	n, err := domxml.NameOf("", id)
	if err != nil {
		panic(err)
	}
	return n
}

// hear listens to a guest that is about to be started anew on a host. What was started before is
// still listened to.
func (w *world) hear(n name, id vmid) error {
	if p := w.pulse(id); p != nil {
		p.Anew(string(n) + "#")
		return nil
	}
	p, stop, err := w.ListenUntil(w.hosts[hosta].DebugSocket(id))
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.listeners[id] = &guestListener{p, stop}
	w.mu.Unlock()
	return nil
}

func (w *world) pulse(id vmid) *guest.HeartbeatListener {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.listeners[id]; e != nil {
		return e.pulse
	}
	return nil
}

// twice answers whether a VM has ever run twice.
func (w *world) twice(id vmid) error {
	if p := w.pulse(id); p != nil {
		return p.Log().Twice()
	}
	return nil
}

// alive answers on which host the guest beats.
func (w *world) alive(id vmid) ([]name, error) {
	p := w.pulse(id)
	if p == nil {
		return nil, nil
	}
	process, err := p.Alive()
	if process == "" {
		return nil, err
	}
	return []name{name(libvirttest.HostOf(process))}, err
}

// verify reads all of the memory of a guest, unless it moves: then it cannot be
// stopped, and its heartbeats have to do.
func (w *world) verify(n name, id vmid) error {
	ctx, cancel := context.WithTimeout(context.Background(), testutil.Limit(testutil.DefaultLimit))
	defer cancel()
	p := w.pulse(id)
	if p == nil {
		return fmt.Errorf("nothing listens to %s", id)
	}
	if err := p.Up(ctx); err != nil {
		return err
	}
	d, err := w.hosts[n].Domain(ctx, id)
	if err != nil {
		return err
	}
	if d.Job != "" {
		if j, err := w.hosts[n].Progress(ctx, d.Job); err != nil || !j.Status.Final() {
			return err
		}
	}
	if err := w.idle(ctx, n, id); err != nil {
		return err
	}
	w.mu.Lock()
	params := w.params[d.VM.Hardware.Firmware]
	w.mu.Unlock()
	return w.Verify(w.T, string(n), domainOf(id), params)
}

// idle waits until libvirt does nothing with a VM. At the end of a migration it lets a
// guest run again that was stopped meanwhile.
func (w *world) idle(ctx context.Context, n name, id vmid) error {
	for {
		info, err := w.Virsh(ctx, string(n), "domjobinfo", domainOf(id))
		if err != nil || strings.Contains(info, "None") {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (w *world) signal(n name, id vmid, s syscall.Signal) error {
	pid, err := w.QEMU(string(n), domainOf(id))
	if err != nil {
		return nil // it has none
	}
	return syscall.Kill(pid, s)
}

// restart takes the power from a host and gives it back.
func (w *world) restart(n name) (hypervisor.Hypervisor, error) {
	w.PowerOff(string(n))
	w.PowerOn(string(n))
	return w.open(n)
}

// A heard host listens to every guest that is started on it.
type heard struct {
	*libvirtHost
	world *world
	name  name
}

// Do implements hypervisor.Hypervisor.
func (h *heard) Do(ctx context.Context, id vmid, c hypervisor.Command) error {
	start, starts := c.(hypervisor.Start)
	if !starts || start.VM.Hardware == nil || start.VM.Hardware.DebugPort == 0 || ctx.Err() != nil {
		return h.libvirtHost.Do(ctx, id, c)
	}
	h.world.starts.Lock()
	defer h.world.starts.Unlock()
	d, err := h.libvirtHost.Domain(ctx, id)
	if err == nil && !d.State.HoldsState() && d.State != hypervisor.HandedOver &&
		d.State != hypervisor.Receiving {
		if err := h.world.hear(h.name, id); err != nil {
			return err
		}
	}
	p := h.world.pulse(id)
	if err := h.libvirtHost.Do(ctx, id, c); err != nil {
		if p != nil {
			p.Anew("")
		}
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, testutil.Limit(testutil.DefaultLimit))
	defer cancel()
	return p.Wait(ctx, func(r guest.HeartbeatLog) bool { return r.Ready })
}
