package controller

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
)

// A Reconciler looks once, acts once, and says when it next wants to look; the zero time
// is when something has changed.
type Reconciler interface {
	Reconcile(ctx context.Context, now time.Time) (wake time.Time, err error)
}

// A Loop is one participant in real time. A zero field takes the default it names.
type Loop struct {
	// Name is the participant's, for errors. Default: none.
	Name string
	// Reconciler is the participant. It is needed.
	Reconciler Reconciler
	// Wait blocks until something may have changed since the look before, or the
	// context ends. An error says that it cannot tell: it is asked again later, after
	// pauses that grow. Default: there are no notifications.
	Wait func(context.Context) error
	// Trigger brings hints from elsewhere; one that is lost costs only time. Default: none.
	Trigger <-chan struct{}
	// Now is the clock that the participant is given, in UTC. Waiting does not depend
	// on it: setting it changes when things are due, not how long a wait lasts. Default:
	// time.Now.
	Now func() time.Time
	// Min is the least pause after a look, also when hints come faster, and the first
	// one after a look that wants to look again at once. Default: 10ms.
	Min time.Duration
	// Max is the greatest pause after a look, and the greatest that pauses grow to.
	// Default: 1 minute.
	Max time.Duration
	// Jitter answers a number from 0 up to 1: so much of half a growing pause is added
	// to the other half, lest all that failed together come back together. It is called
	// from both goroutines. Default: always 1.
	Jitter func() float64
	// Grace is how long the look that is under way may go on after the loop was
	// stopped, and how long Last may take, before their contexts end. Default: 10s.
	Grace time.Duration
	// Last is called when the loop has stopped, after the last look: to resign, say. It
	// is not called when the participant has panicked. Default: nothing.
	Last func(context.Context) error
	// Report is told of every look, from the goroutine that looks. Default: none.
	Report func(Look)
}

// A Look is one call of a participant.
type Look struct {
	Name      string
	Began     time.Time     // by the participant's clock
	Took      time.Duration // measured
	RequeueAt time.Time     // when it wants to look again; zero is when something changes
	Err       error
	// WatchErr is how Wait last failed since the look before; nil when it has not.
	WatchErr error
}

// PanicError says that a participant panicked.
type PanicError struct {
	Name  string
	Value any
	Stack []byte
}

// Error holds the stack: it is for debugging.
func (e *PanicError) Error() string {
	return fmt.Sprintf("controller: %s panicked: %v: its process must start again\n%s", e.Name,
		e.Value, e.Stack)
}

// Unwrap returns what the participant panicked with if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

func (l *Loop) complete() {
	if l.Now == nil {
		l.Now = time.Now
	}
	if l.Min <= 0 {
		l.Min = 10 * time.Millisecond
	}
	if l.Max <= 0 {
		l.Max = time.Minute
	}
	l.Max = max(l.Max, l.Min)
	if l.Jitter == nil {
		l.Jitter = func() float64 { return 1 }
	}
	if l.Grace <= 0 {
		l.Grace = 10 * time.Second
	}
	if l.Report == nil {
		l.Report = func(Look) {}
	}
}

// Run calls the participant until ctx ends. It looks at once, then at the time that the
// participant asks for, and earlier when it is told that something may have changed.
//
// When ctx has ended, the look that is under way has Grace to end; then Last is called,
// and Run returns with nothing left behind. The error is nil unless Last answered one, or
// it is a *[PanicError], at once.
func Run(ctx context.Context, l Loop) error {
	if l.Reconciler == nil {
		return fmt.Errorf("controller: Loop.Reconciler of %q is nil: set it to the participant", l.Name)
	}
	l.complete()
	r := runner{Loop: &l}
	if err := r.looks(ctx); err != nil {
		return err
	}
	if l.Last == nil {
		return nil
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.Grace)
	defer cancel()
	return guarded(l.Name, func() error { return l.Last(last) })
}

// Run is [Run] as a method, for [Group].
func (l Loop) Run(ctx context.Context) error { return Run(ctx, l) }

// guarded calls f, and answers a *PanicError when it panics.
func guarded(name string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Name: name, Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}
