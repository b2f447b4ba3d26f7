package sweep_test

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

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/godwit-vm/godwit/internal/sweep"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// browser starts a Chromium of its own, with a profile that goes when the test does, or
// skips the test where there is none.
func browser(t testing.TB) context.Context {
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
	profile, err := os.MkdirTemp("", "godwit-report-")
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
	err = chromedp.Run(ctx)
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

// A tab shows one page and keeps what the browser complains about.
type tab struct {
	testing.TB
	ctx context.Context

	mu       sync.Mutex
	said     []string // errors, warnings and refusals
	requests []string
}

// A screen is what a page is shown on: its size in pixels, and what its reader prefers.
type screen struct {
	width, height int64
	scheme        string
}

// settle is long enough for a page to be drawn again.
const settle = 500 * time.Millisecond

var desktop, phone = screen{1280, 900, "light"}, screen{360, 740, "dark"}

// open shows a document in a tab of its own.
func open(t testing.TB, browser context.Context, d *sweep.ReportDocument, s screen) *tab {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.WriteHTML(out); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, closeTab := chromedp.NewContext(browser)
	t.Cleanup(closeTab)
	scheme := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: s.scheme}
	p := &tab{TB: t, ctx: ctx}
	chromedp.ListenTarget(ctx, p.hear)
	if err := chromedp.Run(ctx); err != nil { // the tab lives as long as this context
		t.Fatal(err)
	}
	p.do(network.Enable(), log.Enable(), chromedp.EmulateViewport(s.width, s.height),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{scheme}),
		page.BringToFront(), // what nobody sees gets no frames
		chromedp.Navigate("file://"+file),
		chromedp.WaitReady("html[data-ready]", chromedp.ByQuery))
	return p
}

// hear keeps what matters of what a page does.
func (p *tab) hear(event any) {
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

// quiet fails the test if the page has complained, or asked for anything but itself.
func (p *tab) quiet() {
	p.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.said) > 0 {
		p.Errorf("the browser says: %s", strings.Join(p.said, "\n"))
	}
	if len(p.requests) != 1 || !strings.HasPrefix(p.requests[0], "file://") {
		p.Errorf("the page asked for %q, want itself only", p.requests)
	}
}

// patience is how long anything in a page may take on a busy machine.
var patience = testutil.Limit(testutil.DefaultLimit)

func (p *tab) do(actions ...chromedp.Action) {
	p.Helper()
	ctx, done := context.WithTimeout(p.ctx, patience)
	defer done()
	if err := chromedp.Run(ctx, actions...); err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.Fatalf("%v\nthe browser says: %s", err, strings.Join(p.said, "\n"))
	}
}

// until waits until an expression is a number.
func (p *tab) until(expression string, want int) {
	p.Helper()
	testutil.Eventually(p, fmt.Sprintf("%s is %d", expression, want), func() error {
		if got := eval[int](p, expression); got != want {
			return fmt.Errorf("it is %d", got)
		}
		return nil
	})
}

// awaited lets an expression be a promise.
func awaited(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }

// eval returns what an expression is in the page.
func eval[T any](p *tab, expression string) T {
	p.Helper()
	var text string
	p.do(chromedp.Evaluate("JSON.stringify("+expression+") ?? 'null'", &text))
	var value T
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		p.Fatalf("%s is %s: %v", expression, text, err)
	}
	return value
}
