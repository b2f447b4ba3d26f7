package controller_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/godwit-vm/godwit/controller"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// acting is a participant that is a function.
type acting func(ctx context.Context, now time.Time) (time.Time, error)

func (f acting) Reconcile(ctx context.Context, now time.Time) (time.Time, error) {
	return f(ctx, now)
}

// wants returns a participant that asks for pauses in turn, and from the end of the list
// on for no time at all.
func wants(pauses ...time.Duration) acting {
	return func(_ context.Context, now time.Time) (time.Time, error) {
		if len(pauses) == 0 {
			return time.Time{}, nil
		}
		d := pauses[0]
		pauses = pauses[1:]
		return now.Add(d), nil
	}
}

// diary notes when looks begin, in virtual time since it was made.
type diary struct {
	start time.Time
	at    []time.Duration
	looks []controller.Look
}

func (d *diary) note(l controller.Look) {
	d.at = append(d.at, time.Since(d.start)-l.Took)
	d.looks = append(d.looks, l)
}

// runFor runs a loop in a bubble of virtual time for a while, and returns its diary. What
// must be made in the bubble, inside does.
func runFor(t *testing.T, l controller.Loop, d time.Duration, inside ...func(*controller.Loop)) *diary {
	t.Helper()
	notes := &diary{}
	synctest.Test(t, func(t *testing.T) {
		notes.start = time.Now()
		l.Report = notes.note
		for _, f := range inside {
			f(&l)
		}
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		if err := controller.Run(ctx, l); err != nil {
			t.Error(err)
		}
		if got := time.Since(notes.start); got != d {
			t.Errorf("it ran for %v, want %v", got, d)
		}
	})
	return notes
}

func wantLooks(t *testing.T, d *diary, want ...time.Duration) {
	t.Helper()
	if diff := cmp.Diff(want, d.at); diff != "" {
		t.Errorf("looks (-want +got):\n%s", diff)
	}
}

const (
	ms = time.Millisecond
	s  = time.Second
)

func TestAParticipantIsCalledWhenItWants(t *testing.T) {
	for _, c := range []struct {
		name  string
		wants acting
		want  []time.Duration
	}{
		{"at the times that it asks for", wants(s, 5*s, 20*s), []time.Duration{0, s, 6 * s,
			26 * s}},
		{"without any wish only after the longest pause", wants(),
			[]time.Duration{0, 60 * s, 120 * s}},
		{"not later than after the longest pause", wants(time.Hour, 50*s),
			[]time.Duration{0, 60 * s, 110 * s}},
		{"not earlier than after the shortest", wants(ms, ms), []time.Duration{0, 10 * ms,
			20 * ms, 60*s + 20*ms}},
		{"ever later when it asks for the past", wants(-s, 0, -time.Hour, 0, 0, 70*s),
			[]time.Duration{0, 10 * ms, 30 * ms, 70 * ms, 150 * ms, 310 * ms, 60*s + 310*ms}},
		{"soon again when it asks for the past after a while", wants(0, 0, 0, s, 0, 0),
			[]time.Duration{0, 10 * ms, 30 * ms, 70 * ms, 1070 * ms, 1080 * ms, 1100 * ms,
				61100 * ms}},
	} {
		t.Run(c.name, func(t *testing.T) {
			until := c.want[len(c.want)-1] + s
			wantLooks(t, runFor(t, controller.Loop{Reconciler: c.wants}, until), c.want...)
		})
	}
}

func TestAParticipantThatFailsWithoutAWishIsHeldBack(t *testing.T) {
	down := errors.New("down")
	d := runFor(t, controller.Loop{Min: s, Max: 4 * s,
		Reconciler: acting(func(context.Context, time.Time) (time.Time, error) {
			return time.Time{}, down
		})}, 16*s)
	wantLooks(t, d, 0, s, 3*s, 7*s, 11*s, 15*s)
	for _, l := range d.looks {
		if !errors.Is(l.Err, down) {
			t.Errorf("the report is %+v", l)
		}
	}
}

func TestJitterShortensGrowingPausesByUpToHalf(t *testing.T) {
	draws := []float64{0, 0.5, 1, 7, -7}
	d := runFor(t, controller.Loop{Min: s, Max: 8 * s, Reconciler: wants(0, 0, 0, 0, 0, time.Hour),
		Jitter: func() float64 { j := draws[0]; draws = draws[1:]; return j }}, 25*s)
	// The pauses are 1, 2, 4, 8 and 8 s without it. The first is the shortest of all.
	wantLooks(t, d, 0, s, 2500*ms, 6500*ms, 14500*ms, 18500*ms)
}

// What a look takes counts, by the clock that was given to it when it began.
func TestALongLookIsFollowedInTime(t *testing.T) {
	slow := func(_ context.Context, now time.Time) (time.Time, error) {
		time.Sleep(4 * s)
		return now.Add(10 * s), nil
	}
	wantLooks(t, runFor(t, controller.Loop{Reconciler: acting(slow)}, 25*s), 0, 10*s, 20*s)
	late := func(_ context.Context, now time.Time) (time.Time, error) {
		time.Sleep(4 * s)
		return now.Add(s), nil
	}
	wantLooks(t, runFor(t, controller.Loop{Min: s, Reconciler: acting(late)}, 14500*ms), 0, 5*s,
		10*s)
}

