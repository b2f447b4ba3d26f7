//go:build linux

package libvirttest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/libvirttest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

const (
	hosta = libvirttest.HostA
	hostb = libvirttest.HostB
)

func shared(t *testing.T) *libvirttest.Lab {
	t.Helper()
	return libvirttest.Shared(t, libvirttest.Options{})
}

// TestALabIsGoneAfterItsTest matters because a machine runs many of them.
func TestALabIsGoneAfterItsTest(t *testing.T) {
	before := mounts(t)
	var own []string
	var dir string
	t.Run("up", func(t *testing.T) {
		begin := time.Now()
		l := libvirttest.New(t, libvirttest.Options{})
		t.Logf("up after %v", time.Since(begin).Round(time.Millisecond))
		own = append(spaces(t, l, hosta), spaces(t, l, hostb)...)
		dir = filepath.Dir(l.SharedDir())
		newDomain(t, l, "web", "qemu").start(t, l, hosta)
		if got := residents(own); !strings.Contains(got, "qemu-system") {
			t.Errorf("no QEMU is found in the hosts, but only\n%s", got)
		}
		for n, host := range []string{hosta, hostb} {
			if got := virsh(t, l, host, "hostname"); got != host {
				t.Errorf("the host number %d is %q", n, got)
			}
			peer := []string{hostb, hosta}[n]
			out, err := l.Run(host, "virsh", "-q", "-c", l.PeerURI(peer), "hostname")
			if err != nil || strings.TrimSpace(out) != peer {
				t.Errorf("from %s, %s is %q: %v", host, l.PeerURI(peer), out, err)
			}
		}
	})
	if len(own) != 10 {
		t.Skip("no lab could run")
	}
	for _, s := range own {
		if self, _ := filepath.Glob("/proc/self/ns/*"); slices.ContainsFunc(self,
			func(link string) bool { mine, _ := os.Readlink(link); return mine == s }) {
			t.Errorf("a host had the test's own namespace %s", s)
		}
	}
	if left := residents(own); left != "" {
		t.Errorf("there are left:\n%s", left)
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory %s: %v", dir, err)
	}
	if after := mounts(t); after != before {
		t.Errorf("the mounts were\n%s\nand are\n%s", before, after)
	}
}

func mounts(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAGuestMovesThereAndBack(t *testing.T) {
	testutil.Sample(t, 5)
	for _, a := range []string{"qemu", "kvm"} {
		t.Run(a, func(t *testing.T) {
			if a == "kvm" && !testutil.HasKVM() {
				t.Skip("no KVM here")
			}
			l := shared(t)
			d := newDomain(t, l, "web", a)
			pulse := d.start(t, l, hosta)
			for _, host := range []string{hostb, hosta} {
				source := map[string]string{hosta: hostb, hostb: hosta}[host]
				virsh(t, l, source, "migrate", "--live", "--p2p", d.name, l.PeerURI(host))
				beats(t, pulse, host)
				t.Logf("to %s: %v without a heartbeat", host, pulse.Log().Move.Length)
				if err := l.Verify(t, host, d.name, d.params); err != nil {
					t.Error(err)
				}
				if names := virsh(t, l, source, "list", "--name"); names != "" {
					t.Errorf("on %s there is %q", source, names)
				}
			}
			if r := pulse.Log(); r.Boots > 1 || r.From != hosta+"#2" {
				t.Errorf("the guest booted %d times and is %s", r.Boots, r.From)
			}
		})
	}
}

func TestVerifySeesDamage(t *testing.T) {
	testutil.Sample(t, 5)
	l := shared(t)
	d := newDomain(t, l, "web", "qemu")
	d.start(t, l, hosta)
	virsh(t, l, hosta, "suspend", d.name)
	if err := l.Verify(t, hosta, d.name, d.params); err != nil {
		t.Errorf("undamaged: %v", err)
	}
	if state := virsh(t, l, hosta, "domstate", d.name); state != "paused" {
		t.Errorf("it was paused and is %s", state)
	}
	other := d.params
	other.Random = true
	if err := l.Verify(t, hosta, d.name, other); err == nil {
		t.Error("another guest's memory passes for this one's")
	}
}

func TestAnEncryptedMove(t *testing.T) {
	testutil.Sample(t, 5)
	l := libvirttest.Shared(t, libvirttest.Options{TLS: true})
	d := newDomain(t, l, "web", "qemu")
	pulse := d.start(t, l, hosta)
	virsh(t, l, hosta, "migrate", "--live", "--p2p", "--tls", d.name, l.PeerTLSURI(hostb))
	beats(t, pulse, hostb)
	if err := l.Verify(t, hostb, d.name, d.params); err != nil {
		t.Error(err)
	}
}

func TestADaemonDiesAndTheGuestRunsOn(t *testing.T) {
	testutil.Sample(t, 5)
	l := shared(t)
	d := newDomain(t, l, "web", "qemu")
	pulse := d.start(t, l, hosta)
	pid, err := l.QEMU(hosta, d.name)
	if err != nil {
		t.Fatal(err)
	}
	argv, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !strings.Contains(string(argv), "guest="+d.name) {
		t.Errorf("process %d is %q: %v", pid, argv, err)
	}
	l.KillDaemon(hosta)
	l.KillDaemon(hosta) // is no error
	if out, err := l.Virsh(t.Context(), hosta, "list"); err == nil {
		t.Errorf("a dead libvirtd answers %q", out)
	}
	beats(t, pulse, hosta)
	begin := time.Now()
	l.StartDaemon(hosta)
	t.Logf("libvirtd answers again after %v", time.Since(begin).Round(time.Millisecond))
	if state := virsh(t, l, hosta, "domstate", d.name); state != "running" {
		t.Errorf("it is %s", state)
	}
	if again, err := l.QEMU(hosta, d.name); err != nil || again != pid {
		t.Errorf("its process was %d and is %d: %v", pid, again, err)
	}
	thaw := l.HangDaemon(hosta)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if out, err := l.Virsh(ctx, hosta, "list"); err == nil || ctx.Err() == nil {
		t.Errorf("a hung libvirtd answers %q, %v", out, err)
	}
	beats(t, pulse, hosta)
	thaw()
	virsh(t, l, hosta, "list")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "kill its QEMU", func() string { return virsh(t, l, hosta, "list", "--name") })
}

