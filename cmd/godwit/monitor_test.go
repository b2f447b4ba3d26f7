package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
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
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

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
	image, err := load().Firmware()
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
	testutil.Sample(t, unraced)
	b := newBed(t)
	// Slow enough for what moves to be seen.
	conf := filepath.Join(b.dir, "controller.yaml")
	if err := os.WriteFile(conf, []byte("config: {bandwidthPerMigration: 100Mbit/s}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	boss, url := b.controller("127.0.0.1:0", "--config", conf, "--listen", "127.0.0.1:0")
	n1 := b.agent("n1", "--listen", "127.0.0.1:0", "--link", "1Gbit/s")
	metrics := watchMetrics(t, boss, n1, b.agent("n2", "--listen", "127.0.0.1:0", "--link", "1Gbit/s"))
	b.until(`^n1 +ready(.|\n)*^n2 +ready`, "host", "list")
	b.must("vm", "add", "big", "--memory", "1TiB") // no host takes it
	b.guests("n1", "v1", "v2", "v3", "v4")

	p := testutil.OpenTab(t, testutil.StartBrowser(t), url, testutil.Desktop)
	p.WaitReady(`#live[data-state="live"]`)
	if got := testutil.Eval[string](p, `document.querySelector("#drains").textContent`); !strings.Contains(
		got, "No host drains.") {
		t.Errorf("before the drain the page shows %q", got)
	}
	testutil.Eval[bool](p, `window.unchanged = true`)
	// What is seen on the way: the shares of the drain, and the phases of migrations.
	testutil.Eval[bool](p, `(() => { window.shares = new Set(); window.phases = new Set();
		new MutationObserver(() => {
			const bar = document.querySelector("#drain-n1 > progress");
			if (bar) shares.add(bar.value);
			for (const row of document.querySelectorAll("#migrations tbody tr")) {
				phases.add(row.dataset.phase); } }).observe(document.querySelector("#view"),
			{ subtree: true, childList: true, attributes: true }); return true; })()`)
	b.must("drain", "n1", "--wait")
	p.Until(gone, 4)
	if !testutil.Eval[bool](p, `window.unchanged`) {
		t.Error("the page was loaded again")
	}
	if shares := testutil.Eval[[]float64](p, `[...shares]`); len(shares) < 2 {
		t.Errorf("the bar of the drain showed %v only", shares)
	}
	phases := testutil.Eval[[]string](p, `[...phases]`)
	if text := strings.Join(phases, " "); !strings.Contains(text, "Running") || !strings.Contains(text, "Succeeded") {
		t.Errorf("the migrations were shown as %v", phases)
	}
	if got := testutil.Eval[string](p, `document.querySelector("#attention").textContent`); !strings.Contains(
		got, "default/big") || !strings.Contains(got, "waiting for a host") {
		t.Errorf("what needs attention is %q", got)
	}
	if got := testutil.Eval[string](p, `document.querySelector("#drain-n1 .state").textContent`); got != "empty" {
		t.Errorf("in the end the drain is %q", got)
	}
	// QEMU's last figures come after the VM has arrived, and are missing when they are not read in time.
	testutil.Eventually(t, "the page shows a downtime", func() error {
		times, known := testutil.Eval[[]string](p, `[...document.querySelectorAll(
			"#migrations td[data-label=Downtime]")].map(e => e.textContent)`), 0
		for _, took := range times {
			if regexp.MustCompile(`^<?[0-9.]+ ?m?s$`).MatchString(took) {
				known++
			} else if took != "unknown" {
				return testutil.Stop(fmt.Errorf("a downtime is %q", took))
			}
		}
		if known == 0 {
			return fmt.Errorf("the downtimes are %q", times)
		}
		return nil
	})
	if said := p.Complaints(); len(said) > 0 {
		t.Errorf("the browser says %s", strings.Join(said, "\n"))
	}

	// The controller is killed: the page says so, and is live again when there is another one.
	boss.kill(syscall.SIGKILL)
	p.WaitReady(`#live[data-state="lost"]`)
	if got := testutil.Eval[string](p, `document.querySelector("#headline").textContent`); !strings.Contains(got, "5 VMs") {
		t.Errorf("without a controller the page shows %q", got)
	}
	n1.logged(`(looks again after an error)`) // it counts that
	agree(t, metrics())
	b.controller(strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/"), "--config", conf)
	p.WaitReady(`#live[data-state="live"]`)
	b.must("host", "undrain", "n1")
	b.must("drain", "n2", "--wait")
	testutil.Eventually(t, "the page shows the second drain", func() error {
		if got := testutil.Eval[string](p, `document.querySelector("#drain-n2 .state")?.textContent`); got != "empty" {
			return fmt.Errorf("the drain is %q", got)
		}
		return nil
	})
	if !testutil.Eval[bool](p, `window.unchanged`) {
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

// watchMetrics scrapes daemons again and again until what it returns is called, which returns the
// names of labels of every series that was seen, by metric: "node,state".
func watchMetrics(t *testing.T, daemons ...*proc) func() map[string]string {
	t.Helper()
	var urls []string
	for _, d := range daemons {
		urls = append(urls, "http://"+d.logged(`msg="has begun" listens=(\S+)`)+"/metrics")
	}
	seen, ctx := map[string]string{}, t.Context()
	all := func() {
		for _, url := range urls {
			scrapeNames(ctx, url, seen)
		}
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			all()
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return func() map[string]string {
		close(stop)
		<-done
		all() // what was counted until now
		return seen
	}
}

// series is one in a scrape, or in a test of alerts: its name, and its labels.
var series = regexp.MustCompile(`^([a-z_]+)(?:\{(.*)\})?(?: |$)`)

// scrapeNames adds what a daemon serves now. One that does not answer serves nothing.
func scrapeNames(ctx context.Context, url string, seen map[string]string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if m := series.FindStringSubmatch(lines.Text()); m != nil {
			seen[m[1]] = labelNames(m[2])
		}
	}
}

// labelNames returns the names in a list of labels, in order, without those that Prometheus adds.
func labelNames(list string) string {
	var names []string
	for _, m := range regexp.MustCompile(`([a-z_]+)="`).FindAllStringSubmatch(list, -1) {
		if m[1] != "instance" && m[1] != "job" {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

const monitoring = "../../docs/monitoring/"

// agree compares what the alerts, their tests and the dashboard name with what real daemons have
// served.
func agree(t *testing.T, served map[string]string) {
	t.Helper()
	// None of these daemons has a certificate; TestCertificatesAreMeasured has.
	served["godwit_certificate_not_after_timestamp_seconds"] = "file"
	// None carries out maintenance; the tests of package daemon have runs.
	served["godwit_maintenance_stopped"] = "run"
	metric := regexp.MustCompile(`\b(?:godwit|process|go)_[a-z_]+\b`)
	for _, file := range []string{"alerts.yaml", "alerts_test.yaml", "dashboard.json"} {
		names := metric.FindAllString(read(t, monitoring+file), -1)
		if len(names) < 10 {
			t.Errorf("%s names %v only", file, names)
		}
		for _, name := range names {
			if _, is := served[name]; !is {
				t.Errorf("%s names %s, which no daemon has served", file, name)
			}
		}
	}
	var rules struct {
		Tests []struct {
			Input []struct{ Series string } `yaml:"input_series"`
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, monitoring+"alerts_test.yaml")), &rules); err != nil {
		t.Fatal(err)
	}
	for _, test := range rules.Tests {
		for _, in := range test.Input {
			m := series.FindStringSubmatch(in.Series)
			if m == nil {
				t.Fatalf("%q is no series", in.Series)
			}
			if got := labelNames(m[2]); got != served[m[1]] {
				t.Errorf("a test of alerts has %s with the labels %q, daemons serve %q", m[1], got, served[m[1]])
			}
		}
	}
}

// An alertRule is one rule of Prometheus.
type alertRule struct {
	Alert               string
	Labels, Annotations map[string]string
}

// alerts returns the rules.
func alerts(t *testing.T) (rules []alertRule) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []alertRule } }
	if err := yaml.Unmarshal([]byte(read(t, monitoring+"alerts.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		rules = append(rules, g.Rules...)
	}
	return rules
}

// TestEveryAlertIsExplained: each has a section that says what to do, and each section an alert.
func TestEveryAlertIsExplained(t *testing.T) {
	var sections []string
	for _, m := range regexp.MustCompile(`(?m)^## (Godwit\w+)$`).FindAllStringSubmatch(
		read(t, "../../docs/monitoring.md"), -1) {
		sections = append(sections, m[1])
	}
	var names []string
	for _, r := range alerts(t) {
		if names = append(names, r.Alert); !strings.HasSuffix(r.Annotations["runbook_url"],
			"/docs/monitoring.md#"+strings.ToLower(r.Alert)) {
			t.Errorf("%s leads to %s", r.Alert, r.Annotations["runbook_url"])
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.Labels["severity"] == "" {
			t.Errorf("%s has no summary, description or severity", r.Alert)
		}
	}
	slices.Sort(sections)
	slices.Sort(names)
	if diff := cmp.Diff(slices.Compact(names), sections); diff != "" {
		t.Errorf("-alerts +sections\n%s", diff)
	}
}

// TestTheDashboardIsWhole: it can be read, its panels have numbers and places of their own, and no
// figure has a fixed data source.
func TestTheDashboardIsWhole(t *testing.T) {
	ids := map[int]bool{}
	taken := map[[2]int]int{}
	for _, p := range dashboard(t) {
		if ids[p.ID] {
			t.Errorf("there are two panels %d", p.ID)
		}
		ids[p.ID] = true
		for x := p.At.X; x < p.At.X+p.At.W; x++ {
			for y := p.At.Y; y < p.At.Y+p.At.H; y++ {
				if other, is := taken[[2]int{x, y}]; is || x >= 24 {
					t.Fatalf("panel %d is where %d is, or beside the page", p.ID, other)
				}
				taken[[2]int{x, y}] = p.ID
			}
		}
		for _, q := range p.Targets {
			if q.Source.UID != "${datasource}" || q.Expr == "" {
				t.Errorf("panel %d: %+v", p.ID, q)
			}
		}
	}
	if len(ids) < 20 {
		t.Errorf("%d panels", len(ids))
	}
}

// A dashboardPanel is a part of a dashboard.
type dashboardPanel struct {
	ID      int
	At      struct{ X, Y, W, H int } `json:"gridPos"`
	Targets []struct {
		Expr   string
		Source struct{ UID string } `json:"datasource"`
	}
}

func dashboard(t *testing.T) []dashboardPanel {
	t.Helper()
	var d struct{ Panels []dashboardPanel }
	if err := json.Unmarshal([]byte(read(t, monitoring+"dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	return d.Panels
}

// TestPromtoolAccepts the rules, what their tests expect, and every figure of the dashboard.
func TestPromtoolAccepts(t *testing.T) {
	promtool := testutil.Installed(t, "promtool", "prometheus")
	var figures strings.Builder
	figures.WriteString("groups:\n- name: dashboard\n  rules:\n")
	for _, p := range dashboard(t) {
		for i, q := range p.Targets {
			fmt.Fprintf(&figures, "  - {record: \"panel:%d:%d\", expr: %q}\n", p.ID, i, q.Expr)
		}
	}
	file := filepath.Join(t.TempDir(), "dashboard.yaml")
	if err := os.WriteFile(file, []byte(figures.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", "rules", monitoring + "alerts.yaml"},
		{"test", "rules", monitoring + "alerts_test.yaml"}, {"check", "rules", file}} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

// TestEveryPageIsInTheIndex of the documentation.
func TestEveryPageIsInTheIndex(t *testing.T) {
	index := read(t, "../../docs/README.md")
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 5 {
		t.Fatalf("%v: %v", pages, err)
	}
	for _, page := range pages {
		if name := filepath.Base(page); name != "README.md" && !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md has no link to %s", name)
		}
	}
}
