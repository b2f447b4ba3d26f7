//go:build linux

package libvirttest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// The names of the two hosts, by which they also find each other.
const (
	HostA = "hosta"
	HostB = "hostb"
)

// Options say how the hosts are to be. The zero value is plain libvirt.
type Options struct {
	// Name tells labs apart that are alike: tests at the same time share no hosts.
	// Default: "", the one that most tests share, one after the other.
	Name string
	// TLS makes certificates, has QEMU find them when a migration asks for
	// encryption, and has libvirtd listen for it (see [Lab.PeerTLSURI]). Default: no
	// certificates.
	TLS bool
	// QuickLoss has libvirtds give up a peer that does not answer after three to four seconds. It is for tests that
	// accept that a migration fails, as one does on a busy machine then. Default: after [PeerTimeout], and two seconds more.
	QuickLoss bool
}

// A Lab is two hosts and the switch between them. Its methods fail the test of [New]
// or of the last [Lab.Clean]; they must be called from the test's own goroutine,
// except those that only answer a path or an address.
type Lab struct {
	t       testing.TB
	dir     string
	tls     string // directory of the certificates; "" is none
	options Options
	hosts   []*host
	wire    Sandbox // the switch
	cut     bool
	roms    int
}

// New starts two hosts, which takes about a second, and takes them down at the end
// of the test. It skips the test, and says why, where none can run; see
// [Missing]. A test that can share its hosts takes [Shared] instead.
func New(t testing.TB, o Options) *Lab {
	t.Helper()
	needLab(t)
	l, err := open(o)
	if err != nil {
		t.Fatalf("libvirttest: %v", err)
	}
	l.t = t
	t.Cleanup(func() {
		l.showLogs(t)
		if err := l.close(); err != nil {
			t.Errorf("libvirttest: take the lab down: %v", err)
		}
	})
	return l
}

// Shared is a clean lab that the tests of a process that want it like that use one after the
// other: it is started once, and cleaned for each. A test that runs at the same time waits.
// The test may call [Lab.Clean] itself between its subtests.
func Shared(t testing.TB, o Options) *Lab {
	t.Helper()
	needLab(t)
	p := placeOf(o)
	p.busy.Lock()
	t.Cleanup(p.busy.Unlock)
	if p.lab == nil {
		var err error
		if p.lab, err = open(o); err != nil {
			t.Fatalf("libvirttest: %v", err)
		}
	}
	p.lab.Clean(t)
	return p.lab
}

// A place is where tests share a lab.
type place struct {
	busy sync.Mutex // held by the test that has it
	lab  *Lab       // nil before the first one
}

func placeOf(o Options) *place {
	world.Lock()
	defer world.Unlock()
	if world.shared == nil {
		world.shared = map[Options]*place{}
	}
	if world.shared[o] == nil {
		world.shared[o] = new(place)
	}
	return world.shared[o]
}

func needLab(t testing.TB) {
	t.Helper()
	if why := Missing(); why != "" {
		t.Skipf("no lab with real libvirt can run here: %s", why)
	}
	if world.root == "" {
		t.Fatal("libvirttest: there is no root directory; call libvirttest.Main in TestMain")
	}
}

