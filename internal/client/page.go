package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

//go:embed assets
var assets embed.FS

const (
	// every is how often the page is brought up to date.
	every = time.Second
	// beat is how often a reader is told that nothing has changed: one that hears nothing for
	// three of them says that its state is old.
	beat = 5 * time.Second
	// storeTimeout is how long the store may take to answer.
	storeTimeout = 10 * time.Second
	// mostReaders is how many readers are kept up to date at once.
	mostReaders = 64
)

// PageConfig says what is served.
type PageConfig struct {
	Store store.Store
	// Controller is the configuration of the cluster's controller.
	Controller controller.Config
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Silence is how long a leader may send no heartbeat before the page has an alarm. Default: as long
	// as other controllers wait by default before they take over.
	Silence time.Duration
	// Loopback: requests that name another machine are refused. A web site that makes the
	// browser of an operator ask for its own name, and resolves it to the loopback, reads
	// nothing then.
	Loopback bool
	// Done is closed when the daemon ends: readers are sent away. Default: never.
	Done <-chan struct{}
}

// pageServer answers requests.
type pageServer struct {
	PageConfig
	follow    *Follower
	templates *template.Template
	version   string
	readers   chan struct{} // a token each
	explain   chan struct{} // one explanation at a time: it looks at all hosts

	mu       sync.Mutex
	of       *Overview // what rendered shows
	rendered []byte
}

// PageHandler returns what serves the page.
func PageHandler(c PageConfig) http.Handler {
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Store = ReadOnly(c.Store)
	p := &pageServer{PageConfig: c, readers: make(chan struct{}, mostReaders), explain: make(chan struct{}, 1),
		follow: Follow(c.Store, c.Controller.Complete().Evacuation, c.Silence, c.Now),
		templates: template.Must(template.New("").Funcs(pageFunctions).ParseFS(assets,
			"assets/*.html")),
		version: pageVersion()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.index)
	mux.HandleFunc("GET /vm", p.vm)
	mux.HandleFunc("GET /events", p.events)
	for name, kind := range map[string]string{"page.css": "text/css", "page.js": "text/javascript",
		"icon.svg": "image/svg+xml"} {
		text, err := assets.ReadFile("assets/" + name)
		if err != nil {
			panic("page: " + err.Error())
		}
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind+"; charset=utf-8")
			_, _ = w.Write(text) // the reader may be gone
		})
	}
	return p.guard(mux)
}

// version names the assets: a page of another version loads itself again.
func pageVersion() string {
	sum := sha256.New()
	names, _ := fs.Glob(assets, "assets/*")
	for _, name := range names {
		text, err := assets.ReadFile(name)
		if err != nil {
			panic("page: " + err.Error())
		}
		sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// headers are those of every answer.
var pageHeaders = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; " +
		"img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
		"frame-ancestors 'none'",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cache-Control":                "no-store",
}

// guard refuses requests for other machines, and all methods that could change something.
func (p *pageServer) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range pageHeaders {
			w.Header().Set(name, value)
		}
		if p.Loopback && !isLocal(r.Host) {
			http.Error(w, "this page is served to this machine only: ask for localhost, or start the "+
				"controller with --page and another address", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// local reports whether the Host of a request is this machine's loopback.
func isLocal(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// index answers the whole page.
func (p *pageServer) index(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	p.write(w, http.StatusOK, "index.html", struct {
		Version string
		View    template.HTML
	}{p.version, template.HTML(p.view(p.follow.Look(ctx)))})
}

// write answers a template.
func (p *pageServer) write(w http.ResponseWriter, status int, name string, data any) {
	var b bytes.Buffer
	if err := p.templates.ExecuteTemplate(&b, name, data); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the reader may be gone
}

// view renders an overview, once for all readers.
func (p *pageServer) view(o *Overview) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of != o {
		var b bytes.Buffer
		if err := p.templates.ExecuteTemplate(&b, "view.html", o); err != nil {
			b.Reset()
			fmt.Fprintf(&b, "<p>%s</p>", template.HTMLEscapeString(err.Error()))
		}
		p.of, p.rendered = o, b.Bytes()
	}
	return p.rendered
}

// vm answers why a VM is where it is.
func (p *pageServer) vm(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	about := struct {
		Version, Name, Trouble string
		*Explanation
	}{Version: p.version, Name: Plain(r.FormValue("name"))}
	select {
	case p.explain <- struct{}{}:
		defer func() { <-p.explain }()
	case <-ctx.Done():
		http.Error(w, "other readers ask for explanations: try again", http.StatusServiceUnavailable)
		return
	}
	e, err := Explain(ctx, p.Store, p.Controller, ID(r.FormValue("name")), p.Now())
	status := http.StatusOK
	switch {
	case errors.Is(err, store.Stale):
		status, about.Trouble = http.StatusNotFound, "there is no VM of this name"
	case err != nil:
		status, about.Trouble = http.StatusServiceUnavailable, "the store does not answer: "+err.Error()
	}
	if about.Explanation = e; e != nil {
		slices.Reverse(e.Moves) // the latest first
	}
	p.write(w, status, "vm.html", about)
}

// events keeps a reader up to date until it goes.
func (p *pageServer) events(w http.ResponseWriter, r *http.Request) {
	select {
	case p.readers <- struct{}{}:
		defer func() { <-p.readers }()
	default:
		w.Header().Set("Retry-After", "30")
		http.Error(w, strconv.Itoa(mostReaders)+" readers are kept up to date already: close one",
			http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx passes each event on at once
	s := &stream{w: w, c: http.NewResponseController(w)}
	// The deadline of a request's reading would end it, and its context, after a while.
	if s.c.SetReadDeadline(time.Time{}) != nil || s.send("hello", p.version) != nil {
		return
	}
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
		err := s.show(p.view(p.follow.Look(ctx)))
		cancel()
		if err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-p.Done:
			return
		case <-t.C:
		}
	}
}

// A stream is what one reader is sent.
type stream struct {
	w    http.ResponseWriter
	c    *http.ResponseController
	last []byte
	at   time.Time
}

// show sends a view if it is another one, and a beat from time to time.
func (s *stream) show(view []byte) error {
	switch {
	case !bytes.Equal(view, s.last):
		s.last = view
		return s.send("view", string(view))
	case time.Since(s.at) >= beat:
		return s.send("beat", "")
	}
	return nil
}

// send sends an event. Its data is a string of JSON: a line without breaks.
func (s *stream) send(event, data string) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	s.at = time.Now()
	if err := s.c.SetWriteDeadline(s.at.Add(storeTimeout)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(s.w, "event: %s\nretry: 1000\ndata: %s\n\n", event, text); err != nil {
		return err
	}
	return s.c.Flush()
}

// functions are those of the templates.
var pageFunctions = template.FuncMap{
	"time":    timeText,
	"rate":    rateText,
	"percent": percent,
	"load":    load,
	"plain":   func(v any) string { return Plain(fmt.Sprint(v)) },
	"until":   func(m shownMove, at time.Time) string { return m.Until(at) },
	"clock":   func(t time.Time) string { return t.Format("15:04:05") + " UTC" },
	"dash": func(h hypervisor.HostName) string {
		if h == "" {
			return "–"
		}
		return Plain(string(h))
	},
	"stays": func(d shownDrain) []BlockedVM { return slices.Concat(d.Stay, d.Failed) },
}
