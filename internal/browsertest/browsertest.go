// Package browsertest shows pages in a real Chromium, for tests.
package browsertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/godwit-vm/godwit/internal/testutil"
)

// Start starts a Chromium of its own, with a profile that goes when the test does, or
// skips the test where there is none.
func Start(t testing.TB) context.Context {
	t.Helper()
	var program string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Skip("skipped: no chromium, chromium-browser or google-chrome in PATH")
	}
	profile, err := os.MkdirTemp("", "godwit-page-")
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program),
		chromedp.UserDataDir(profile), chromedp.WSURLReadTimeout(2*time.Minute),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("disable-breakpad", true))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to have one as root
	}
	root, stop := context.WithTimeout(context.Background(), testutil.Limit(10*time.Minute))
	allocator, _ := chromedp.NewExecAllocator(root, options...)
	ctx, _ := chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {
		// It is news to this version of chromedp what this browser tells.
	}))
	var product string
	err = chromedp.Run(ctx, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		_, product, _, _, _, err = browser.GetVersion().Do(ctx)
		return err
	}))
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("%s does not end: %v", program, err)
		}
		chromedp.FromContext(ctx).Allocator.Wait()
		stop()
		gone(t, profile)
	})
	if err != nil {
		t.Fatalf("%s does not start: %v", program, err)
	}
	_, number, _ := strings.Cut(product, "/")
	t.Logf("Chromium %s", number)
	return ctx
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

// A Tab shows one page and keeps what the browser complains about.
type Tab struct {
	testing.TB
	ctx context.Context

	mu       sync.Mutex
	said     []string // errors, warnings and refusals
	requests []string
}

// A Screen is what a page is shown on: its size in pixels, and what its reader prefers.
type Screen struct {
	Width, Height int64
	Scheme        string // "light" or "dark"
}

// Settle is long enough for a page to be drawn again.
const Settle = 500 * time.Millisecond

// The screens that pages are tested on.
var (
	Desktop = Screen{1280, 900, "light"}
	Phone   = Screen{360, 740, "dark"}
)

// Open shows the page at an address in a tab of its own.
func Open(t testing.TB, browser context.Context, url string, s Screen) *Tab {
	t.Helper()
	ctx, closeTab := chromedp.NewContext(browser)
	t.Cleanup(closeTab)
	scheme := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: s.Scheme}
	p := &Tab{TB: t, ctx: ctx}
	chromedp.ListenTarget(ctx, p.hear)
	if err := chromedp.Run(ctx); err != nil { // the tab lives as long as this context
		t.Fatal(err)
	}
	p.Do(network.Enable(), log.Enable(), chromedp.EmulateViewport(s.Width, s.Height),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{scheme}),
		page.BringToFront(), // what is not visible gets no frames
		chromedp.Navigate(url))
	return p
}

// hear keeps what matters of what a page does.
func (p *Tab) hear(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.said = append(p.said, e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		p.said = append(p.said, fmt.Sprint(e.Type, " ", e.Args))
	case *log.EventEntryAdded:
		p.said = append(p.said, e.Entry.Text)
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, e.Request.URL)
	}
}

// Complaints returns what the browser has complained about: errors, warnings and refusals.
func (p *Tab) Complaints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.said)
}

// Requests returns the addresses that the page has asked for.
func (p *Tab) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// patience is how long anything in a page may take on a busy machine.
var patience = testutil.Limit(testutil.DefaultLimit)

// Do runs actions in the tab.
func (p *Tab) Do(actions ...chromedp.Action) {
	p.Helper()
	ctx, done := context.WithTimeout(p.ctx, patience)
	defer done()
	if err := chromedp.Run(ctx, actions...); err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.Fatalf("%v\nthe browser says: %s", err, strings.Join(p.said, "\n"))
	}
}

// Until waits until an expression is a number.
func (p *Tab) Until(expression string, want int) {
	p.Helper()
	testutil.Eventually(p, fmt.Sprintf("%s is %d", expression, want), func() error {
		if got := Eval[int](p, expression); got != want {
			return fmt.Errorf("it is %d", got)
		}
		return nil
	})
}

// Awaited lets an expression be a promise.
func Awaited(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }

// Eval returns what an expression is in the page.
func Eval[T any](p *Tab, expression string) T {
	p.Helper()
	var text string
	p.Do(chromedp.Evaluate("JSON.stringify("+expression+") ?? 'null'", &text))
	var value T
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		p.Fatalf("%s is %s: %v", expression, text, err)
	}
	return value
}