// open starts a lab, one at a time: the first learns what the others are taught.
func open(o Options) (*Lab, error) {
	world.opening.Lock()
	defer world.opening.Unlock()
	l := &Lab{options: o}
	world.Lock()
	world.next++
	l.dir = filepath.Join(world.root, fmt.Sprint(world.next))
	world.labs = append(world.labs, l)
	world.Unlock()
	for i, name := range []string{HostA, HostB} {
		l.hosts = append(l.hosts, &host{lab: l, name: name, number: i + 1,
			dir: filepath.Join(l.dir, string("ab"[i]))})
	}
	if err := l.up(); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

func (l *Lab) up() (err error) {
	if err := os.MkdirAll(filepath.Join(l.dir, "roms"), 0o700); err != nil {
		return err
	}
	if l.options.TLS {
		if l.tls, err = certificates(); err != nil {
			return err
		}
	}
	if err := l.openSwitch(); err != nil {
		return err
	}
	err = l.each(func(h *host) error { return errors.Join(h.learn(), l.bootHost(h)) })
	if err != nil {
		return err
	}
	return l.teach()
}

// learn gives a host what libvirtd has found out about the QEMUs on this machine,
// if it has in an earlier lab: that takes it more than a second.
func (h *host) learn() error {
	known := filepath.Join(world.root, "capabilities")
	if _, err := os.Stat(known); err != nil {
		return nil
	}
	return os.CopyFS(h.capabilities(), os.DirFS(known))
}

// teach has the first host find it out, for the second and for later labs.
func (l *Lab) teach() error {
	first, second := l.hosts[0], l.hosts[1]
	known := filepath.Join(world.root, "capabilities")
	if _, err := os.Stat(known); err == nil {
		return nil
	}
	if _, err := first.virsh(patience, "version"); err != nil {
		return err
	}
	return errors.Join(os.CopyFS(known, os.DirFS(first.capabilities())), second.learn())
}

func (h *host) capabilities() string {
	return filepath.Join(h.dir, "var-cache/qemu/capabilities")
}

// bootHost boots a host that is off, up to a libvirtd that answers.
func (l *Lab) bootHost(h *host) error {
	if err := h.powerOn(); err != nil {
		return err
	}
	if err := l.plug(h); err != nil {
		return err
	}
	return h.startDaemon()
}

// each does something to both hosts at the same time.
func (l *Lab) each(do func(*host) error) error {
	var g errgroup.Group
	for _, h := range l.hosts {
		g.Go(func() error { return do(h) })
	}
	return g.Wait()
}

// close takes everything down. It may be repeated.
func (l *Lab) close() error {
	world.Lock()
	world.labs = slices.DeleteFunc(slices.Clone(world.labs), func(o *Lab) bool { return o == l })
	world.Unlock()
	err := l.each(func(h *host) error { return h.Kill() })
	return errors.Join(err, l.wire.Kill(), os.RemoveAll(l.dir))
}

// must fails the test.
func (l *Lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatalf("libvirttest: %v", err)
	}
}

// host finds a host by its name.
func (l *Lab) host(name string) *host {
	for _, h := range l.hosts {
		if h.name == name {
			return h
		}
	}
	panic(fmt.Sprintf("libvirttest: there is no host %q; there are %s and %s", name, HostA, HostB))
}

// URI is where the test, outside the hosts, connects to a host's libvirtd.
func (l *Lab) URI(host string) string {
	return "qemu+unix:///system?socket=" + l.host(host).socket()
}

// PeerURI is where another host's libvirtd connects to a host's, in plain text.
func (l *Lab) PeerURI(host string) string { return "qemu+tcp://" + l.host(host).name + "/system" }

// PeerTLSURI is where another host's libvirtd connects to a host's, encrypted. The
// lab must have been started with Options.TLS.
func (l *Lab) PeerTLSURI(host string) string {
	return "qemu+tls://" + l.host(host).name + "/system?pkipath=" + l.tls
}

// Outside is the path, as the test sees it, of a file in a host: of one in /run,
// /etc/libvirt, /var/lib/libvirt, /var/cache/libvirt or /var/log/libvirt. Every other
// file is the same outside and in both hosts, and so is its path.
func (l *Lab) Outside(host, path string) string {
	h := l.host(host)
	for _, m := range ownDirs {
		if rest, ok := strings.CutPrefix(path, m.inside+"/"); ok {
			return filepath.Join(h.dir, m.outside, rest)
		}
		if path == m.inside {
			return filepath.Join(h.dir, m.outside)
		}
	}
	return path
}

// ImagesDir is the directory for disk images, as the hosts see it. Each has its
// own; see [Lab.Outside].
func (l *Lab) ImagesDir() string { return imagesDir }

// SharedDir is a directory that both hosts and the test see under the same path, as
// a network file system would be. It is empty when the lab is clean.
func (l *Lab) SharedDir() string { return filepath.Join(l.dir, "roms") }

