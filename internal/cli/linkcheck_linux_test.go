package cli_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/godwit-vm/godwit/internal/cli"
)

// serve runs ServeLink until the test ends.
func serve(t *testing.T, l net.Listener, clock func() time.Time) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- cli.ServeLink(ctx, l, clock) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		// To dial its port proves nothing: another process may have it by now.
		if c, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("it still listens after its end: %v, %v", c, err)
		}
	})
}

func listen(t *testing.T, at string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", at)
	must(t, err)
	return l
}

// links are the results about a host at an address.
func links(t *testing.T, c cli.HostCheck, address string) map[string]cli.HostResult {
	t.Helper()
	c.Links = []string{address}
	found := map[string]cli.HostResult{}
	for _, r := range cli.CheckHost(t.Context(), c) {
		if name, about := strings.CutSuffix(r.Check, " "+address); about {
			found[name] = r
		}
	}
	return found
}

func TestALinkIsMeasured(t *testing.T) {
	l := listen(t, "127.0.0.1:0")
	serve(t, l, time.Now)
	c := host(t, nil)
	c.Now, c.MeasureFor = time.Now, 50*time.Millisecond
	for _, check := range []string{"first", "second"} { // one after the other
		r := links(t, c, l.Addr().String())
		if link := r["link to"]; link.Status != cli.OK || !strings.Contains(link.Found, "bit/s") {
			t.Errorf("%s: %+v", check, link)
		}
		if mtu := r["MTU to"]; mtu.Status != cli.OK || !strings.Contains(mtu.Found, "65535 bytes pass") { // Linux's lo
			t.Errorf("%s: %+v", check, mtu)
		}
		if clock := r["clock of"]; clock.Status != cli.OK {
			t.Errorf("%s: %+v", check, clock)
		}
	}
}

func TestClocksAtBothEndsOfALinkAreCompared(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		l := listen(t, "127.0.0.1:0")
		serve(t, l, func() time.Time { return time.Now().Add(ahead) })
		c := host(t, nil)
		c.Now, c.MeasureFor = time.Now, 10*time.Millisecond
		all := links(t, c, l.Addr().String())
		r := all["clock of"]
		if r.Status != cli.Failed || !regexp.MustCompile(`^it differs by (1h|60m|59m)`).MatchString(r.Found) {
			t.Errorf("%v ahead: %+v", ahead, all)
		}
	}
}

// What does not speak the protocol, on either side, fails or is dropped, and the next one is served.
func TestALinkToSomethingElseFails(t *testing.T) {
	c := host(t, nil)
	c.Now, c.MeasureFor = time.Now, 10*time.Millisecond
	web := listen(t, "127.0.0.1:0")
	defer web.Close()
	go func() {
		for {
			c, err := web.Accept()
			if err != nil {
				return
			}
			_, _ = io.CopyN(c, strings.NewReader("HTTP/1.1 400 Bad Request\r\n\r\n"), 28)
			_ = c.Close()
		}
	}()
	if r := links(t, c, web.Addr().String())["link to"]; r.Status != cli.Failed || r.Do == "" {
		t.Errorf("of a web server: %+v", r)
	}
	if r := links(t, c, "127.0.0.1:1")["link to"]; r.Status != cli.Failed || !strings.Contains(r.Do, "doctor --answer") {
		t.Errorf("where nothing listens: %+v", r)
	}
	l := listen(t, "127.0.0.1:0")
	serve(t, l, time.Now)
	stranger, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	_, err = io.WriteString(stranger, "GET / HTTP/1.1\r\n\r\n")
	must(t, err)
	if text, _ := io.ReadAll(stranger); len(text) > 0 {
		t.Errorf("a stranger is told %q", text)
	}
	_ = stranger.Close()
	if r := links(t, c, l.Addr().String())["link to"]; r.Status != cli.OK {
		t.Errorf("after a stranger: %+v", r)
	}
}

// A namespace is a thread in a network of its own, which ends with it.
type namespace struct {
	tid  int
	work chan func()
}

// run runs f in the namespace, and waits.
func (n *namespace) run(f func()) {
	done := make(chan struct{})
	n.work <- func() { defer close(done); f() }
	<-done
}

// ip runs commands of ip there.
func (n *namespace) ip(t *testing.T, lines string) {
	t.Helper()
	n.run(func() {
		c := exec.Command("ip", "-batch", "-")
		c.Stdin = strings.NewReader(lines)
		if text, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v: %s\n%s", err, text, lines)
		}
	})
}

func newNamespace(t *testing.T) *namespace {
	t.Helper()
	n := &namespace{work: make(chan func())}
	began := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends, and the namespace with it
		err := unix.Unshare(unix.CLONE_NEWNET)
		n.tid = unix.Gettid()
		began <- err
		for f := range n.work {
			f()
		}
	}()
	if err := <-began; err != nil {
		close(n.work)
		t.Skip("no network namespace can be made: " + err.Error())
	}
	t.Cleanup(func() { close(n.work) })
	return n
}

// A router is between two hosts. Both have an MTU of 1500, as has the first half of the way; the other
// half has 1400, and lets 100 Mbit/s through.
func TestARouterWithASmallerMTUAndASlowLinkIsFound(t *testing.T) {
	for _, program := range []string{"ip", "tc"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err.Error() + ": install iproute2")
		}
	}
	a, router, b := newNamespace(t), newNamespace(t), newNamespace(t)
	router.ip(t, fmt.Sprintf(`link add ra mtu 1500 type veth peer name a0 mtu 1500 netns %d
link add rb mtu 1400 type veth peer name b0 mtu 1500 netns %d
addr add 10.98.1.1/24 dev ra
addr add 10.98.2.1/24 dev rb
link set ra up
link set rb up
`, a.tid, b.tid))
	a.ip(t, "link set lo up\naddr add 10.98.1.2/24 dev a0\nlink set a0 up\nroute add default via 10.98.1.1\n")
	b.ip(t, "link set lo up\naddr add 10.98.2.2/24 dev b0\nlink set b0 up\nroute add default via 10.98.2.1\n")
	router.run(func() {
		must(t, os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600))
		text, err := exec.Command("tc", "qdisc", "add", "dev", "rb", "root", "tbf", "rate", "100mbit",
			"burst", "64kb", "latency", "50ms").CombinedOutput()
		if err != nil {
			t.Skipf("%v: %s", err, text)
		}
	})
	var l net.Listener
	b.run(func() { l = listen(t, "10.98.2.2:0") })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- cli.ServeLink(ctx, l, time.Now) }()
	defer func() { cancel(); must(t, <-ended) }()
	c := host(t, nil)
	c.Now, c.MeasureFor, c.Address, c.Port = time.Now, 500*time.Millisecond, "10.98.1.2", 49150
	var r map[string]cli.HostResult
	a.run(func() { r = links(t, c, l.Addr().String()) })
	if mtu := r["MTU to"]; mtu.Status != cli.Warning || mtu.Found != "1400 bytes pass, and a0 sends 1500" {
		t.Errorf("%+v", mtu)
	}
	// The limit is the kernel's: no machine is faster, however slow it is.
	words := regexp.MustCompile(`one connection carries ([\d.]+) Mbit/s`).FindStringSubmatch(r["link to"].Found)
	if words == nil {
		t.Fatalf("%+v", r["link to"])
	}
	if mbit, err := strconv.ParseFloat(words[1], 64); err != nil || mbit > 115 {
		t.Errorf("over a link of 100 Mbit/s: %+v", r["link to"])
	}
}
