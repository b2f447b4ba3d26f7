package boltstore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/store"
)

// post sends a request as it is, and answers the status and the text.
func post(t testing.TB, path, method, op string, body io.Reader) (int, string) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return net.Dial("unix", path)
		}}}
	r, err := http.NewRequestWithContext(soon(t), method, "http://x/"+op, body)
	must(t, err)
	got, err := c.Do(r)
	must(t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	must(t, err)
	return got.StatusCode, string(text)
}

func TestWhatIsNotUnderstoodDoesNothing(t *testing.T) {
	dir := newDir(t)
	path := filepath.Join(dir, "sock")
	s := newStore(t, dir)
	serve(t, s, path)
	speaks := fmt.Sprintf(`{"Speaks":{"Protocol":%d,"Record":%d}`, boltstore.Protocol, store.Format)
	vm, err := store.Encode(vmOn("v", "n1"))
	must(t, err)
	sent := func(name, text string) string {
		return fmt.Sprintf(`%s,"Record":{"Key":{"Kind":"vm","Name":%q},"Version":0,"Text":%s}}`,
			speaks, name, text)
	}
	while := strings.Repeat(`{"Key":{"Kind":"vm","Name":"dg=="},"Version":0},`, 2000)
	big := strings.Repeat("x", 17<<20)
	for _, c := range []struct{ op, body, says string }{
		{"Put", "", "no JSON"},
		{"Put", `{"Speaks":{`, "no JSON"},
		{"Put", `[1,2,3]`, "no JSON"},
		{"Put", strings.Repeat("[", 1<<20), "no JSON"},
		{"Put", `null`, "upgrade the client"},
		{"Put", `{"Speaks":{"Protocol":0,"Record":1}}`, "upgrade the client"},
		{"Get", `{"Speaks":{"Protocol":9,"Record":1}}`, "upgrade the server"},
		{"Put", `{"Speaks":{"Protocol":1,"Record":9}}`, "upgrade the server"},
		{"Put", `{"Speaks":{"Protocol":9},"Key":7}`, "upgrade the server"},
		{"", speaks + `}`, "no operation"},
		{"../Put", speaks + `}`, "no operation"},
		{"Put", speaks + `}`, "of nothing"},
		{"Delete", speaks + `}`, "of nothing"},
		{"Get", speaks + `,"Key":{"Kind":"cow","Name":""}}`, "no kind"},
		{"Get", speaks + `,"Key":7}`, "not understood"},
		{"Get", speaks + `,"Key":{"Kind":"vm","Name":"%"}}`, "not understood"},
		{"Put", sent("dw==", string(vm)), "unreadable"}, // the text is of another record
		{"Put", sent("dg==", `{"Format":1}`), "damaged"},
		{"Put", sent("dg==", `{"Format":9}`), "upgrade"},
		{"Delete", speaks + `,"While":[` + while[:len(while)-1] + `]}`, "at most"},
		{"Put", speaks + `,"Key":{"Kind":"` + big, "more than"},
	} {
		status, text := post(t, path, http.MethodPost, c.op, strings.NewReader(c.body))
		var a struct{ Error struct{ Why, Kind string } }
		if err := json.Unmarshal([]byte(text), &a); err != nil || a.Error.Kind == "" ||
			!strings.Contains(a.Error.Why+a.Error.Kind, c.says) {
			t.Errorf("%s %.80s: %d %.300s (%v), want %q", c.op, c.body, status, text, err, c.says)
		}
	}
	if status, text := post(t, path, http.MethodGet, "Get", nil); status < 400 {
		t.Errorf("GET: %d %s", status, text)
	}
	c, err := s.Changes(ctx, store.Everything, 0)
	if err != nil || len(c.Records) > 0 {
		t.Errorf("the store holds %v, %v", c.Records, err)
	}
}

func TestASenderOfGarbageDisturbsNoOther(t *testing.T) {
	dir := newDir(t)
	path := filepath.Join(dir, "sock")
	serve(t, newStore(t, dir), path)
	for _, garbage := range []string{"", "\x00", "\n\n\n", "POST / HTTP/1.1\r\n",
		"POST /Put HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{",
		"GET / HTTP/9.9\r\n\r\n", strings.Repeat("A", 1<<17)} {
		c, err := net.Dial("unix", path)
		must(t, err)
		_, _ = io.Copy(c, strings.NewReader(garbage))
		must(t, c.Close())
	}
	if _, err := dial(t, path).Put(ctx, vmOn("v", "n1")); err != nil {
		t.Error(err)
	}
}

