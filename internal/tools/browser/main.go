// Browser drives a Chromium for the tests of internal/testutil.
//
//	browser PROGRAM PROFILE PATIENCE
//
// It starts PROGRAM with the folder PROFILE, prints its version, and ends it when standard input
// ends. Each line of standard input is a list of words in JSON: a command and its arguments. Each is
// answered with one line, an [answer]. No command takes longer than PATIENCE.
//
// It is a program of a module of its own: programs that import godwit do not inherit a browser driver.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// An answer is what a command has led to.
type answer struct {
	Error string `json:",omitempty"`
	// Text is the value of an expression in JSON, the number of a tab or the version of the browser.
	Text string `json:",omitempty"`
	// Picture is a PNG.
	Picture []byte `json:",omitempty"`
	// Said and Requests are what the tab has complained about and asked for so far.
	Said, Requests []string `json:",omitempty"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("arguments %q: want PROGRAM PROFILE PATIENCE", args)
	}
	patience, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	d := &driver{patience: patience}
	var version string
	d.browser, version, err = start(args[0], args[1])
	out := json.NewEncoder(os.Stdout)
	if err == nil {
		err = out.Encode(answer{Text: version})
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for err == nil && lines.Scan() {
		var words []string
		if err = json.Unmarshal(lines.Bytes(), &words); err == nil {
			err = out.Encode(d.answer(words))
		}
	}
	ended := chromedp.Cancel(d.browser)
	chromedp.FromContext(d.browser).Allocator.Wait()
	if err == nil {
		err = ended
	}
	return err
}

// start starts a browser and returns its version.
func start(program, profile string) (browser context.Context, version string, err error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program),
		chromedp.UserDataDir(profile), chromedp.WSURLReadTimeout(2*time.Minute),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("disable-breakpad", true))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to have one as root
	}
	allocator, _ := chromedp.NewExecAllocator(context.Background(), options...)
	browser, _ = chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {
		// This version of chromedp does not know all events of this browser.
	}))
	err = chromedp.Run(browser, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		_, version, _, _, _, err = cdpbrowser.GetVersion().Do(ctx)
		return err
	}))
	return browser, version, err
}

// A driver has a browser and its tabs.
type driver struct {
	browser  context.Context
	patience time.Duration
	tabs     []*tab
}

// A tab shows one page.
type tab struct {
	ctx context.Context

	mu             sync.Mutex
	said, requests []string
}

// answer carries out one command. The first argument of all but open and close is the tab.
func (d *driver) answer(words []string) (a answer) {
	if len(words) < 2 {
		return answer{Error: fmt.Sprintf("%q is no command", words)}
	}
	if words[0] == "open" {
		return d.open(words[1:])
	}
	n, err := strconv.Atoi(words[1])
	if err != nil || n < 0 || n >= len(d.tabs) {
		return answer{Error: fmt.Sprintf("%q: no such tab", words)}
	}
	t := d.tabs[n]
	if words[0] == "close" {
		err = chromedp.Cancel(t.ctx)
	} else if action := t.action(&a, words[0], words[2:]); action != nil {
		err = d.do(t, action)
	}
	if err != nil {
		a.Error = fmt.Sprintf("%s: %v", strings.Join(words, " "), err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	a.Said, a.Requests = t.said, t.requests
	return a
}

// do runs actions in a tab.
func (d *driver) do(t *tab, actions ...chromedp.Action) error {
	ctx, done := context.WithTimeout(t.ctx, d.patience)
	defer done()
	return chromedp.Run(ctx, actions...)
}

// open shows the page at an address in a new tab: URL WIDTH HEIGHT SCHEME.
func (d *driver) open(args []string) answer {
	if len(args) != 4 {
		return answer{Error: fmt.Sprintf("open %q: want URL WIDTH HEIGHT SCHEME", args)}
	}
	t := &tab{}
	t.ctx, _ = chromedp.NewContext(d.browser)
	chromedp.ListenTarget(t.ctx, t.hear)
	err := chromedp.Run(t.ctx) // the tab lives as long as this context
	if err == nil {
		scheme := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: args[3]}
		err = d.do(t, network.Enable(), log.Enable(), viewport(args[1:3]),
			emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{scheme}),
			page.BringToFront(), // what is not visible gets no frames
			chromedp.Navigate(args[0]))
	}
	if err != nil {
		return answer{Error: fmt.Sprintf("open %s: %v", args[0], err), Said: t.said}
	}
	d.tabs = append(d.tabs, t)
	return answer{Text: strconv.Itoa(len(d.tabs) - 1)}
}

// action says what a command means. An unknown command, or one with other arguments, is an error.
func (t *tab) action(a *answer, word string, args []string) chromedp.Action {
	switch {
	case word == "state" && len(args) == 0:
		return nil
	case word == "ready" && len(args) == 1:
		return chromedp.WaitReady(args[0], chromedp.ByQuery)
	case word == "visible" && len(args) == 1:
		return chromedp.WaitVisible(args[0], chromedp.ByQuery)
	case word == "absent" && len(args) == 1:
		return chromedp.WaitNotPresent(args[0], chromedp.ByQuery)
	case word == "click" && len(args) == 1:
		return chromedp.Click(args[0], chromedp.ByQuery)
	case word == "focus" && len(args) == 1:
		return chromedp.Focus(args[0], chromedp.ByQuery)
	case word == "type" && len(args) == 2:
		return chromedp.SendKeys(args[0], args[1], chromedp.ByQuery)
	case word == "press" && len(args) == 1:
		return chromedp.KeyEvent(args[0])
	case word == "press-shift" && len(args) == 1:
		return chromedp.KeyEvent(args[0], chromedp.KeyModifiers(input.ModifierShift))
	case word == "point" && len(args) == 2:
		return chromedp.MouseEvent(input.MouseMoved, number(args[0]), number(args[1]))
	case word == "click-at" && len(args) == 2:
		return chromedp.MouseClickXY(number(args[0]), number(args[1]))
	case word == "viewport" && len(args) == 2:
		return viewport(args)
	case word == "eval" && len(args) == 1:
		return chromedp.Evaluate("(async () => JSON.stringify(await ("+args[0]+")) ?? 'null')()",
			&a.Text, func(e *runtime.EvaluateParams) *runtime.EvaluateParams {
				return e.WithAwaitPromise(true)
			})
	case word == "picture" && len(args) == 0:
		return chromedp.CaptureScreenshot(&a.Picture)
	}
	return chromedp.ActionFunc(func(context.Context) error {
		return fmt.Errorf("no such command with %d arguments", len(args))
	})
}

// viewport sets the size of a page: WIDTH HEIGHT.
func viewport(args []string) chromedp.Action {
	return chromedp.EmulateViewport(int64(number(args[0])), int64(number(args[1])))
}

// number reads what package browsertest has written.
func number(text string) float64 {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return f
}

// hear keeps what matters of what a page does.
func (t *tab) hear(event any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		t.said = append(t.said, e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		t.said = append(t.said, fmt.Sprint(e.Type, " ", e.Args))
	case *log.EventEntryAdded:
		t.said = append(t.said, e.Entry.Text)
	case *network.EventRequestWillBeSent:
		t.requests = append(t.requests, e.Request.URL)
	}
}
