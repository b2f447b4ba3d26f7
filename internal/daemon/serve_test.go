package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/daemon"
)

// clock is a clock that tests set.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func fetch(t *testing.T, url string) (int, string) {
	t.Helper()
	client := http.Client{Timeout: 10 * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

// TestHealth: who looks is healthy, errors or not; who is late is not; who needs what does
// not answer is not ready.
func TestHealth(t *testing.T) {
	c := &clock{time.Unix(1000, 0)}
	h := daemon.NewHealth(c.Now, time.Minute)
	h.Looked("agent", time.Minute, errors.New("store: unavailable"))
	down := error(nil)
	h.Ready("store", func(context.Context) error { return down })
	if s := h.Lives(t.Context()); !s.OK || s.Parts[0].Error == "" {
		t.Errorf("just looked: %+v", s)
	}
	c.now = c.now.Add(2 * time.Minute)
	if s := h.Lives(t.Context()); !s.OK {
		t.Errorf("at the last moment: %+v", s)
	}
	c.now = c.now.Add(time.Second)
	if s := h.Lives(t.Context()); s.OK || !strings.Contains(s.Parts[0].Error, "not looked since") {
		t.Errorf("too late: %+v", s)
	}
	if s := h.IsReady(t.Context()); !s.OK {
		t.Errorf("the store answers: %+v", s)
	}
	down = errors.New("no answer")
	if s := h.IsReady(t.Context()); s.OK || s.Parts[0].Error != "no answer" {
		t.Errorf("the store does not answer: %+v", s)
	}
	h.Alive("audit log", func(context.Context) error { return errors.New("disk full") })
	h.Looked("agent", time.Minute, nil)
	if s := h.Lives(t.Context()); s.OK || s.Parts[1].Name != "audit log" {
		t.Errorf("nothing is written down: %+v", s)
	}
}

func TestServer(t *testing.T) {
	c := &clock{time.Unix(1000, 0)}
	h := daemon.NewHealth(c.Now, time.Minute)
	h.Ready("store", func(context.Context) error { return errors.New("<gone> & away") })
	s, err := daemon.Listen("0", h, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "godwit_up 1\n")
	}))
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + s.Address()
	if !strings.HasPrefix(s.Address(), "127.0.0.1:") {
		t.Errorf("it listens on %s: only the loopback was asked for", s.Address())
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503, "/metrics": 200,
		"/": 404, "/debug/pprof": 404} {
		if status, body := fetch(t, base+path); status != want {
			t.Errorf("%s: status %d, want %d: %s", path, status, want, body)
		}
	}
	_, body := fetch(t, base+"/readyz")
	var state daemon.State
	if err := json.Unmarshal([]byte(body), &state); err != nil || state.OK ||
		state.Parts[0].Error != "<gone> & away" {
		t.Errorf("%q: %v", body, err)
	}
	if _, err := daemon.Listen(s.Address(), h, nil); err == nil ||
		!strings.Contains(err.Error(), "choose another address") {
		t.Errorf("a second one at the same address: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{"", "here", "1.2.3.4", "127.0.0.1:99999", "300.1.1.1:1"} {
		if s, err := daemon.Listen(wrong, h, nil); err == nil {
			t.Errorf("%q is listened on: %v", wrong, s.Close())
		}
	}
}
