package testutil

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Browser is a running Chromium.
type Browser struct {
	mu    sync.Mutex // one command at a time
	stdin io.WriteCloser
	out   *bufio.Reader
}

// driver is the program that drives a browser.
var driver = Tool{Module: "internal/tools", Package: "./browser"}

// StartBrowser starts a Chromium of its own, with a profile that goes when the test does, or
// skips the test where there is none.
func StartBrowser(t testing.TB) *Browser {
	t.Helper()
	program := find(t)
	path, err := driver.Build()
	if err != nil {
		t.Fatal(err)
	}
	profile, err := os.MkdirTemp("", "godwit-page-")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(path, program, profile, patience.String())
	c.Stderr = os.Stderr
	b := &Browser{}
	if b.stdin, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	b.out = bufio.NewReader(out)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(b.stdin.Close(), c.Wait()); err != nil {
			t.Errorf("%s does not end: %v", program, err)
		}
		gone(t, profile)
	})
	started, err := b.read()
	if err != nil {
		t.Fatalf("%s does not start: %v", program, err)
	}
	_, number, _ := strings.Cut(started.Text, "/")
	t.Logf("Chromium %s", number)
	return b
}

// find returns the path of a Chromium, or skips the test.
func find(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("skipped: no chromium, chromium-browser or google-chrome in PATH")
	return ""
}

// An answer is what a command has led to: see the driver.
type answer struct {
	Error, Text    string
	Picture        []byte
	Said, Requests []string
}

// command has the driver carry out one command.
func (b *Browser) command(words ...string) (answer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := json.NewEncoder(b.stdin).Encode(words); err != nil {
		return answer{}, err
	}
	return b.read()
}

// read reads the next answer.
func (b *Browser) read() (a answer, err error) {
	line, err := b.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return a, err
}

// gone waits until no process has a profile any more, and removes it: the browser's
// processes end one after the other.
func gone(t testing.TB, profile string) {
	t.Helper()
	var err error
	for range 600 {
		if err = os.RemoveAll(profile); err == nil && !inUse(profile) {
			if _, err = os.Stat(profile); errors.Is(err, os.ErrNotExist) {
				return
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("the profile %s is still there, or in use: %v", profile, err)
}

// inUse reports whether the command line of a process names a profile.
func inUse(profile string) bool {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	return slices.ContainsFunc(lines, func(name string) bool {
		line, err := os.ReadFile(name)
		return err == nil && strings.Contains(string(line), profile)
	})
}

// A Tab shows one page and keeps what the browser complains about. What it is asked for takes at
// most [DefaultLimit], or fails the test.
type Tab struct {
	testing.TB
	browser *Browser
	number  string
}

// A Screen is what a page is shown on: its size in pixels, and what its reader prefers.
type Screen struct {
	Width, Height int64
	Scheme        string // "light" or "dark"
}

// settleTime is long enough for a page to be drawn again.
const settleTime = 500 * time.Millisecond

// The screens that pages are tested on.
var (
	Desktop = Screen{1280, 900, "light"}
	Phone   = Screen{360, 740, "dark"}
)

// Keys without a character, for [Tab.Press].
const (
	KeyTab    = "\t"
	KeyEnter  = "\r"
	KeyEscape = "\u001b"
	KeyRight  = "\u0303" // the arrow, in the codes of the driver
	KeyDown   = "\u0301"
)

// patience is how long anything in a page may take on a busy machine.
var patience = Limit(DefaultLimit)

// OpenTab shows the page at an address in a tab of its own.
func OpenTab(t testing.TB, b *Browser, url string, s Screen) *Tab {
	t.Helper()
	opened, err := b.command("open", url, fmt.Sprint(s.Width), fmt.Sprint(s.Height), s.Scheme)
	if err != nil {
		t.Fatalf("%v\nthe browser says: %s", err, strings.Join(opened.Said, "\n"))
	}
	p := &Tab{TB: t, browser: b, number: opened.Text}
	t.Cleanup(func() { p.do("close") })
	return p
}

// do carries out one command in the tab.
func (p *Tab) do(word string, args ...string) answer {
	p.Helper()
	a, err := p.browser.command(append([]string{word, p.number}, args...)...)
	if err != nil {
		p.Fatalf("%v\nthe browser says: %s", err, strings.Join(a.Said, "\n"))
	}
	return a
}

// Complaints returns what the browser has complained about: errors, warnings and refusals.
func (p *Tab) Complaints() []string { p.Helper(); return p.do("state").Said }

// Requests returns the addresses that the page has asked for.
func (p *Tab) Requests() []string { p.Helper(); return p.do("state").Requests }

// WaitReady waits until the page has an element. Elements are given by CSS selectors.
func (p *Tab) WaitReady(selector string) { p.Helper(); p.do("ready", selector) }

// WaitVisible waits until an element is visible.
func (p *Tab) WaitVisible(selector string) { p.Helper(); p.do("visible", selector) }

// WaitAbsent waits until the page does not have an element.
func (p *Tab) WaitAbsent(selector string) { p.Helper(); p.do("absent", selector) }

// Click clicks an element.
func (p *Tab) Click(selector string) { p.Helper(); p.do("click", selector) }

// Focus gives an element the focus.
func (p *Tab) Focus(selector string) { p.Helper(); p.do("focus", selector) }

// Type types a text into an element.
func (p *Tab) Type(selector, text string) { p.Helper(); p.do("type", selector, text) }

// Press presses keys one after the other: characters, or those without one such as [KeyTab].
func (p *Tab) Press(keys string) { p.Helper(); p.do("press", keys) }

// PressShift presses keys with the Shift key down.
func (p *Tab) PressShift(keys string) { p.Helper(); p.do("press-shift", keys) }

// PointAt moves the mouse, in pixels from the left and the top of the window.
func (p *Tab) PointAt(x, y float64) { p.Helper(); p.do("point", number(x), number(y)) }

// ClickAt clicks with the mouse.
func (p *Tab) ClickAt(x, y float64) { p.Helper(); p.do("click-at", number(x), number(y)) }

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// Settle waits until the page is drawn again.
func (p *Tab) Settle() { time.Sleep(settleTime) }

// Picture returns a picture of the whole page, a PNG.
func (p *Tab) Picture(s Screen) []byte {
	p.Helper()
	height := Eval[int64](p, "document.documentElement.scrollHeight")
	p.do("viewport", fmt.Sprint(s.Width), fmt.Sprint(height))
	p.Settle()
	return p.do("picture").Picture
}

// Until waits until an expression is a number.
func (p *Tab) Until(expression string, want int) {
	p.Helper()
	Eventually(p, fmt.Sprintf("%s is %d", expression, want), func() error {
		if got := Eval[int](p, expression); got != want {
			return fmt.Errorf("it is %d", got)
		}
		return nil
	})
}

// Eval returns what an expression is in the page, or what it promises.
func Eval[T any](p *Tab, expression string) T {
	p.Helper()
	text := p.do("eval", expression).Text
	var value T
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		p.Fatalf("%s is %s: %v", expression, text, err)
	}
	return value
}
