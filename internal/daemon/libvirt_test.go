//go:build linux && libvirt_dlopen

package daemon_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/internal/daemon"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/libvirttest"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/store"
)

func TestMain(m *testing.M) { os.Exit(libvirttest.Main(testutil.Reaped{Main: m})) }

const hosta, hostb = libvirttest.HostA, libvirttest.HostB

// load is what the guest does: it checks its own memory.
func load() guest.Params {
	return guest.Params{Fill: 16 << 20, WorkingSet: 1 << 20, Rate: 4 << 20, Random: true}.
		On(testutil.Accelerator(), testutil.QEMU())
}

// eventually is how long anything may take on a busy machine.
const eventually = 90 * time.Second

// A cluster is a controller outside, and an agent in each of two hosts, beside its libvirtd,
// all of them real processes.
type cluster struct {
	*libvirttest.Lab
	t       *testing.T
	dir     string
	program string
	store   string
	pulse   *guest.HeartbeatListener // of the VM web
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{Lab: libvirttest.Shared(t, libvirttest.Options{}), t: t, dir: t.TempDir()}
	c.program = filepath.Join(c.dir, "godwit")
	out, err := exec.Command("go", "build", "-tags", "libvirt_dlopen", "-o", c.program,
		"github.com/godwit-vm/godwit/cmd/godwit").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	short, err := os.MkdirTemp("", "") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	c.store = "bolt:" + filepath.Join(short, "cluster.db")
	return c
}

// A daemon is a process of ours.
type libvirtDaemon struct {
	c     *cluster
	name  string
	cmd   *exec.Cmd
	log   string
	ended bool
}

