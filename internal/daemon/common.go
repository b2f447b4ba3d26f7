package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/internal/audit"
	"github.com/godwit-vm/godwit/store"
)

// Dependencies is what daemons have in common. A zero field takes the default it names.
type Dependencies struct {
	// Log is where transitions and errors are told. Default: nowhere.
	Log *slog.Logger
	// Audit is where every decision is written down. Default: nowhere. Its opener
	// closes it.
	Audit *audit.File
	// Build names the program in the audit log: its version and revision.
	Build string
	// Listen is where health and metrics are served: see Listen. Default: nowhere.
	Listen string
	// HeartbeatInterval is how often a heartbeat is sent. Default: lease's.
	HeartbeatInterval time.Duration
	// Boot says which start of the machine this is. Default: what the kernel says.
	Boot string
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Uptime is how long the machine has run, by a clock that is never set. Default: the kernel's.
	Uptime func() time.Duration
	// Certificates are the files whose ends are measured. Default: none.
	Certificates Certificates
	// Ready is called with the address where health and metrics are served, "" for none,
	// when the daemon has begun. Default: nothing is.
	Ready func(listening string)
	// Supervisor is the service manager, which is told that the daemon lives. Default: none.
	Supervisor *Supervisor
}

func (s *Dependencies) complete() {
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.Uptime == nil {
		s.Uptime = uptime
	}
	if s.Boot == "" {
		boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // elsewhere it is unknown
		s.Boot = strings.TrimSpace(string(boot))
	}
	if s.Ready == nil {
		s.Ready = func(string) {}
	}
}

// trail returns the history that a participant's decisions are written to; nil is none.
func (s *Dependencies) trail(by string, term uint64) *audit.History {
	if s.Audit == nil {
		return nil
	}
	return &audit.History{File: s.Audit, By: by, Now: s.Now, Term: func() uint64 { return term }}
}

// recorder returns the recorder of what a participant decides.
func (s *Dependencies) recorder(t *audit.History) store.EventRecorder {
	if t == nil {
		return All{Log{To: s.Log}}
	}
	return All{Log{To: s.Log}, t}
}

// over returns a store whose writings are written down, if there is a trail.
func over(t *audit.History, store store.Store) store.Store {
	if t == nil {
		return store
	}
	return t.Over(store)
}

// begun is when this process began.
var begun = time.Now()

// sinceStart is how long this process has run. Setting the clock does not change it.
func sinceStart() time.Duration { return time.Since(begun) }

// session names this start of the process, as no other is named.
func session() string { return rand.Text() }

// chance is the jitter of pauses.
func chance() float64 {
	const steps = 1 << 16
	n, err := rand.Int(rand.Reader, big.NewInt(steps))
	if err != nil {
		return 1
	}
	return float64(n.Int64()) / steps
}

// longest is how long a participant rests at most.
const longest = time.Minute

// late is how long a participant may be late before the daemon counts as dead.
const late = time.Minute

// A watcher is told of every look, and tells others. It ends the daemon when another process
// has its name, or the store must not be used; end nil is that it goes on.
type watcher struct {
	*Dependencies
	health *Health
	set    *Metrics
	end    context.CancelCauseFunc

	mu   sync.Mutex
	last map[string]string // the error of each participant's last look
}

func (s *Dependencies) watch(set *Metrics, end context.CancelCauseFunc) *watcher {
	set.registry.MustRegister(s.Certificates)
	w := &watcher{Dependencies: s, health: NewHealth(s.Now, late), set: set, end: end,
		last: map[string]string{}}
	s.Supervisor.follow(w.health)
	return w
}

// loop returns the loop of a participant.
func (w *watcher) loop(name string, r controller.Reconciler) controller.Loop {
	w.health.Looked(name, longest, nil)
	return controller.Loop{Name: name, Reconciler: r, Now: w.Now, Max: longest, Jitter: chance,
		Min: 20 * time.Millisecond, Report: w.looked}
}

// looked takes in one look.
func (w *watcher) looked(l controller.Look) {
	w.health.Looked(l.Name, longest, l.Err)
	w.set.Looked(l.Name, l.Took, l.Err)
	if w.end != nil && (final(l.Err) || Refused(l.Err) || errors.Is(l.Err, errLapsed)) {
		w.end(l.Err)
	}
	text := ""
	if l.Err != nil {
		text = l.Err.Error()
	}
	w.mu.Lock()
	before := w.last[l.Name]
	w.last[l.Name] = text
	w.mu.Unlock()
	switch {
	case text == before: // it was said
	case text == "":
		w.Log.Info("goes on", "participant", l.Name)
	default:
		w.Log.Warn("looks again after an error", "participant", l.Name, "error", text)
	}
}

// serve begins to answer questions about health and metrics, if it is to; done ends that.
func (w *watcher) serve() (done func() error, err error) {
	if w.Audit != nil {
		w.health.Alive("audit log", func(context.Context) error { return w.Audit.Err() })
		w.health.Ready("audit log's rotation", func(context.Context) error { return w.Audit.Unrotated() })
	}
	if w.Listen == "" {
		w.Ready("")
		return func() error { return nil }, nil
	}
	server, err := Listen(w.Listen, w.health, w.handler())
	if err != nil {
		return nil, err
	}
	w.Ready(server.Address())
	return server.Close, nil
}

// remembers tells when what was seen of the store cannot be kept, if it is to be.
func (w *watcher) remembers(records store.Store) {
	gate, gated := records.(*Gate)
	if !gated || gate.path == "" {
		return
	}
	w.health.Ready("mark of the store", func(context.Context) error { return gate.Unkept() })
	gate.telling(func(err error) {
		if err == nil {
			w.Log.Info("keeps again what it has seen of the store")
			return
		}
		w.Log.Warn("a store that is set back may not be recognised after a restart", "error", err)
	})
}

func (w *watcher) handler() http.Handler { return w.set.Handler() }

// parting returns what a loop does last. When that fails others wait as if we had died: it is
// told, and no error of the daemon.
func (w *watcher) parting(name string, last func(context.Context) error,
) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := last(ctx); err != nil {
			w.Log.Warn("ends without taking leave", "participant", name, "error", err)
		}
		return nil
	}
}

// run runs loops until ctx ends.
func run(ctx context.Context, loops ...controller.Loop) error {
	members := make([]func(context.Context) error, len(loops))
	for i, l := range loops {
		members[i] = l.Run
	}
	return controller.Group(ctx, members...)
}

// answers asks a store for anything.
func answers(records store.Store) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := records.Get(ctx, store.Key{Kind: store.LeaderKind, Name: "cluster"})
		return err
	}
}
