//go:build linux && libvirt_dlopen

package conn_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"libvirt.org/go/libvirt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/internal/conn"
	"github.com/godwit-vm/godwit/internal/libvirttest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// descriptors counts the sockets that this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	n := 0
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range all {
		if to, _ := os.Readlink("/proc/self/fd/" + fd.Name()); strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

func TestOpenAndCloseLeaveNothing(t *testing.T) {
	lab := libvirttest.Shared(t, libvirttest.Options{})
	before, sockets := goleak.IgnoreCurrent(), descriptors(t)
	for range 3 { // the event loop ends and begins again
		e := new(eventLog)
		first := open(t, e.config(lab))
		second := open(t, e.config(lab))
		if err := first.Close(); err != nil {
			t.Error(err)
		}
		got, err := conn.Ask(t.Context(), second, list)
		if diff := cmp.Diff([]string{}, got); diff != "" || err != nil {
			t.Errorf("(-want +got): %v\n%s", err, diff)
		}
		for range 2 { // it may be repeated
			if err := second.Close(); err != nil {
				t.Error(err)
			}
		}
		err = second.Look(t.Context(), func(*conn.Connect) error { panic("called") })
		if !errors.Is(err, hypervisor.Transient) || !strings.Contains(err.Error(), "was closed") {
			t.Errorf("after Close: %v", err)
		}
		if err := goleak.Find(before); err != nil {
			t.Fatal(err)
		}
		if now := descriptors(t); now != sockets {
			t.Errorf("%d sockets are open, %d were", now, sockets)
		}
		if len(e.all) != 0 {
			t.Errorf("nothing happened, and was told: %q", e.all)
		}
	}
}

func TestEventsOfADomain(t *testing.T) {
	lab, e := libvirttest.Shared(t, libvirttest.Options{}), new(eventLog)
	c := open(t, e.config(lab))
	for _, do := range []func(*conn.Connect) error{live("web"),
		on("web", (*libvirt.Domain).Suspend), on("web", (*libvirt.Domain).Resume),
		on("web", func(d *libvirt.Domain) error { return d.Reset(0) }),
		on("web", (*libvirt.Domain).Destroy)} {
		if err := c.Act(t.Context(), do); err != nil {
			t.Fatal(err)
		}
	}
	e.await(t, "stopped web destroyed", 1)
	got := slices.DeleteFunc(slices.Clone(e.all), func(s string) bool {
		return s == "rebooted web " || s == "shut down web host" // as often as QEMU says so
	})
	want := []string{"resumed web unpaused", "started web booted", "suspended web paused",
		"resumed web unpaused", "stopped web destroyed"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if e.count("rebooted web ") == 0 {
		t.Error("the reset was not told")
	}
	if len(e.uuid) != 36 {
		t.Errorf("the UUID is %q", e.uuid)
	}
}

// TestADaemonThatDiesIsPickedUpAgain: nothing is done but to start it.
func TestADaemonThatDiesIsPickedUpAgain(t *testing.T) {
	lab, e := libvirttest.Shared(t, libvirttest.Options{}), new(eventLog)
	before, sockets := goleak.IgnoreCurrent(), descriptors(t)
	c := open(t, e.config(lab))
	if err := c.Act(t.Context(), live("web")); err != nil {
		t.Fatal(err)
	}
	for round := 1; round <= 2; round++ {
		lab.KillDaemon(host)
		e.await(t, "lost", round)
		if why := e.why.Error(); !strings.Contains(why, "the daemon closed it or died") ||
			!strings.Contains(why, lab.URI(host)) {
			t.Errorf("lost: %s", why)
		}
		begun := time.Now()
		err := c.Act(t.Context(), func(*conn.Connect) error { panic("called") })
		if !errors.Is(err, hypervisor.Transient) || time.Since(begun) > testutil.Limit(20*time.Second) {
			t.Errorf("without a daemon, after %s: %v", time.Since(begun), err)
		}
		lab.StartDaemon(host)
		e.await(t, "connected", round)
		got, err := conn.Ask(t.Context(), c, list)
		if diff := cmp.Diff([]string{"web"}, got); diff != "" || err != nil {
			t.Errorf("(-want +got): %v\n%s", err, diff)
		}
		if err := c.Act(t.Context(), on("web", (*libvirt.Domain).Suspend)); err != nil {
			t.Fatal(err)
		}
		e.await(t, "suspended web paused", round)
		if err := c.Act(t.Context(), on("web", (*libvirt.Domain).Resume)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
	if now := descriptors(t); now != sockets {
		t.Errorf("%d sockets are open, %d were", now, sockets)
	}
}

// TestADaemonThatHangs: calls end in time and say what is known; keep-alive gives the
// connection up; when the daemon goes on, so does everything.
func TestADaemonThatHangs(t *testing.T) {
	lab, e := libvirttest.Shared(t, libvirttest.Options{}), new(eventLog)
	config := e.config(lab)
	config.Timeout = 300 * time.Millisecond
	c := open(t, config)
	done := make(chan error, 1)
	thaw := lab.HangDaemon(host)
	hung := time.Now()
	for _, row := range []struct {
		name string
		call func() error
		want hypervisor.Kind
	}{
		{"an act", func() error { return c.Act(t.Context(), live("web")) }, hypervisor.Unknown},
		{"an act that is not begun", func() error { return c.Act(t.Context(), live("x")) },
			hypervisor.Transient},
		{"a look", func() error { _, err := conn.Ask(t.Context(), c, list); return err },
			hypervisor.Transient},
		{"a beginning", func() error {
			return c.Begin(t.Context(), live("db"), func(err error) { done <- err })
		}, hypervisor.Transient},
		{"another Open", func() error { _, err := conn.Open(t.Context(), config); return err },
			hypervisor.Transient},
	} {
		begun := time.Now()
		err := row.call()
		took := time.Since(begun)
		if !errors.Is(err, row.want) || took < config.Timeout ||
			took > config.Timeout+patience {
			t.Errorf("%s: after %s: %v, want %v", row.name, took, err, row.want)
		}
		if !strings.Contains(err.Error(), "no answer within 300ms") {
			t.Errorf("%s: it does not say why: %v", row.name, err)
		}
	}
	e.await(t, "lost", 1)
	t.Logf("keep-alive of 2 x 1s gave up after %s", time.Since(hung).Round(time.Millisecond))
	if !strings.Contains(e.why.Error(), "did not answer keep-alive messages") {
		t.Errorf("lost: %v", e.why)
	}
	thaw()
	e.await(t, "connected", 1)
	config.Timeout = patience
	if err := open(t, config).Act(t.Context(), live("db")); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	select {
	case err := <-done:
		t.Errorf("what was not begun has ended: %v", err)
	default:
	}
	e.await(t, "started db booted", 1)
}

// TestCloseWhileTheDaemonHangs: Close gives up in time, says so, and what it leaves
// behind ends with the keep-alive.
func TestCloseWhileTheDaemonHangs(t *testing.T) {
	lab, e := libvirttest.Shared(t, libvirttest.Options{}), new(eventLog)
	before := goleak.IgnoreCurrent()
	config := e.config(lab)
	config.Timeout = 300 * time.Millisecond
	c := open(t, config)
	thaw := lab.HangDaemon(host)
	defer thaw()
	if _, err := conn.Ask(t.Context(), c, list); !errors.Is(err, hypervisor.Transient) {
		t.Errorf("got %v", err)
	}
	begun := time.Now()
	err := c.Close()
	if took := time.Since(begun); !errors.Is(err, hypervisor.Unknown) || took > testutil.Limit(20*time.Second) ||
		!strings.Contains(err.Error(), "1 connections and 0 long calls are still under way") {
		t.Errorf("after %s: %v", took, err)
	}
	if err := goleak.Find(before, goleak.Cleanup(func(int) {})); err == nil {
		t.Error("nothing is left, and Close said there is")
	}
	gone(t, before)
	if err := c.Close(); err != nil {
		t.Errorf("nothing is left any more, and Close says %v", err)
	}
}

// gone waits until no goroutine is left.
func gone(t *testing.T, before goleak.Option) {
	t.Helper()
	testutil.Eventually(t, "no goroutine is left", func() error { return goleak.Find(before) })
}

// TestManyCallers: many ask at once, also for the first time, and while the daemon is
// killed; each gets an answer or is told to ask again.
func TestManyCallers(t *testing.T) {
	lab, e := libvirttest.Shared(t, libvirttest.Options{}), new(eventLog)
	c := open(t, e.config(lab))
	ask := func(n int) error {
		_, err := conn.Ask(t.Context(), c, func(c *conn.Connect) (int, error) {
			switch n % 3 {
			case 0:
				_, err := list(c)
				return 0, err
			case 1:
				_, err := c.GetHostname()
				return 0, err
			}
			_, err := c.GetNodeInfo()
			return 0, err
		})
		return err
	}
	round := func(check func(error)) {
		var all sync.WaitGroup
		for n := range 50 {
			all.Go(func() {
				for range 10 {
					check(ask(n))
				}
			})
		}
		all.Wait()
	}
	round(func(err error) {
		if err != nil {
			t.Error(err)
		}
	})
	killed := make(chan bool)
	go func() {
		defer close(killed)
		time.Sleep(20 * time.Millisecond)
		lab.KillDaemon(host)
	}()
	round(func(err error) {
		if err != nil && !errors.Is(err, hypervisor.Transient) {
			t.Error(err)
		}
	})
	<-killed
	e.await(t, "lost", 1)
	lab.StartDaemon(host)
	e.await(t, "connected", 1)
	if err := ask(0); err != nil {
		t.Error(err)
	}
}

// TestASlowCallKeepsNoOtherWaiting: others take another lane, and come back to the
// same ones; Close gives all of them up.
func TestASlowCallKeepsNoOtherWaiting(t *testing.T) {
	lab := libvirttest.Shared(t, libvirttest.Options{})
	before, sockets := goleak.IgnoreCurrent(), descriptors(t)
	config := new(eventLog).config(lab)
	config.Timeout = patience
	c := open(t, config)
	seen := map[*conn.Connect]bool{}
	for range 4 {
		_, err := conn.Ask(t.Context(), c, func(slow *conn.Connect) (int, error) {
			seen[slow] = true
			return conn.Ask(t.Context(), c, func(fast *conn.Connect) (int, error) {
				if fast == slow {
					t.Error("two calls at once on one connection of libvirt's")
				}
				seen[fast] = true
				names, err := list(fast)
				return len(names), err
			})
		})
		if err != nil {
			t.Error(err)
		}
	}
	if len(seen) != 2 {
		t.Errorf("%d connections were opened for two calls at once", len(seen))
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
	if now := descriptors(t); now != sockets {
		t.Errorf("%d sockets are open, %d were", now, sockets)
	}
}

// TestBegin: what lasts does not keep others waiting, and its outcome is told.
func TestBegin(t *testing.T) {
	lab, e := libvirttest.Shared(t, libvirttest.Options{}), new(eventLog)
	config := e.config(lab)
	config.Timeout = 10 * time.Second
	c := open(t, config)
	outcomes, wait := make(chan error, 10), make(chan bool)
	for range 10 { // more than libvirtd serves on one connection
		err := c.Begin(t.Context(), func(conn *conn.Connect) error {
			<-wait
			_, err := list(conn)
			return err
		}, func(err error) { outcomes <- err })
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Ask(t.Context(), c, list); err != nil {
		t.Errorf("meanwhile: %v", err)
	}
	select {
	case err := <-outcomes:
		t.Errorf("it ended before it could: %v", err)
	case <-time.After(config.Timeout + 100*time.Millisecond): // which does not end it
	}
	if err := c.Close(); !errors.Is(err, hypervisor.Unknown) ||
		!strings.Contains(err.Error(), "0 connections and 10 long calls") {
		t.Errorf("close: %v", err)
	}
	close(wait)
	for range 10 {
		if err := <-outcomes; err != nil {
			t.Error(err)
		}
	}
	if err := c.Begin(t.Context(), nil, nil); !errors.Is(err, hypervisor.Transient) {
		t.Errorf("after Close: %v", err)
	}
}

// TestLibvirtsRefusals: what a real libvirtd says no with.
func TestLibvirtsRefusals(t *testing.T) {
	lab, e := libvirttest.Shared(t, libvirttest.Options{}), new(eventLog)
	c := open(t, e.config(lab))
	if err := c.Act(t.Context(), live("web")); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name string
		do   func(*conn.Connect) error
		want hypervisor.Kind
	}{
		{"no such domain", on("none", (*libvirt.Domain).Suspend), hypervisor.NotFound},
		{"that very domain runs", live("web"), hypervisor.Conflict},
		{"it runs", on("web", (*libvirt.Domain).Create), hypervisor.Conflict},
		{"no XML", func(c *conn.Connect) error {
			_, err := c.DomainCreateXML("<domain", 0)
			return err
		}, hypervisor.Invalid},
		{"an unknown machine", func(c *conn.Connect) error {
			_, err := c.DomainCreateXML(strings.Replace(xml("x"), "'pc'", "'abacus'", 1), 0)
			return err
		}, hypervisor.Unsupported},
		{"an unknown flag", func(c *conn.Connect) error {
			_, err := c.DomainCreateXML(xml("x"), 1<<30)
			return err
		}, hypervisor.Invalid},
	} {
		err := c.Act(t.Context(), row.do)
		if !errors.Is(err, row.want) || conn.Classify(err) != row.want {
			t.Errorf("%s: got %v, want %v", row.name, err, row.want)
		}
		if looked := c.Look(t.Context(), row.do); !errors.Is(looked, row.want) {
			t.Errorf("%s: a look: got %v", row.name, looked)
		}
		if strings.Contains(err.Error(), "virError(") {
			t.Errorf("%s: for people: %v", row.name, err)
		}
	}
}

// TestWhatCannotBeReached: every error says what was tried and why it failed.
func TestWhatCannotBeReached(t *testing.T) {
	lab := libvirttest.Shared(t, libvirttest.Options{})
	before := goleak.IgnoreCurrent()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := "qemu+tcp://" + l.Addr().String() + "/system"
	l.Close()
	for uri, want := range map[string]string{
		"qemu+unix:///system?socket=" + dir + "/none": "No such file or directory",
		"qemu+unix:///system?socket=" + file:          "Connection refused",
		refused:                                       "Connection refused",
	} {
		_, err := conn.Open(t.Context(), conn.Config{URI: uri, Timeout: patience})
		if !errors.Is(err, hypervisor.Transient) || !strings.Contains(err.Error(), uri) ||
			!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "running") {
			t.Errorf("%s: got %v, want %q", uri, err, want)
		}
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
	lab.Clean(t)
}

// TestWithoutLibvirtsLibrary: the program starts, and says what is missing.
func TestWithoutLibvirtsLibrary(t *testing.T) {
	libvirttest.Shared(t, libvirttest.Options{}) // which needs the same rights
	out := inItsOwnMounts(t, `for so in /lib/*/libvirt.so.0 /usr/lib/*/libvirt.so.0
		do test ! -e "$so" || mount --bind /dev/null "$(readlink -f "$so")"; done`)
	if !strings.Contains(out, "unsupported: libvirt.so.0 cannot be loaded: ") ||
		!strings.Contains(out, "apt-get install libvirt0") {
		t.Errorf("got %s", out)
	}
}
