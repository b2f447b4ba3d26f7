package client_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// watched is a store that fails the test when it is written by the page, and can be out of reach.
type watched struct {
	*store.Memory
	t testing.TB

	mu  sync.Mutex // Memory has none
	err error
}

func (w *watched) Put(context.Context, store.Record, ...store.Record) (store.Record, error) {
	w.t.Error("the page writes")
	return nil, errors.New("refused")
}

func (w *watched) Delete(context.Context, store.Record, ...store.Record) error {
	w.t.Error("the page deletes")
	return errors.New("refused")
}

const evil = `default/<img src=x onerror="window.hit=1">'&"{{.}}`

// cluster is a drain of n1, whose first VM has a name that is markup.
func overviewCluster(t testing.TB) *watched {
	w := &watched{Memory: store.NewMemory(), t: t}
	now := time.Now()
	for _, r := range []store.Record{
		&store.Host{Host: hypervisor.Host{Name: "n1", Memory: 4 * hypervisor.GiB, CPUs: 4},
			Taints: []placement.Taint{{Key: evacuation.DefaultDrainKey, Effect: placement.NoSchedule}}},
		&store.Host{Host: hypervisor.Host{Name: "n2", Memory: 4 * hypervisor.GiB, CPUs: 4},
			Strays: []store.Stray{{VM: "default/twice"}}},
		&store.VM{VM: hypervisor.VM{ID: evil, Memory: hypervisor.GiB}, Host: "n1", Boots: 1,
			NotMigratableReason: "<b>a GPU</b> is passed through"},
		&store.VM{VM: hypervisor.VM{ID: "default/twice", Memory: hypervisor.GiB}, Host: "n1",
			Migratable: true, Boots: 1},
		&store.VM{VM: hypervisor.VM{ID: "default/gone", Memory: hypervisor.GiB}, Host: "n2",
			Migratable: true, Boots: 1},
		&store.Migration{Spec: migration.Spec{ID: "default/gone#1", VM: "default/gone",
			Created: now.Add(-time.Minute), By: migration.Evacuation}, State: migration.State{
			Phase: migration.Succeeded, Source: "n1", Target: "n2", Entered: now.Add(-30 * time.Second)}},
	} {
		agentPuts(t, w, r)
	}
	return w
}

// agentPuts writes as an agent does, not as the page.
func agentPuts(t testing.TB, w *watched, r store.Record) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.Memory.Put(context.Background(), r); err != nil {
		t.Fatal(err)
	}
}

func serve(t testing.TB, w *watched) string {
	t.Helper()
	done := make(chan struct{})
	s := httptest.NewServer(client.PageHandler(client.PageConfig{Store: w, Loopback: true, Done: done,
		Controller: controller.Config{Evacuation: evacuation.Params{Strategy: evacuation.LiveMigrate}}}))
	t.Cleanup(func() {
		close(done)
		s.Close()
	})
	return s.URL
}

func get(t testing.TB, url string, change func(*http.Request)) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

// TestThePageIsCompleteWithoutScripts: alarms come first, names are text.
func TestThePageIsCompleteWithoutScripts(t *testing.T) {
	url := serve(t, overviewCluster(t))
	answer, text := get(t, url+"/", nil)
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %s", answer.StatusCode, text)
	}
	alarm, drain := strings.Index(text, "twice runs on n2"), strings.Index(text, `id="drain-n1"`)
	if alarm < 0 || drain < 0 || alarm > drain {
		t.Errorf("the alarm is at %d, the drain at %d", alarm, drain)
	}
	for _, want := range []string{"1 gone, 0 moving, 1 waiting, 1 stay", "p50</dt><dd>unknown",
		"&lt;img src=x onerror=&#34;window.hit=1&#34;&gt;", "&lt;b&gt;a GPU&lt;/b&gt; is passed through"} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "<img src=x") || strings.Contains(text, "<b>a GPU") {
		t.Errorf("a name is markup:\n%s", text)
	}
	// Everything that is loaded is of the same origin, and the policy allows nothing else.
	for _, m := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		if strings.Contains(m[1], "//") || strings.HasPrefix(m[1], "data:") {
			t.Errorf("it refers to %q", m[1])
		}
	}
	policy := answer.Header.Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none'; script-src 'self'") ||
		strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
		t.Errorf("the policy is %q", policy)
	}
}

// TestOnlyGET: every other method is refused, at every address.
func TestOnlyGET(t *testing.T) {
	url := serve(t, overviewCluster(t))
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS"} {
		for _, path := range []string{"/", "/vm?name=twice", "/events", "/page.js"} {
			answer, _ := get(t, url+path, func(r *http.Request) { r.Method = method })
			if answer.StatusCode != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: status %d", method, path, answer.StatusCode)
			}
		}
	}
}