// Virsh runs virsh, outside, on a host, and answers what it prints. The error has
// what it says on standard error. It is given up when the context ends.
func (l *Lab) Virsh(ctx context.Context, host string, args ...string) (string, error) {
	return l.host(host).virshContext(ctx, args...)
}

// Run runs a program inside a host, at its end of the switch, and answers what it
// prints on standard output and error. It must be a short one: a host does one thing
// at a time.
func (l *Lab) Run(host string, argv ...string) (string, error) {
	return l.host(host).Run("", argv...)
}

// PID is the first process of a host as seen from outside, or 0 when it is off: nsenter(1)
// starts what is to run inside for long. Its starter ends it.
func (l *Lab) PID(host string) int { return l.host(host).PID() }

// KillDaemon kills a host's libvirtd as if it had crashed. It has ended when this
// returns; it may have been dead before. QEMUs run on.
func (l *Lab) KillDaemon(host string) {
	l.t.Helper()
	l.must(l.host(host).signalDaemon(syscall.SIGKILL))
}

// StartDaemon starts a host's libvirtd, if it does not run, and waits until it
// answers. Before, it does what an operator has to do whose libvirtd was killed while it started a VM:
// it removes what libvirtd has noted of that VM. See docs/known-hypervisor-faults.md.
func (l *Lab) StartDaemon(host string) {
	l.t.Helper()
	l.must(l.host(host).removeHalfStarted())
	l.StartDaemonAsItIs(host)
}

// StartDaemonAsItIs is [Lab.StartDaemon], but for what libvirtd would find half started.
func (l *Lab) StartDaemonAsItIs(host string) {
	l.t.Helper()
	l.must(l.host(host).startDaemon())
}

// halfStarted is in the status of a domain that has no process yet.
var halfStarted = regexp.MustCompile(`<domstatus [^>]*pid='0'`)

// removeHalfStarted removes what a libvirtd that is dead has noted of a domain for which it had not started a process yet.
// The next one would take it for one that is being started, for ever: see docs/known-hypervisor-faults.md.
func (h *host) removeHalfStarted() error {
	if h.signalDaemon(0) == nil {
		return nil // it runs
	}
	files, err := filepath.Glob(h.lab.Outside(h.name, "/run/libvirt/qemu/*.xml"))
	for _, file := range files {
		text, errRead := os.ReadFile(file)
		if err = errors.Join(err, errRead); halfStarted.Match(text) {
			err = errors.Join(err, os.Remove(file))
		}
	}
	return err
}

// HangDaemon stops a host's libvirtd: its connections stay open, and it answers
// nothing until the function that is returned, which may be called more than once,
// or [Lab.Clean] lets it go on.
func (l *Lab) HangDaemon(host string) (thaw func()) {
	l.t.Helper()
	h := l.host(host)
	l.must(h.signalDaemon(syscall.SIGSTOP))
	return func() { l.t.Helper(); l.must(h.signalDaemon(syscall.SIGCONT)) }
}

// PowerOff takes the power from a host: everything in it dies at the same moment,
// and that is not reported. Its disks (/etc/libvirt and all below /var) survive, /run does
// not. The other host still has its network card, and its packets get lost.
func (l *Lab) PowerOff(host string) {
	l.t.Helper()
	h := l.host(host)
	l.must(h.Kill())
	l.must(l.unplug(h))
}

// PowerOn boots a host that is off and waits until its libvirtd answers. The
// link is as it was: cut, if it was cut.
func (l *Lab) PowerOn(host string) {
	l.t.Helper()
	if h := l.host(host); h.PID() == 0 {
		l.must(l.bootHost(h))
	}
}

func (h *host) virsh(patience time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return h.virshContext(ctx, args...)
}

func (h *host) virshContext(ctx context.Context, args ...string) (string, error) {
	argv := append([]string{"-q", "-c", h.lab.URI(h.name)}, args...)
	cmd := exec.CommandContext(ctx, "virsh", argv...)
	// Whatever virsh remembers, it remembers in the lab.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + h.lab.dir}
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("virsh %s on %s: %w: %s", strings.Join(args, " "), h.name,
			errors.Join(err, ctx.Err()), strings.TrimSpace(said.String()))
	}
	return string(out), err
}
