package controller_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/godwit-vm/godwit/controller"
)

// The stop comes while a look is under way, which takes as long as each row says.
func TestALookUnderWayHasTimeToEnd(t *testing.T) {
	for _, c := range []struct {
		name  string
		grace time.Duration // 0 is the default
		takes time.Duration
		ends  time.Duration // when Run returns, after the stop
		why   error         // why the look's context has ended
	}{
		{"a short one ends", 0, 4 * s, 4 * s, nil},
		{"a long one is told after ten seconds", 0, time.Hour, 10 * s, controller.ErrStopped},
		{"or after the time that it is given", 2 * s, time.Hour, 2 * s, controller.ErrStopped},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				looks, last := 0, false
				var why error
				l := controller.Loop{Grace: c.grace, Reconciler: acting(
					func(ctx context.Context, now time.Time) (time.Time, error) {
						looks++
						cancel()
						select {
						case <-time.After(c.takes):
						case <-ctx.Done():
						}
						why = context.Cause(ctx)
						return now, why
					}), Last: func(ctx context.Context) error {
					last = ctx.Err() == nil
					return nil
				}}
				start := time.Now()
				err := controller.Run(ctx, l)
				if got := time.Since(start); err != nil || got != c.ends {
					t.Errorf("Run = %v after %v, want nil after %v", err, got, c.ends)
				}
				if why != c.why || looks != 1 || !last {
					t.Errorf("the look ended by %v, want %v; %d looks; Last was called: %v", why,
						c.why, looks, last)
				}
			})
		})
	}
}

func TestLastEndsInTimeAndItsErrorIsRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		start := time.Now()
		err := controller.Run(ctx, controller.Loop{Reconciler: wants(), Grace: 3 * s,
			Last: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 3*s {
			t.Errorf("Run = %v after %v", err, time.Since(start))
		}
		err = controller.Run(ctx, controller.Loop{Reconciler: wants(),
			Last: func(context.Context) error { panic("no") }})
		if _, ok := errors.AsType[*controller.PanicError](err); !ok {
			t.Errorf("Run = %v, want a panic", err)
		}
	})
}

func TestALoopThatRestsStopsAtOnce(t *testing.T) {
	for name, wish := range map[string]time.Duration{
		"for long":     time.Hour,
		"for a moment": ms, // the shortest pause
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				start, waited := time.Now(), false
				time.AfterFunc(5*ms, cancel)
				err := controller.Run(ctx, controller.Loop{Reconciler: wants(wish),
					Wait: func(ctx context.Context) error {
						<-ctx.Done()
						waited = true
						return ctx.Err()
					}})
				if err != nil || time.Since(start) != 5*ms || !waited {
					t.Errorf("Run = %v after %v; Wait has ended: %v", err, time.Since(start),
						waited)
				}
			})
		})
	}
}

// member ends by itself after a while, or later than its context by a second.
func member(after time.Duration, err error) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(after):
			return err
		case <-ctx.Done():
			time.Sleep(s)
			return nil
		}
	}
}

func TestAGroupStopsWhenOneEnds(t *testing.T) {
	failed := errors.New("failed")
	for _, c := range []struct {
		name string
		one  func(context.Context) error
		want error
		ends time.Duration
	}{
		{"with an error", member(5*s, failed), failed, 6 * s},
		{"without one", member(5*s, nil), nil, 6 * s},
		{"in a panic", func(context.Context) error { time.Sleep(5 * s); panic(failed) }, failed,
			6 * s},
		{"because all are to", member(time.Hour, failed), nil, 61 * s},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				start := time.Now()
				err := controller.Group(ctx, member(2*time.Hour, nil), c.one,
					controller.Loop{Reconciler: wants()}.Run)
				if !errors.Is(err, c.want) || c.want == nil && err != nil ||
					time.Since(start) != c.ends {
					t.Errorf("Group = %v after %v, want %v after %v", err, time.Since(start),
						c.want, c.ends)
				}
			})
		})
	}
	if err := controller.Group(t.Context()); err != nil {
		t.Error(err)
	}
}

// The same in real time: nothing is left behind, and nothing races.
func TestManyLoopsInRealTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var members []func(context.Context) error
	for range 8 {
		looks := 0
		kick := make(chan struct{}, 1)
		members = append(members, controller.Loop{Min: time.Microsecond, Max: ms, Trigger: kick,
			Jitter: func() float64 { return 0.5 },
			Wait:   func(context.Context) error { return nil },
			Reconciler: acting(func(_ context.Context, now time.Time) (time.Time, error) {
				if looks++; looks == 200 {
					cancel()
				}
				select {
				case kick <- struct{}{}:
				default:
				}
				return now, nil
			})}.Run)
	}
	if err := controller.Group(ctx, members...); err != nil {
		t.Error(err)
	}
}