func TestAHostLosesItsPower(t *testing.T) {
	testutil.Sample(t, 5)
	l := shared(t)
	d, kept := newDomain(t, l, "web", "qemu"), newDomain(t, l, "kept", "qemu")
	virsh(t, l, hosta, "define", kept.xml(t))
	pulse := d.start(t, l, hosta)
	near, far := connection(t, l)
	old := spaces(t, l, hosta)
	lost, disk := l.Outside(hosta, "/run/lost"), l.Outside(hosta, l.ImagesDir()+"/disk")
	for _, path := range []string{lost, disk} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	begin := time.Now()
	l.PowerOff(hosta)
	t.Logf("off after %v", time.Since(begin).Round(time.Millisecond))
	if left := residents(old); left != "" {
		t.Errorf("there are left:\n%s", left)
	}
	stopped := pulse.Log().Beats
	if _, err := l.Virsh(t.Context(), hosta, "list"); err == nil {
		t.Error("a host without power answers")
	}
	near.Close()
	silent(t, far)
	if now := pulse.Log().Beats; now != stopped {
		t.Errorf("%d heartbeats from a dead host", now-stopped)
	}
	begin = time.Now()
	l.PowerOn(hosta)
	t.Logf("on after %v", time.Since(begin).Round(time.Millisecond))
	if names := virsh(t, l, hosta, "list", "--all", "--name"); names != kept.name {
		t.Errorf("after the power is back there is %q", names)
	}
	if state := virsh(t, l, hosta, "domstate", kept.name); state != "shut off" {
		t.Errorf("%s is %s", kept.name, state)
	}
	if _, err := os.Stat(lost); !os.IsNotExist(err) {
		t.Errorf("a file in /run: %v", err)
	}
	if _, err := os.Stat(disk); err != nil {
		t.Errorf("the disk did not survive: %v", err)
	}
	connection(t, l)
	d.rom = l.Guest(t, guest.Params{})
	virsh(t, l, hosta, "create", d.xml(t))
	beats(t, pulse, hosta)
}