// noError says that an answer will do.
const noError = store.StoreKind(255)

// answering is a server that answers every request in the same way.
func answering(t testing.TB, f http.HandlerFunc) *boltstore.Client {
	t.Helper()
	path := filepath.Join(newDir(t), "sock")
	server := &http.Server{Handler: f}
	l := listen(t, path)
	ended := make(chan error)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Close()
		<-ended
	})
	return dial(t, path)
}

func TestAnAnswerThatCannotBeBelieved(t *testing.T) {
	speaks := fmt.Sprintf(`{"Speaks":{"Protocol":%d,"Record":%d}`, boltstore.Protocol, store.Format)
	const newer = `{"Speaks":{"Protocol":2,"Record":1}}`
	for name, c := range map[string]struct {
		text     string
		put, get store.StoreKind
	}{
		"none":           {"", store.Unanswered, store.Unavailable},
		"half of one":    {speaks, store.Unanswered, store.Unavailable},
		"another value":  {`7`, store.Unanswered, store.Unavailable},
		"another type":   {speaks + `,"Record":7}`, store.Unanswered, store.Unavailable},
		"a newer server": {newer, store.Unreadable, store.Unreadable},
		"an older server": {strings.Replace(newer, "2", "0", 1), store.Unreadable,
			store.Unreadable},
		"an unknown kind": {speaks + `,"Error":{"Kind":"odd"}}`, store.Unanswered,
			store.Unanswered},
		"a refusal": {speaks + `,"Error":{"Kind":"full","Why":"no room"}}`, store.Full,
			store.Full},
		"another kind": {speaks + `,"Record":{"Key":{"Kind":"cow"}}}`, store.Unanswered,
			store.Unreadable},
		"another record": {speaks + `,"Record":{"Version":3,"Key":{"Kind":"host"},` +
			`"Text":{"Format":1,"Record":{}}}}`, noError, store.Unreadable},
	} {
		t.Run(name, func(t *testing.T) {
			client := answering(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(w, c.text)
			})
			_, err := client.Put(ctx, vmOn("v", "n1"))
			if c.put != noError {
				wantError(t, err, c.put)
			}
			_, err = client.Get(ctx, vmOn("v", "n1").Key())
			wantError(t, err, c.get)
		})
	}
}

// TestAnAnswerThatIsLost has the server do what was asked, and die before it says so.
func TestAnAnswerThatIsLost(t *testing.T) {
	var heard atomic.Int32
	client := answering(t, func(_ http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); bytes.Contains(body, []byte("Speaks")) {
			heard.Add(1)
		}
		panic(http.ErrAbortHandler)
	})
	_, err := client.Put(ctx, vmOn("v", "n1"))
	wantError(t, err, store.Unanswered)
	wantError(t, client.Delete(ctx, vmOn("v", "n1")), store.Unanswered)
	if n := heard.Load(); n != 2 {
		t.Errorf("two writes were heard %d times", n)
	}
	_, err = client.Get(ctx, vmOn("v", "").Key())
	wantError(t, err, store.Unavailable)
}

// told is a store that tells when a client waits, and when it has gone.
type told struct {
	store.Store
	waits, gone chan bool
}

func (s *told) Wait(ctx context.Context, _ store.Feed, _ store.Revision) error {
	s.waits <- true
	<-ctx.Done()
	s.gone <- true
	return context.Cause(ctx)
}

func TestAWaitEndsWithEitherSide(t *testing.T) {
	path := filepath.Join(newDir(t), "sock")
	s := &told{store.NewMemory(), make(chan bool), make(chan bool)}
	stop := serve(t, s, path)
	client := dial(t, path)
	ended := make(chan error)
	wait := func(ctx context.Context) { ended <- client.Wait(ctx, store.Leases, 7) }

	waiting, leave := context.WithCancel(ctx)
	go wait(waiting)
	<-s.waits
	leave()
	wantError(t, <-ended, store.Unavailable)
	<-s.gone

	go wait(ctx)
	<-s.waits
	go stop()
	<-s.gone
	wantError(t, <-ended, store.Unavailable, "the server of the store ends") // is told so
	stop()

	serve(t, store.NewMemory(), path) // which cannot tell when to look
	if err := client.Wait(soon(t), store.Everything, 0); err != nil {
		t.Errorf("Wait at a store that cannot wait: %v", err)
	}
}
