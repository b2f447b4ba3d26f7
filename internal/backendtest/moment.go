package backendtest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Seeds returns what crashes are drawn from: GODWIT_SEED, or 1, and with
// GODWIT_CRASHES=3 the two numbers after it, too.
func Seeds(t testing.TB) []uint64 {
	t.Helper()
	number := func(key string) uint64 {
		n, err := strconv.ParseUint(cmp.Or(os.Getenv(key), "1"), 10, 32)
		if err != nil || n == 0 {
			t.Fatalf("%s=%q: want a number from 1", key, os.Getenv(key))
		}
		return n
	}
	var all []uint64
	for i := range number("GODWIT_CRASHES") {
		all = append(all, number("GODWIT_SEED")+i)
	}
	return all
}

// A Moment is when something is killed: some time after the beginning, or a little after
// something was seen, or, of an agent, right after it has told so many changes.
type Moment struct {
	After   time.Duration
	Event   string // "" is the beginning
	Changes int
}

// String says when it is.
func (m Moment) String() string {
	switch {
	case m.Changes > 0:
		return fmt.Sprintf("at change %d", m.Changes)
	case m.Event != "":
		return fmt.Sprintf("%v after %s", m.After, m.Event)
	}
	return fmt.Sprintf("%v after the beginning", m.After)
}

// Anywhere draws a moment of a window, in round i of n, of which every third is anywhere: in strata,
// so that all of the window has its share.
func Anywhere(i, n int, window time.Duration, r *rand.Rand) Moment {
	share := (float64(i/3) + r.Float64()) / float64((n+2)/3)
	return Moment{After: time.Duration(share * float64(window))}
}

// Events are what has happened, by words, and who waits for it. The zero value is that nothing has.
type Events struct {
	mu      sync.Mutex
	heard   map[string]time.Time
	waiting map[string][]chan struct{}
}

// Notice takes down that something has happened.
func (e *Events) Notice(word string, at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.heard == nil {
		e.heard = map[string]time.Time{}
	}
	e.heard[word] = at
	for _, w := range e.waiting[word] {
		close(w)
	}
	delete(e.waiting, word)
}

// Heard returns when something has happened last; ok is false when it has not.
func (e *Events) Heard(word string) (at time.Time, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at, ok = e.heard[word]
	return at, ok
}

// String lists what has happened.
func (e *Events) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return fmt.Sprint(e.heard)
}

// On returns a channel that is closed when something has happened.
func (e *Events) On(word string) chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := make(chan struct{})
	if _, has := e.heard[word]; has {
		close(w)
		return w
	}
	if e.waiting == nil {
		e.waiting = map[string][]chan struct{}{}
	}
	e.waiting[word] = append(e.waiting[word], w)
	return w
}