// TestAnotherNameIsRefused: the browser of an operator must not be made to ask in the name of a
// web site that resolves to the loopback.
func TestAnotherNameIsRefused(t *testing.T) {
	url := serve(t, overviewCluster(t))
	for host, want := range map[string]int{"evil.example": 421, "evil.example:80": 421,
		"10.0.0.1": 421, "localhost.evil.example": 421, "localhost": 200, "localhost:8080": 200,
		"[::1]:8080": 200, "127.0.0.1": 200} {
		answer, text := get(t, url+"/", func(r *http.Request) { r.Host = host })
		if answer.StatusCode != want {
			t.Errorf("%s: status %d, want %d: %.100s", host, answer.StatusCode, want, text)
		}
	}
}

// TestAVMIsExplained: what keeps it there; one that is unknown is not found.
func TestAVMIsExplained(t *testing.T) {
	url := serve(t, overviewCluster(t))
	answer, text := get(t, url+"/vm?name=default/gone", nil)
	if answer.StatusCode != http.StatusOK || !strings.Contains(text, "No request moves it elsewhere") ||
		!strings.Contains(text, "<strong>Succeeded</strong> n1 → n2") {
		t.Errorf("status %d: %s", answer.StatusCode, text)
	}
	answer, text = get(t, url+"/vm?name=%3Cscript%3E", nil)
	if answer.StatusCode != http.StatusNotFound || strings.Contains(text, "<script>") {
		t.Errorf("status %d: %s", answer.StatusCode, text)
	}
}

// TestEvents: first the version, then the contents, and again when they have changed.
func TestEvents(t *testing.T) {
	w := overviewCluster(t)
	url := serve(t, w)
	r, err := http.Get(url + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if kind := r.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("it is %s", kind)
	}
	lines := bufio.NewScanner(r.Body)
	next := func() (event, data string) {
		for lines.Scan() {
			if e, is := strings.CutPrefix(lines.Text(), "event: "); is {
				event = e
			}
			if d, is := strings.CutPrefix(lines.Text(), "data: "); is {
				if err := json.Unmarshal([]byte(d), &data); err != nil {
					t.Fatal(err)
				}
				return event, data
			}
		}
		t.Fatalf("it has ended: %v", lines.Err())
		return "", ""
	}
	_, text := get(t, url+"/", nil)
	if event, data := next(); event != "hello" || !strings.Contains(text, `data-version="`+data+`"`) {
		t.Errorf("%s %q", event, data)
	}
	if event, data := next(); event != "view" || !strings.Contains(data, "1 gone, 0 moving") {
		t.Errorf("%s %q", event, data)
	}
	agentPuts(t, w, &store.Host{Host: hypervisor.Host{Name: "n3"}})
	for {
		event, data := next()
		if event == "view" && strings.Contains(data, "n3") {
			break
		}
	}
}

// TestInABrowser: the page follows the cluster in place, by keyboard and on a phone, and names are
// text there, too.
func TestInABrowser(t *testing.T) {
	w := overviewCluster(t)
	url := serve(t, w)
	b := testutil.StartBrowser(t)
	p := testutil.OpenTab(t, b, url+"/", testutil.Desktop)
	p.WaitReady(`#live[data-state="live"]`)

	// By keyboard: the skip link, then what is inside. A focus survives what changes around it.
	p.Press(testutil.KeyTab)
	if got := testutil.Eval[string](p, `document.activeElement.className`); got != "skip" {
		t.Errorf("the first stop is %q", got)
	}
	p.Press(testutil.KeyEnter)
	p.Press(testutil.KeyTab)
	const focused = `document.activeElement.textContent`
	if got := testutil.Eval[string](p, focused); !strings.Contains(got, "VMs that stay") {
		t.Errorf("the first stop of the state is %q", got)
	}
	p.Press(testutil.KeyEnter) // closes it
	testutil.Eval[bool](p, `window.unchanged = true`)
	twice, err := store.VMNamed(t.Context(), w, "default/twice")
	if err != nil {
		t.Fatal(err)
	}
	left := *twice
	left.Host = "n2"
	agentPuts(t, w, &left)
	agentPuts(t, w, &store.Migration{Spec: migration.Spec{ID: "default/twice#1", VM: "default/twice",
		Created: time.Now(), By: migration.Evacuation}, State: migration.State{
		Phase: migration.Succeeded, Source: "n1", Target: "n2", Entered: time.Now()}})
	p.Until(`+document.querySelector("#drain-n1").dataset.done`, 2)
	if !testutil.Eval[bool](p, `window.unchanged`) {
		t.Error("the page was loaded again")
	}
	if got := testutil.Eval[string](p, focused); !strings.Contains(got, "VMs that stay") {
		t.Errorf("the focus has gone to %q", got)
	}
	if testutil.Eval[bool](p, `document.querySelector("details").open`) {
		t.Error("what its reader has closed is open again")
	}
	if testutil.Eval[bool](p, `"hit" in window || document.querySelector("img[onerror]") !== null`) {
		t.Error("a name is markup")
	}
	if got := testutil.Eval[string](p, `document.querySelector("#attention, #drain-n1").textContent`); !strings.Contains(
		got, strings.TrimPrefix(evil, "default/")) {
		t.Errorf("the name is not shown as it is: %q", got)
	}
	p.PressShift(testutil.KeyTab)
	own(t, p, url)

	for _, s := range []testutil.Screen{testutil.Phone, testutil.Desktop} {
		p := testutil.OpenTab(t, b, url+"/", s)
		p.WaitReady(`#live[data-state="live"]`)
		wide := testutil.Eval[[2]int](p, `[document.documentElement.scrollWidth, innerWidth]`)
		if wide[0] > wide[1] {
			t.Errorf("%v: the page is %d pixels wide", s, wide[0])
		}
		dark := testutil.Eval[string](p, `getComputedStyle(document.body).backgroundColor`)
		if want := map[string]string{"dark": "rgb(14, 20, 24)", "light": "rgb(250, 248, 243)"}[s.Scheme]; dark != want {
			t.Errorf("%v: the background is %s", s, dark)
		}
		unnamed := testutil.Eval[int](p, `[...document.querySelectorAll(
			"progress, meter, [role=region], section")].filter(e => !(e.getAttribute("aria-label") ||
			document.getElementById(e.getAttribute("aria-labelledby"))?.textContent)).length`)
		if unnamed > 0 {
			t.Errorf("%v: %d elements have no name for readers of screens", s, unnamed)
		}
		own(t, p, url)
	}
}

