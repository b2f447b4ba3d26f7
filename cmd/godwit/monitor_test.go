package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/chromedp/chromedp"
	"golang.org/x/sys/unix"

	"github.com/godwit-vm/godwit/internal/browsertest"
	"github.com/godwit-vm/godwit/internal/guest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// A bed is a cluster of real daemons and real guests on this machine.
type bed struct {
	testing.TB
	dir, store string
	env        []string
}

// newBed returns a cluster without daemons.
func newBed(t testing.TB) *bed {
	t.Helper()
	if err := runsQEMU(); err != nil {
		t.Skipf("skipped: no QEMU runs here: %v", err)
	}
	b := &bed{TB: t, dir: t.TempDir()}
	b.store = "bolt:" + filepath.Join(b.dir, "d", "cluster.db")
	b.env = append(os.Environ(), "GODWIT_STORE="+b.store, locksVariable+"="+filepath.Join(b.dir, "locks"))
	t.Cleanup(func() {
		killQEMUs(b.dir)
		// The context of the test has ended by now.
		if err := testutil.Poll(context.Background(), testutil.DefaultLimit, func() error {
			if left := qemus(b.dir); len(left) > 0 {
				return fmt.Errorf("these QEMUs run: %v", left)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
	image, err := guest.Params{Fill: 24 << 20, WorkingSet: 1 << 20, Rate: 2 << 20, Random: true}.Firmware()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "guest.rom"), image, 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

// godwit runs a command until it ends, and returns what it prints.
func (b *bed) godwit(args ...string) (string, error) {
	b.Helper()
	c := exec.Command("godwit", args...)
	c.Env, c.Dir = b.env, b.dir
	out, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("godwit %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// must is godwit for what must succeed.
func (b *bed) must(args ...string) string {
	b.Helper()
	out, err := b.godwit(args...)
	if err != nil {
		b.Fatal(err)
	}
	return out
}

// until waits for a command to print something.
func (b *bed) until(pattern string, args ...string) {
	b.Helper()
	want := regexp.MustCompile("(?m)" + pattern)
	testutil.EventuallyWithin(b, eventually, pattern, func() error {
		out, err := b.godwit(args...)
		if err == nil && !want.MatchString(out) {
			err = errors.New(out)
		}
		return err
	})
}

// A proc is a daemon that runs.
type proc struct {
	*bed
	cmd *exec.Cmd

	mu   sync.Mutex
	log  bytes.Buffer
	gone chan struct{}
}

// Write keeps the log.
func (p *proc) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(text)
}

func (p *proc) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// start runs a daemon until the test ends, or it is killed.
func (b *bed) start(args ...string) *proc {
	b.Helper()
	p := &proc{bed: b, cmd: exec.Command("godwit", args...), gone: make(chan struct{})}
	p.cmd.Env, p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = b.env, b.dir, p, p
	if err := p.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	go func() {
		defer close(p.gone)
		_ = p.cmd.Wait() // how it ended does not matter
	}()
	b.Cleanup(func() {
		p.kill(syscall.SIGTERM)
		if b.Failed() {
			b.Logf("%s\n%s", strings.Join(args, " "), p.said())
		}
	})
	return p
}

// kill ends the daemon.
func (p *proc) kill(s syscall.Signal) {
	_ = p.cmd.Process.Signal(s) // it may have ended
	<-p.gone
}

// logged waits until the log has a match of a pattern, and returns its first group.
func (p *proc) logged(pattern string) string {
	p.Helper()
	want, found := regexp.MustCompile(pattern), ""
	testutil.Eventually(p, "the log has "+pattern, func() error {
		m := want.FindStringSubmatch(p.said())
		if m == nil {
			return errors.New(p.said())
		}
		found = m[1]
		return nil
	})
	return found
}

// controller starts the controller with its page at an address.
func (b *bed) controller(page string, more ...string) (p *proc, url string) {
	b.Helper()
	p = b.start(append([]string{"controller", "--name", "a", "--heartbeat-interval", "300ms",
		"--page", page}, more...)...)
	return p, p.logged(`serves the page" url=(http://\S+/)`)
}

// agent starts the agent of a host.
func (b *bed) agent(host string, more ...string) *proc {
	b.Helper()
	return b.start(append([]string{"agent", "--host", host, "--dir", filepath.Join(b.dir, host),
		"--memory", "1GiB", "--cpus", "8", "--accelerator", accelerator(), "--poll", "200ms",
		"--heartbeat-interval", "300ms"}, more...)...)
}

// guests starts so many VMs on a host.
func (b *bed) guests(host string, names ...string) {
	b.Helper()
	for _, name := range names {
		b.must("vm", "add", name, "--memory", "48MiB", "--machine", "pc", "--firmware",
			filepath.Join(b.dir, "guest.rom"), "--host", host)
	}
	for _, name := range names {
		b.until(`^default/`+name+` +`+host+` +running .* 1$`, "vm", "list")
	}
}

// gone is how many VMs have left n1, by the page.
const gone = `+document.querySelector("#drain-n1")?.dataset.done`

// TestThePageFollowsADrain in a real browser: real daemons, real guests. It changes without being
// loaded again, and goes on by itself after the controller was killed and started again.
func TestThePageFollowsADrain(t *testing.T) {
	b := newBed(t)
	boss, url := b.controller("127.0.0.1:0")
	b.agent("n1")
	b.agent("n2")
	b.until(`^n1 +ready(.|\n)*^n2 +ready`, "host", "list")
	b.guests("n1", "v1", "v2", "v3", "v4")

	p := browsertest.Open(t, browsertest.Start(t), url, browsertest.Desktop)
	p.Do(chromedp.WaitReady(`#live[data-state="live"]`, chromedp.ByQuery))
	if got := browsertest.Eval[string](p, `document.querySelector("#drains").textContent`); !strings.Contains(
		got, "No host drains.") {
		t.Errorf("before the drain the page shows %q", got)
	}
	browsertest.Eval[bool](p, `window.unchanged = true`)
	// What is seen on the way: the shares of the drain, and the phases of migrations.
	browsertest.Eval[bool](p, `(() => { window.shares = new Set(); window.phases = new Set();
		new MutationObserver(() => {
			const bar = document.querySelector("#drain-n1 > progress");
			if (bar) shares.add(bar.value);
			for (const row of document.querySelectorAll("#migrations tbody tr")) {
				phases.add(row.dataset.phase); } }).observe(document.querySelector("#view"),
			{ subtree: true, childList: true, attributes: true }); return true; })()`)
	b.must("drain", "n1", "--wait")
	p.Until(gone, 4)
	if !browsertest.Eval[bool](p, `window.unchanged`) {
		t.Error("the page was loaded again")
	}
	if shares := browsertest.Eval[[]float64](p, `[...shares]`); len(shares) < 2 {
		t.Errorf("the bar of the drain showed %v only", shares)
	}
	phases := browsertest.Eval[[]string](p, `[...phases]`)
	if !strings.Contains(strings.Join(phases, " "), "Succeeded") {
		t.Errorf("the migrations were shown as %v", phases)
	}
	if got := browsertest.Eval[string](p, `document.querySelector("#drain-n1 .state").textContent`); got != "empty" {
		t.Errorf("in the end the drain is %q", got)
	}
	times := browsertest.Eval[[]string](p, `[...document.querySelectorAll(
		"#migrations td[data-label=Downtime]")].map(e => e.textContent)`)
	for _, took := range times {
		if !regexp.MustCompile(`^<?[0-9.]+ ?m?s$`).MatchString(took) {
			t.Errorf("a downtime is %q", took)
		}
	}
	if said := p.Complaints(); len(said) > 0 {
		t.Errorf("the browser says %s", strings.Join(said, "\n"))
	}

	// The controller is killed: the page says so, and is live again when there is another one.
	boss.kill(syscall.SIGKILL)
	p.Do(chromedp.WaitReady(`#live[data-state="lost"]`, chromedp.ByQuery))
	if got := browsertest.Eval[string](p, `document.querySelector("#headline").textContent`); !strings.Contains(got, "4 VMs") {
		t.Errorf("without a controller the page shows %q", got)
	}
	b.controller(strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/"))
	p.Do(chromedp.WaitReady(`#live[data-state="live"]`, chromedp.ByQuery))
	b.must("host", "undrain", "n1")
	b.must("drain", "n2", "--wait")
	testutil.Eventually(t, "the page shows the second drain", func() error {
		if got := browsertest.Eval[string](p, `document.querySelector("#drain-n2 .state")?.textContent`); got != "empty" {
			return fmt.Errorf("the drain is %q", got)
		}
		return nil
	})
	if !browsertest.Eval[bool](p, `window.unchanged`) {
		t.Error("the page was loaded again")
	}
	if out := b.must("top", "--once"); !regexp.MustCompile(`(?m)^n2 +\[#{20}\] 100 % +empty +-$`).MatchString(out) ||
		!regexp.MustCompile(`(?m)^default/v\d#\w+ +Succeeded +n2 +n1 +\[#{20}\] 100 % `).MatchString(out) {
		t.Errorf("godwit top shows\n%s", out)
	}
	for _, r := range p.Requests() {
		if !strings.HasPrefix(r, url) {
			t.Errorf("the page asked for %q", r)
		}
	}
}

// TestTopOnATerminal: frames replace each other in place, are as wide as the terminal, and leave it
// as it was.
func TestTopOnATerminal(t *testing.T) {
	b := &bed{TB: t, dir: t.TempDir()}
	b.store = "bolt:" + filepath.Join(b.dir, "d", "cluster.db")
	b.env = append(os.Environ(), "GODWIT_STORE="+b.store)
	b.start("controller", "--name", "a", "--heartbeat-interval", "300ms")
	b.until(`^controller/a leads`, "status")
	b.must("vm", "add", strings.Repeat("long", 12), "--memory", "1TiB")

	terminal, line, err := pseudoTerminal(60, 12)
	if err != nil {
		t.Skipf("skipped: no pseudo-terminal here: %v", err)
	}
	defer terminal.Close()
	c := exec.Command("godwit", "top", "--interval", "100ms")
	c.Env, c.Dir, c.Stdout = b.env, b.dir, line
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if err := line.Close(); err != nil {
		t.Fatal(err)
	}
	shown := &proc{bed: b, cmd: c, gone: make(chan struct{})}
	go func() {
		defer close(shown.gone)
		_, _ = io.Copy(shown, terminal) // it ends with an error when the other end is closed
	}()
	testutil.Eventually(t, "two frames are shown", func() error {
		if n := strings.Count(shown.said(), "\x1b[Hgodwit  "); n < 2 {
			return fmt.Errorf("%d frames", n)
		}
		return nil
	})
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	<-shown.gone
	_ = c.Wait() // its status says that it was interrupted
	text := shown.said()
	if !strings.HasPrefix(text, "\x1b[?1049h\x1b[?25l\x1b[H") || !strings.HasSuffix(text, "\x1b[?25h\x1b[?1049l") {
		t.Errorf("the terminal is told %q", text)
	}
	plain := regexp.MustCompile(`\x1b\[[?0-9]*[A-Za-z]`).ReplaceAllString(text, "")
	for row := range strings.SplitSeq(plain, "\r\n") {
		if n := utf8.RuneCountInString(row); n > 60 && !strings.Contains(row, "godwit  ") {
			t.Errorf("%d columns: %q", n, row)
		}
	}
}

// pseudoTerminal opens both ends of a terminal of a size.
func pseudoTerminal(width, height uint16) (terminal, line *os.File, err error) {
	terminal, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	fd := int(terminal.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height})
	}
	if err == nil {
		line, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, terminal.Close())
	}
	return terminal, line, nil
}
