package controller

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-vm/godwit/internal/workqueue"
)

// runner is a loop that runs.
type runner struct {
	*Loop
	watch *watchLoop
	kick  <-chan struct{} // nil when there is none, or no longer
	hasty int             // looks in a row that wanted to look again at once
}

// looks calls the participant until ctx ends or a participant panics.
func (r *runner) looks(ctx context.Context) error {
	acting, stop := graceful(ctx, r.Grace)
	defer stop()
	r.kick, r.watch = r.Trigger, newWatchLoop(ctx, r.Loop)
	defer r.watch.close()
	for ctx.Err() == nil {
		rest, err := r.look(acting)
		if err != nil {
			return err
		}
		if err := r.sleep(ctx, rest); err != nil {
			return err
		}
	}
	return nil
}

// look calls the participant once, and returns how long it wants to rest. The error is a
// panic.
func (r *runner) look(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	look := Look{Name: r.Name, Began: r.Now().UTC().Round(0), WatchErr: r.watch.lastError()}
	err := guarded(r.Name, func() error {
		look.RequeueAt, look.Err = r.Reconciler.Reconcile(ctx, look.Began)
		return nil
	})
	if look.Took = time.Since(began); err != nil {
		look.Err = err
	}
	r.Report(look)
	r.watch.looked()
	return r.rest(&look), err
}

// rest returns how long to rest after a look. The time that the participant asked for
// counts by its own clock, from the moment that it was given. One that asks for a time
// which had come already, or fails without asking for any, rests longer each time.
func (r *runner) rest(look *Look) time.Duration {
	again := look.RequeueAt.Sub(look.Began)
	switch {
	case look.RequeueAt.IsZero() && look.Err == nil:
		again = r.Max
	case look.RequeueAt.IsZero() || again <= 0:
		r.hasty++
		return r.growing(r.hasty)
	}
	r.hasty = 0
	return min(max(again-look.Took, r.Min), r.Max)
}

// sleep returns after a rest, when a hint comes after the shortest of rests, or when ctx
// ends. The error is a panic of Wait.
func (r *runner) sleep(ctx context.Context, rest time.Duration) error {
	shortest := min(rest, r.Min)
	if !pause(ctx, shortest) {
		return nil
	}
	timer := time.NewTimer(rest - shortest)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			return nil
		case <-r.watch.hints:
			r.watch.owed = true
			return nil
		case err := <-r.watch.broken:
			return err
		case _, open := <-r.kick:
			if open {
				return nil
			}
			r.kick = nil
		}
	}
}

// growing returns the nth pause in a row: from Min, doubled each time up to Max, and
// with jitter.
func (l *Loop) growing(n int) time.Duration {
	d := workqueue.Backoff(l.Min, l.Max, n-1)
	return max(l.Min, d/2+time.Duration(min(max(0, l.Jitter()), 1)*float64(d-d/2)))
}

// pause waits, and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return ctx.Err() == nil
}

// ErrStopped is why the context of a look ends that goes on for longer than [Loop.Grace]
// after its loop was stopped.
var ErrStopped = errors.New("controller: stopped, and the time to finish in is over")

// graceful returns a context that lives for a while longer than ctx, and what ends it.
func graceful(ctx context.Context, grace time.Duration) (context.Context, func()) {
	acting, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	done := make(chan struct{})
	unused := context.AfterFunc(ctx, func() {
		defer close(done)
		if pause(acting, grace) {
			cancel(ErrStopped)
		}
	})
	return acting, func() {
		cancel(nil)
		if !unused() {
			<-done
		}
	}
}