// own fails the test if the page has complained, or asked for anything of another origin.
func own(t *testing.T, p *testutil.Tab, url string) {
	t.Helper()
	if said := p.Complaints(); len(said) > 0 {
		t.Errorf("the browser says: %s", strings.Join(said, "\n"))
	}
	for _, r := range p.Requests() {
		if !strings.HasPrefix(r, url+"/") {
			t.Errorf("the page asked for %q", r)
		}
	}
}

// TestWhatWasReadStaysWhileTheStoreIsGone, and the page says so.
func TestWhatWasReadStaysWhileTheStoreIsGone(t *testing.T) {
	w := overviewCluster(t)
	url := serve(t, w)
	get(t, url+"/", nil)
	w.mu.Lock()
	w.err = errors.New("<gone>")
	w.mu.Unlock()
	testutil.Eventually(t, "the page says that the store is gone", func() error {
		_, text := get(t, url+"/", nil)
		if !strings.Contains(text, "The store does not answer") || !strings.Contains(text, "&lt;gone&gt;") ||
			!strings.Contains(text, `id="drain-n1"`) {
			return errors.New(text)
		}
		return nil
	})
}

// Changes implements store.Store.
func (w *watched) Changes(ctx context.Context, f store.Feed, since store.Revision) (store.Changes,
	error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return store.Changes{}, w.err
	}
	return w.Memory.Changes(ctx, f, since)
}

// TestLook writes pictures of the page to the folder that GODWIT_LOOK names, for people who have
// changed how it looks.
func TestLook(t *testing.T) {
	folder := os.Getenv("GODWIT_LOOK")
	if folder == "" {
		t.Skip("skipped: it writes pictures to the folder in GODWIT_LOOK, which is not set")
	}
	url, b := serve(t, overviewCluster(t)), testutil.StartBrowser(t)
	for _, s := range []testutil.Screen{testutil.Desktop, testutil.Phone} {
		p := testutil.OpenTab(t, b, url+"/", s)
		p.WaitReady(`#live[data-state="live"]`)
		if err := os.WriteFile(filepath.Join(folder, "page-"+s.Scheme+".png"), p.Picture(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Get implements store.Store.
func (w *watched) Get(ctx context.Context, key store.Key) (store.Record, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Memory.Get(ctx, key)
}

// TestReadersAndExplanationsAtOnce: what serves them is shared.
func TestReadersAndExplanationsAtOnce(t *testing.T) {
	w := overviewCluster(t)
	url := serve(t, w)
	var all sync.WaitGroup
	for _, path := range []string{"/", "/vm?name=gone", "/", "/vm?name=twice", "/", "/vm?name=none"} {
		all.Go(func() {
			for range 5 {
				r, err := http.Get(url + path)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, r.Body) // what it says is tested elsewhere
				r.Body.Close()
			}
		})
	}
	w.mu.Lock()
	w.err = errors.New("gone")
	w.mu.Unlock()
	all.Wait()
}