func TestAClockThatIsSetDoesNotChangeHowLongIsWaited(t *testing.T) {
	zone := time.FixedZone("east", 3600)
	shift := time.Duration(0)
	var given []time.Time
	d := runFor(t, controller.Loop{
		Now: func() time.Time { return time.Now().Add(shift).In(zone) },
		Reconciler: acting(func(_ context.Context, now time.Time) (time.Time, error) {
			given = append(given, now)
			shift -= 10 * time.Minute
			return now.Add(5 * s), nil
		})}, 12*s)
	wantLooks(t, d, 0, 5*s, 10*s)
	for i, now := range given {
		want := d.start.Add(time.Duration(i) * (5*s - 10*time.Minute)).UTC().Round(0)
		if now != want || d.looks[i].Began != want {
			t.Errorf("look %d was given %v and reported %v, want %v", i, now, d.looks[i].Began,
				want)
		}
	}
}

func TestAHintWakesAParticipant(t *testing.T) {
	var kick chan struct{}
	changes := []time.Duration{3 * s, 3*s + ms, 20 * s} // since the start
	var start time.Time
	wait := func(ctx context.Context) error {
		if len(changes) == 0 {
			<-ctx.Done()
			return ctx.Err()
		}
		time.Sleep(changes[0] - time.Since(start))
		changes = changes[1:]
		return nil
	}
	d := runFor(t, controller.Loop{Wait: wait, Reconciler: acting(
		func(context.Context, time.Time) (time.Time, error) {
			if time.Since(start) == 20*s {
				time.AfterFunc(5*s, func() { kick <- struct{}{} })
			}
			return time.Time{}, nil
		})}, 30*s, func(l *controller.Loop) {
		kick, start = make(chan struct{}, 1), time.Now()
		l.Trigger = kick
	})
	// The second hint comes within the shortest pause, and waits for its end.
	wantLooks(t, d, 0, 3*s, 3*s+10*ms, 20*s, 25*s)
}

// Between a hint and the end of the look that takes in what has changed the store is not asked
// again: the answer would be the same.
func TestAHintIsTakenInBeforeTheNextOneIsAskedFor(t *testing.T) {
	var looking, asked atomic.Bool
	var hints atomic.Int32
	d := runFor(t, controller.Loop{Min: s, Wait: func(context.Context) error {
		if hints.Load() > 0 && (looking.Load() || !asked.Load()) {
			t.Error("asked before the look has ended")
		}
		hints.Add(1)
		asked.Store(false)
		return nil
	}, Reconciler: acting(func(context.Context, time.Time) (time.Time, error) {
		looking.Store(true)
		time.Sleep(500 * ms)
		looking.Store(false)
		asked.Store(true)
		return time.Time{}, nil
	})}, 10*s)
	wantLooks(t, d, 0, 1500*ms, 3*s, 4500*ms, 6*s, 7500*ms, 9*s)
}

func TestAWaitThatFailsIsHeldBackAndReported(t *testing.T) {
	gone := errors.New("connection refused")
	var asked atomic.Int32
	d := runFor(t, controller.Loop{Min: s, Max: 10 * s, Reconciler: wants(9*s, 9*s),
		Wait: func(context.Context) error { asked.Add(1); return gone }}, 27*s)
	wantLooks(t, d, 0, 9*s, 18*s)
	if n := asked.Load(); n != 6 { // at 0, 1, 3, 7, 15, 25
		t.Errorf("asked %d times", n)
	}
	for i, l := range d.looks[1:] {
		if !errors.Is(l.WatchErr, gone) {
			t.Errorf("look %d does not say that hints are missing", i+1)
		}
	}
}

func TestAWaitThatWorksAgainStartsWithShortPauses(t *testing.T) {
	gone := errors.New("connection refused")
	answers := []error{gone, gone, nil, gone}
	var asked []time.Duration
	var start time.Time
	d := runFor(t, controller.Loop{Min: s, Max: 10 * s, Reconciler: wants(),
		Wait: func(ctx context.Context) error {
			asked = append(asked, time.Since(start))
			if len(answers) == 0 {
				<-ctx.Done()
				return ctx.Err()
			}
			err := answers[0]
			answers = answers[1:]
			return err
		}}, 9*s, func(*controller.Loop) { start = time.Now() })
	wantLooks(t, d, 0, 3*s)
	if diff := cmp.Diff([]time.Duration{0, s, 3 * s, 3 * s, 4 * s}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

func TestAKickThatIsClosedIsNone(t *testing.T) {
	d := runFor(t, controller.Loop{Reconciler: wants(5 * s)}, 10*s, func(l *controller.Loop) {
		kick := make(chan struct{})
		close(kick)
		l.Trigger = kick
	})
	wantLooks(t, d, 0, 5*s)
}

func TestAPanicEndsTheLoopAndIsReported(t *testing.T) {
	bad := errors.New("index out of range")
	last := false
	for name, l := range map[string]controller.Loop{
		"of the participant": {Reconciler: acting(
			func(context.Context, time.Time) (time.Time, error) { panic(bad) })},
		"of what waits": {Reconciler: wants(), Wait: func(context.Context) error { panic(bad) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var reported error
				l.Name = "controller"
				l.Report = func(l controller.Look) { reported = l.Err }
				l.Last = func(context.Context) error { last = true; return nil }
				err := controller.Run(t.Context(), l)
				e, ok := errors.AsType[*controller.PanicError](err)
				if !ok || e.Name != "controller" || !errors.Is(err, bad) || last ||
					!strings.Contains(string(e.Stack), "loop_test.go") {
					t.Fatalf("Run = %v, and Last was called: %v", err, last)
				}
				if l.Wait == nil && reported != err {
					t.Errorf("reported is %v", reported)
				}
			})
		})
	}
}