func TestCleanMakesALabLikeNew(t *testing.T) {
	testutil.Sample(t, 5)
	harms := []struct {
		name string
		harm func(*testing.T, *libvirttest.Lab)
	}{
		{"nothing", func(*testing.T, *libvirttest.Lab) {}},
		{"a guest runs", func(t *testing.T, l *libvirttest.Lab) {
			newDomain(t, l, "web", "qemu").start(t, l, hostb)
		}},
		{"a domain that is defined runs under a name with blanks",
			func(t *testing.T, l *libvirttest.Lab) {
				d := newDomain(t, l, "one two", "qemu")
				virsh(t, l, hosta, "define", d.xml(t))
				virsh(t, l, hosta, "start", d.name)
				virsh(t, l, hosta, "managedsave", d.name)
			}},
		{"a pool and a network", func(t *testing.T, l *libvirttest.Lab) {
			virsh(t, l, hosta, "pool-define-as", "p", "dir", "--target", l.ImagesDir())
			virsh(t, l, hosta, "pool-start", "p")
			path := filepath.Join(t.TempDir(), "net.xml")
			text := "<network><name>n</name><bridge name='br7'/></network>"
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			virsh(t, l, hostb, "net-define", path)
			virsh(t, l, hostb, "net-start", "n")
		}},
		{"files", func(t *testing.T, l *libvirttest.Lab) {
			for _, dir := range []string{l.SharedDir(), l.Outside(hosta, l.ImagesDir())} {
				if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}},
		{"a process that is not known", func(t *testing.T, l *libvirttest.Lab) {
			if _, err := l.Run(hosta, "sh", "-c", "sleep 1000 >/dev/null 2>&1 &"); err != nil {
				t.Fatal(err)
			}
		}},
		{"the link is cut, one daemon is dead, one hangs",
			func(t *testing.T, l *libvirttest.Lab) {
				l.CutLink()
				l.KillDaemon(hosta)
				l.HangDaemon(hostb)
			}},
		{"a migration hangs on a cut link", hangMigration},
		{"a host is off", func(t *testing.T, l *libvirttest.Lab) { l.PowerOff(hostb) }},
		{"libvirtd does not know of what it should forget",
			func(t *testing.T, l *libvirttest.Lab) {
				ghost := l.Outside(hosta, "/etc/libvirt/qemu/ghost.xml")
				if err := os.WriteFile(ghost, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}},
		{"a host has died", func(t *testing.T, l *libvirttest.Lab) {
			if err := syscall.Kill(l.PID(hosta), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, h := range harms {
		t.Run(h.name, func(t *testing.T) { cleans(t, h.harm) })
	}
}

func cleans(t *testing.T, harm func(*testing.T, *libvirttest.Lab)) {
	l := shared(t)
	harm(t, l)
	begin := time.Now()
	l.Clean(t)
	t.Logf("clean after %v", time.Since(begin).Round(time.Millisecond))
	isNew(t, l)
}

// hangMigration leaves a migration that waits for packets.
func hangMigration(t *testing.T, l *libvirttest.Lab) {
	d := newDomain(t, l, "web", "qemu")
	pulse := d.start(t, l, hosta)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	cut := make(chan struct{})
	go func() {
		defer close(cut)
		time.Sleep(500 * time.Millisecond)
		l.CutLink()
	}()
	defer func() { <-cut }()
	_, err := l.Virsh(ctx, hosta, "migrate", "--live", "--p2p", "--bandwidth", "1", d.name,
		l.PeerURI(hostb))
	if err == nil {
		t.Fatal("it went through a cut link")
	}
	beats(t, pulse, hosta)
}

// isNew fails unless a lab is as it was when it was new.
func isNew(t *testing.T, l *libvirttest.Lab) {
	t.Helper()
	for _, host := range []string{hosta, hostb} {
		for _, list := range []string{"list --all --name", "pool-list --all --name",
			"net-list --all --name"} {
			if got := virsh(t, l, host, strings.Fields(list)...); got != "" {
				t.Errorf("%s on %s: %q", list, host, got)
			}
		}
		out, err := l.Run(host, "ps", "-e", "-o", "comm=")
		names := strings.Fields(out)
		if err != nil || len(names) != 3 || !slices.Contains(names, "libvirtd") {
			t.Errorf("on %s run %q: %v", host, names, err)
		}
		for _, dir := range []string{l.SharedDir(), l.Outside(host, l.ImagesDir()),
			l.Outside(host, filepath.Dir(libvirttest.PulsePath("x")))} {
			if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
				t.Errorf("in %s are %v: %v", dir, files, err)
			}
		}
	}
	connection(t, l)
}