// start runs godwit until the test ends it, in the namespaces of a host, or outside of "".
func (c *cluster) start(name, host string, args ...string) *libvirtDaemon {
	c.t.Helper()
	argv := append([]string{c.program}, append(args, "--store", c.store)...)
	if host != "" {
		argv = append([]string{"nsenter", "--mount", "--net", "--uts", "--target",
			strconv.Itoa(c.PID(host)), "--"}, argv...)
	}
	d := &libvirtDaemon{c: c, name: name, cmd: exec.Command(argv[0], argv[1:]...),
		log: filepath.Join(c.dir, name+".log")}
	log, err := os.OpenFile(d.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := d.cmd.Start(); err != nil {
		c.t.Fatalf("%s: %v", name, err)
	}
	c.t.Cleanup(func() {
		if !d.ended {
			d.end(syscall.SIGKILL)
		}
		if text, err := os.ReadFile(d.log); err == nil && c.t.Failed() {
			c.t.Logf("%s:\n%s", name, text)
		}
	})
	return d
}

func (c *cluster) controller() *libvirtDaemon {
	return c.start("controller", "", "controller", "--name", "a", "--heartbeat-interval", "300ms")
}

func (c *cluster) agent(host string) *libvirtDaemon {
	return c.start(host, host, "agent", "--host", host, "--backend", "libvirt",
		"--dir", filepath.Join(c.dir, host), "--locks", filepath.Join(c.dir, host+"-locks"), "--peer", c.PeerURI(host), "--memory", "1GiB",
		"--cpus", "8", "--poll", "200ms", "--debug-dir", "/run")
}

// add adds the VM web, whose guest is heard from then on.
func (c *cluster) add(host hypervisor.HostName) {
	c.t.Helper()
	c.pulse = c.ListenAt(c.t, "/run/web.debug")
	u, err := daemon.ParseURL(c.store)
	if err != nil {
		c.t.Fatal(err)
	}
	s, err := daemon.OpenStore(c.t.Context(), u, daemon.TLS{})
	if err != nil {
		c.t.Fatal(err)
	}
	defer s.Close()
	d := &client.Client{Store: daemon.Judged(s), Now: time.Now}
	_, err = d.AddVM(c.t.Context(), &store.VM{VM: hypervisor.VM{ID: "default/web", CPUs: 1,
		Memory: hypervisor.Bytes(libvirttest.Memory(load())) << 20, Hardware: &hypervisor.Hardware{
			Machine: "pc", Firmware: c.Guest(c.t, load()), DebugPort: 0xe9}},
		Namespace: "default", Host: host, Migratable: true})
	if err != nil {
		c.t.Fatal(err)
	}
}

// once checks by its heartbeats that the guest has booted once, has counted on since without going
// back, was never heard from two QEMUs by turns, and goes on, on one host.
func (c *cluster) once(on string) {
	c.t.Helper()
	before := c.pulse.Log().Beats
	testutil.EventuallyWithin(c.t, eventually, "the guest beats on "+on, func() error {
		r := c.pulse.Log()
		if r.Beats < before+10 || libvirttest.HostOf(r.From) != on {
			return fmt.Errorf("%d heartbeats more, the last from %s", r.Beats-before, r.From)
		}
		return nil
	})
	r := c.pulse.Log()
	if err := errors.Join(r.Check(), r.Twice()); err != nil || r.Boots != 1 {
		c.t.Errorf("the guest has booted %d times: %v", r.Boots, err)
	}
}

// end ends a daemon by a signal, and returns how it has ended.
func (d *libvirtDaemon) end(s syscall.Signal) error {
	d.ended = true
	_ = d.cmd.Process.Signal(s) // it may have ended
	return d.cmd.Wait()
}

// godwit runs a command of an operator's.
func (c *cluster) godwit(args ...string) (string, error) {
	cmd := exec.CommandContext(c.t.Context(), c.program, args...)
	cmd.Env = append(os.Environ(), "GODWIT_STORE="+c.store)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("godwit %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}

func (c *cluster) must(args ...string) {
	c.t.Helper()
	if _, err := c.godwit(args...); err != nil {
		c.t.Fatal(err)
	}
}

// until waits until what a command prints matches.
func (c *cluster) until(pattern string, args ...string) {
	c.t.Helper()
	want := regexp.MustCompile("(?m)" + pattern)
	testutil.EventuallyWithin(c.t, eventually, fmt.Sprintf("%q is printed", pattern), func() error {
		out, err := c.godwit(args...)
		if err == nil && !want.MatchString(out) {
			err = fmt.Errorf("it prints\n%s", out)
		}
		return err
	})
}

// runs checks that the VM runs on one host, with its memory, and that the other one soon
// forgets it: a source is released after the move has succeeded.
func (c *cluster) runs(on, notOn string) {
	c.t.Helper()
	has := func(host string, args ...string) string {
		out, err := c.Virsh(c.t.Context(), host, append([]string{"list", "--name"}, args...)...)
		if err != nil {
			c.t.Fatal(err)
		}
		return strings.TrimSpace(out)
	}
	const running = "--state-running"
	if there, here := has(notOn, running), has(on, running); there != "" || here != "web" {
		c.t.Fatalf("%q runs on %s, and %q on %s", here, on, there, notOn)
	}
	testutil.EventuallyWithin(c.t, eventually, notOn+" forgets it", func() error {
		if left := has(notOn, "--all"); left != "" {
			return fmt.Errorf("it has %s", left)
		}
		return nil
	})
	if err := c.Verify(c.t, on, "web", load()); err != nil {
		c.t.Fatal(err)
	}
	c.once(on)
}

// TestDaemonsOverLibvirt: a VM moves between two real libvirtds while the controller, both
// agents and both libvirtds die in turn. It is started once, and runs on one host at a time.
func TestDaemonsOverLibvirt(t *testing.T) {
	testutil.Sample(t, 4)
	c := newCluster(t)
	control, a, b := c.controller(), c.agent(hosta), c.agent(hostb)
	c.until(`^hosta +ready(.|\n)*^hostb +ready`, "host", "list")
	c.add(hosta)
	const on = `^default/web +%s +running .* 1$`
	c.until(fmt.Sprintf(on, hosta), "vm", "list")
	c.must("migrate", "web", "--to", hostb, "--wait")
	c.runs(hostb, hosta)

	t.Log("the source's agent and libvirtd are killed when it is to be emptied")
	c.must("drain", hostb)
	_ = b.end(syscall.SIGKILL)
	c.KillDaemon(hostb)
	_ = control.end(syscall.SIGKILL)
	control = c.controller()
	c.StartDaemon(hostb)
	b = c.agent(hostb)
	c.must("drain", hostb, "--wait")
	c.runs(hosta, hostb)

	t.Log("the target's are, and the source's agent")
	c.must("host", "undrain", hostb)
	c.must("drain", hosta)
	_ = a.end(syscall.SIGKILL)
	c.KillDaemon(hostb)
	a = c.agent(hosta)
	c.StartDaemon(hostb)
	c.must("drain", hosta, "--wait")
	c.until(fmt.Sprintf(on, hostb), "vm", "list")
	c.runs(hostb, hosta)

	c.must("vm", "stop", "web", "--kill")
	c.until(`^default/web +hostb +stopped `, "vm", "list")
	c.must("vm", "delete", "web")
	for _, d := range []*libvirtDaemon{a, b, control} {
		if err := d.end(syscall.SIGINT); err != nil {
			t.Errorf("%s: %v", d.name, err)
		}
	}
}

// TestTwoAgentsForOneLibvirtd: on one machine the kernel refuses the second, whatever name it has;
// with other locks, as in another container, the store refuses the name. What runs runs once.
func TestTwoAgentsForOneLibvirtd(t *testing.T) {
	testutil.Sample(t, 4) // it builds the command, and takes half a minute
	c := newCluster(t)
	control, a := c.controller(), c.agent(hosta)
	c.until(`^hosta +ready`, "host", "list")
	c.add(hosta)
	c.until(`^default/web +hosta +running .* 1$`, "vm", "list")
	for _, row := range []struct{ name, host, locks, want string }{
		{"of the same name", hosta, hosta + "-locks", "is the agent of host hosta already"},
		{"of another name", "other", hosta + "-locks", "is the agent of libvirtd .* already"},
		{"with other locks", hosta, "other-locks", "host hosta belongs to identity"},
	} {
		second := c.start("second "+row.name, hosta, "agent", "--host", row.host, "--backend",
			"libvirt", "--dir", filepath.Join(c.dir, "second"+row.host), "--locks",
			filepath.Join(c.dir, row.locks), "--peer", c.PeerURI(hosta), "--memory", "1GiB",
			"--cpus", "8", "--poll", "200ms")
		second.ended = true
		err := second.cmd.Wait()
		text, _ := os.ReadFile(second.log)
		if second.cmd.ProcessState.ExitCode() != 4 ||
			!regexp.MustCompile(row.want).Match(text) {
			t.Errorf("an agent %s ends with %v:\n%s", row.name, err, text)
		}
	}
	out, err := c.Virsh(t.Context(), hosta, "list", "--all", "--name")
	if strings.TrimSpace(out) != "web" || err != nil {
		t.Errorf("the domains are %q: %v", out, err)
	}
	if err := c.Verify(t, hosta, "web", load()); err != nil {
		t.Error(err)
	}
	c.once(hosta)
	if out, err := c.godwit("vm", "list"); !regexp.MustCompile(
		`(?m)^default/web +hosta +running +\S+ +\d+ +1\b`).MatchString(out) { // it may still be told to be paused
		t.Errorf("the VM was started again: %s, %v", out, err)
	}
	c.must("vm", "stop", "web", "--kill")
	testutil.EventuallyWithin(t, eventually, "it has stopped", func() error {
		out, _ := c.godwit("vm", "list") // with an alarm about the second agent
		if !regexp.MustCompile(`(?m)^default/web +hosta +stopped `).MatchString(out) {
			return fmt.Errorf("it prints\n%s", out)
		}
		return nil
	})
	for _, d := range []*libvirtDaemon{a, control} {
		if err := d.end(syscall.SIGINT); err != nil {
			t.Errorf("%s: %v", d.name, err)
		}
	}
}

// TestAStoreThatIsSetBackOverLibvirt: a VM moves from one libvirtd to the other, and then a backup of the
// store from before is restored, and the agent of the VM's old host begins anew. libvirt says that the
// same QEMU runs on, and no other, until it is reconciled; then the VM moves back.
func TestAStoreThatIsSetBackOverLibvirt(t *testing.T) {
	testutil.Sample(t, 4)
	c := newCluster(t)
	control, a, b := c.controller(), c.agent(hosta), c.agent(hostb)
	c.until(`^hosta +ready(.|\n)*^hostb +ready`, "host", "list")
	c.add(hosta)
	const on = `^default/web +%s +running .* 1$`
	c.until(fmt.Sprintf(on, hosta), "vm", "list")
	end := func(d *libvirtDaemon) {
		t.Helper()
		if err := d.end(syscall.SIGINT); err != nil {
			t.Fatalf("%s: %v", d.name, err)
		}
	}
	end(control)
	file := strings.TrimPrefix(c.store, "bolt:")
	copyFile(t, file, file+".backup")
	control = c.controller()
	c.until(`^hosta +ready(.|\n)*^hostb +ready`, "host", "list")
	c.must("migrate", "web", "--to", hostb, "--wait")
	c.runs(hostb, hosta)
	qemu, err := c.QEMU(hostb, "web")
	if err != nil {
		t.Fatal(err)
	}

	end(control)
	_ = a.end(syscall.SIGKILL)
	copyFile(t, file+".backup", file)
	control, a = c.controller(), c.agent(hosta)
	testutil.EventuallyWithin(t, eventually, "the operator is told", func() error {
		out, err := c.godwit("status")
		ended, _ := errors.AsType[*exec.ExitError](err)
		if ended == nil || ended.ExitCode() != 4 || !strings.Contains(out, "the store is older than it was") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	same := func() {
		t.Helper()
		c.runs(hostb, hosta)
		if now, err := c.QEMU(hostb, "web"); now != qemu || err != nil {
			t.Errorf("process %d ran the VM, and %d does: %v", qemu, now, err)
		}
	}
	testutil.EventuallyWithin(t, eventually, "all hosts have told", func() error {
		_, err := c.godwit("store", "reconcile")
		if ended, _ := errors.AsType[*exec.ExitError](err); ended != nil && ended.ExitCode() == 4 {
			return nil
		}
		return fmt.Errorf("it ends with %w", err)
	})
	same()
	testutil.EventuallyWithin(t, eventually, "it is reconciled", func() error {
		_, err := c.godwit("store", "reconcile", "--write", "--by", "alice")
		return err
	})
	c.until(fmt.Sprintf(on, hostb), "vm", "list")
	c.until(`^hosta +ready(.|\n)*^hostb +ready`, "host", "list")
	same()
	c.must("migrate", "web", "--to", hosta, "--wait")
	c.runs(hosta, hostb)
	for _, d := range []*libvirtDaemon{a, b, control} {
		end(d)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
