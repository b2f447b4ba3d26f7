package daemon

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// Health is what is known about the participants of a daemon. It is safe for concurrent
// use. Make it with [NewHealth].
type Health struct {
	now func() time.Time
	// tolerance is how long a participant may be late.
	tolerance time.Duration

	mu    sync.Mutex
	loops map[string]look
	ready []check
	alive []check
}

// look is the last that was heard of a participant.
type look struct {
	at    time.Time
	until time.Time // when it should have looked again
	err   error
}

// check asks something outside.
type check struct {
	name string
	ask  func(context.Context) error
}

// NewHealth returns the health of a daemon by a clock. Tolerance is how long a participant
// may be late before it counts as dead.
func NewHealth(now func() time.Time, tolerance time.Duration) *Health {
	return &Health{now: now, tolerance: tolerance, loops: map[string]look{}}
}

// Ready adds what must answer for the daemon to be ready: the store, the hypervisor.
func (h *Health) Ready(name string, ask func(context.Context) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ready = append(h.ready, check{name, ask})
}

// Alive adds what must hold for the daemon to be healthy.
func (h *Health) Alive(name string, ask func(context.Context) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.alive = append(h.alive, check{name, ask})
}

// Looked says that a participant has looked, what came of it, and within which time it
// looks again.
func (h *Health) Looked(name string, within time.Duration, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	h.loops[name] = look{at: now, until: now.Add(within), err: err}
}

// A Part is the state of one thing that a daemon depends on.
type Part struct {
	Name  string     `json:"name"`
	OK    bool       `json:"ok"`
	Last  *time.Time `json:"lastLook,omitempty"`
	Error string     `json:"error,omitempty"`
}

// A State is the answer to whether a daemon is well.
type State struct {
	OK    bool   `json:"ok"`
	Parts []Part `json:"parts"`
}

func (s *State) add(p Part) {
	s.OK = s.OK && p.OK
	s.Parts = append(s.Parts, p)
}

// Lives answers whether the participants look, and what must hold does. An error of a participant
// is told, and does not count: it looks again.
func (h *Health) Lives(ctx context.Context) State {
	s := h.look()
	h.mu.Lock()
	checks := slices.Clone(h.alive)
	h.mu.Unlock()
	ask(ctx, checks, &s)
	return s
}

// look answers whether the participants look: if not, only a restart helps.
func (h *Health) look() State {
	h.mu.Lock()
	defer h.mu.Unlock()
	now, s := h.now(), State{OK: true, Parts: []Part{}}
	for _, name := range slices.Sorted(maps.Keys(h.loops)) {
		l := h.loops[name]
		p := Part{Name: name, OK: !now.After(l.until.Add(h.tolerance)), Last: &l.at}
		if l.err != nil {
			p.Error = l.err.Error()
		}
		if !p.OK {
			p.Error = "it has not looked since " + l.at.UTC().Format(time.RFC3339)
		}
		s.add(p)
	}
	return s
}

// IsReady answers whether everything that the daemon needs answers.
func (h *Health) IsReady(ctx context.Context) State {
	h.mu.Lock()
	checks, s := slices.Clone(h.ready), State{OK: true, Parts: []Part{}}
	h.mu.Unlock()
	ask(ctx, checks, &s)
	return s
}

// timeout is how long a question may take.
const timeout = 3 * time.Second

func ask(ctx context.Context, checks []check, s *State) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout,
		errors.New("it has not answered within "+timeout.String()))
	defer cancel()
	for _, c := range checks {
		p := Part{Name: c.name, OK: true}
		if err := c.ask(ctx); err != nil {
			p.OK, p.Error = false, err.Error()
		}
		s.add(p)
	}
}
