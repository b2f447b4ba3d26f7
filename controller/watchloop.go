package controller

import (
	"context"
	"sync/atomic"
)

// watchLoop is the goroutine that waits for hints. After each it waits for the look that
// follows to end: what has changed is taken in only then, and Wait would tell it again.
type watchLoop struct {
	*Loop
	hints  chan struct{}
	taken  chan struct{} // the look that a hint led to has ended
	broken chan error    // Wait has panicked
	failed atomic.Pointer[error]
	end    context.CancelFunc
	done   chan struct{}
	owed   bool // a hint was taken and the look has not ended; the looking goroutine's
}

// newWatchLoop starts the ear.
func newWatchLoop(ctx context.Context, l *Loop) *watchLoop {
	ctx, end := context.WithCancel(ctx)
	e := &watchLoop{Loop: l, hints: make(chan struct{}), taken: make(chan struct{}),
		broken: make(chan error, 1), end: end, done: make(chan struct{})}
	if l.Wait == nil {
		close(e.done)
		return e
	}
	go func() {
		defer close(e.done)
		e.listen(ctx)
	}()
	return e
}

// listen waits for hints until ctx ends or Wait panics.
func (e *watchLoop) listen(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		var err error
		panicked := guarded(e.Name, func() error { err = e.Wait(ctx); return nil })
		if panicked != nil {
			e.broken <- panicked
			return
		}
		if err != nil {
			e.failed.Store(&err)
			failures++
			pause(ctx, e.growing(failures))
			continue
		}
		failures = 0
		select {
		case e.hints <- struct{}{}:
		case <-ctx.Done():
			return
		}
		select {
		case <-e.taken:
		case <-ctx.Done():
		}
	}
}

// looked says that a look has ended.
func (e *watchLoop) looked() {
	if !e.owed {
		return
	}
	e.owed = false
	select {
	case e.taken <- struct{}{}:
	case <-e.done:
	}
}

// lastError returns why Wait last failed since lastError was last called; nil when it has not.
func (e *watchLoop) lastError() error {
	if err := e.failed.Swap(nil); err != nil {
		return *err
	}
	return nil
}

// close ends the ear and waits for it.
func (e *watchLoop) close() {
	e.end()
	<-e.done
}
