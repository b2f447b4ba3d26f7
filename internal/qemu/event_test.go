package qemu_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/internal/qemu"
)

// waiting is a context in which Next returns at once where it would wait.
func waiting(t interface{ Helper() }) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func named(name string) qemu.Notice { return qemu.Notice{Event: qemu.Event{Name: name}} }

// TestNothingIsLostUnsaid publishes and takes at random, and counts: what was
// taken and what was said to be lost is all that was published, in order.
func TestNothingIsLostUnsaid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 5).Draw(t, "limit")
		var hub qemu.Hub
		s := hub.Subscribe(limit)
		published, accounted := 0, 0
		next := func(t *rapid.T) (more bool) {
			e, err := s.Next(waiting(t))
			gap, missing := errors.AsType[*qemu.Gap](err)
			switch {
			case missing:
				accounted += gap.Lost
			case err != nil:
				return false
			case e.Name != fmt.Sprint(accounted):
				t.Fatalf("got event %s, want %d", e.Name, accounted)
			default:
				accounted++
			}
			return true
		}
		t.Repeat(map[string]func(*rapid.T){
			"an event is published": func(*rapid.T) {
				hub.Publish(named(fmt.Sprint(published)))
				published++
			},
			"the listener takes one": func(t *rapid.T) { next(t) },
			"the connection is renewed": func(*rapid.T) {
				hub.Publish(qemu.Notice{Gap: qemu.Gap{Renewed: true}})
			},
			"": func(t *rapid.T) {
				if published-accounted < 0 {
					t.Fatal("more was taken than published")
				}
			},
		})
		for next(t) {
		}
		if accounted != published {
			t.Fatalf("%d of %d events are accounted for", accounted, published)
		}
	})
}

func TestAnOverflowIsSaidBeforeWhatIsLeft(t *testing.T) {
	var hub qemu.Hub
	s := hub.Subscribe(2)
	lost := errors.New("lost")
	hub.Publish(named("a"))
	hub.Publish(qemu.Notice{Gap: qemu.Gap{Ended: lost}})
	hub.Publish(qemu.Notice{Gap: qemu.Gap{Renewed: true}})
	hub.Publish(named("b"))
	hub.Publish(named("c"))
	_, err := s.Next(waiting(t))
	gap, ok := errors.AsType[*qemu.Gap](err)
	if !ok || gap.Lost != 1 || !errors.Is(err, lost) || !gap.Renewed {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"b", "c"} {
		if e, err := s.Next(waiting(t)); err != nil || e.Name != want {
			t.Fatalf("got %v, %v; want %s", e, err, want)
		}
	}
}

func TestAGapThatEndsAfterARenewalIsNotRenewed(t *testing.T) {
	var hub qemu.Hub
	s := hub.Subscribe(1)
	lost := errors.New("lost")
	hub.Publish(qemu.Notice{Gap: qemu.Gap{Renewed: true}})
	hub.Publish(qemu.Notice{Gap: qemu.Gap{Ended: lost}})
	hub.Publish(named("a"))
	_, err := s.Next(waiting(t))
	if gap, ok := errors.AsType[*qemu.Gap](err); !ok || gap.Renewed || gap.Ended != lost {
		t.Errorf("got %v", err)
	}
}

func TestWhoSubscribesTooLateIsTold(t *testing.T) {
	var hub qemu.Hub
	lost := errors.New("lost")
	hub.Publish(qemu.Notice{Gap: qemu.Gap{Ended: lost}})
	hub.Publish(named("stray"))
	if _, err := hub.Subscribe(5).Next(waiting(t)); !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
	hub.Publish(qemu.Notice{Gap: qemu.Gap{Renewed: true}})
	if _, err := hub.Subscribe(5).Next(waiting(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want to wait for an event", err)
	}
	gap := &qemu.Gap{Lost: 2, Ended: lost, Renewed: true}
	want := "events may be missing: 2 events were dropped, the listener is too slow; " +
		"the connection ended: lost; the connection was renewed"
	if gap.Error() != want {
		t.Errorf("got %s", gap)
	}
}

func TestFloodsOfLargeEventsAreBounded(t *testing.T) {
	var hub qemu.Hub
	s := hub.Subscribe(1000)
	large := qemu.Notice{Event: qemu.Event{Name: "E",
		Data: make(json.RawMessage, qemu.MaxQueued/4)}}
	for range 10 {
		hub.Publish(large)
	}
	_, err := s.Next(waiting(t))
	if gap, ok := errors.AsType[*qemu.Gap](err); !ok || gap.Lost != 7 {
		t.Errorf("got %v, want 7 lost: three fit", err)
	}
}

func TestTheLargestEventIsDeliveredAlone(t *testing.T) {
	var hub qemu.Hub
	s := hub.Subscribe(1000)
	hub.Publish(qemu.Notice{Event: qemu.Event{Name: "E",
		Data: make(json.RawMessage, 2*qemu.MaxQueued)}})
	if e, err := s.Next(waiting(t)); err != nil || len(e.Data) != 2*qemu.MaxQueued {
		t.Errorf("got %d bytes, %v", len(e.Data), err)
	}
}

func TestEnds(t *testing.T) {
	why := errors.New("why")
	t.Run("what is queued comes before the end of the hub", func(t *testing.T) {
		var hub qemu.Hub
		s := hub.Subscribe(5)
		hub.Publish(named("a"))
		hub.Close(why)
		hub.Close(errors.New("later"))
		hub.Publish(named("b"))
		if e, err := s.Next(waiting(t)); err != nil || e.Name != "a" {
			t.Errorf("got %v, %v", e, err)
		}
		for range 2 {
			if _, err := s.Next(t.Context()); !errors.Is(err, why) {
				t.Errorf("got %v", err)
			}
		}
	})
	t.Run("a subscription to a closed hub ends at once", func(t *testing.T) {
		var hub qemu.Hub
		hub.Close(why)
		if _, err := hub.Subscribe(5).Next(t.Context()); !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a closed subscription gives nothing more", func(t *testing.T) {
		var hub qemu.Hub
		s, other := hub.Subscribe(5), hub.Subscribe(5)
		hub.Publish(named("a"))
		s.Close()
		s.Close()
		hub.Publish(named("b"))
		if _, err := s.Next(t.Context()); !errors.Is(err, qemu.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if e, err := other.Next(waiting(t)); err != nil || e.Name != "a" {
			t.Errorf("the other listener got %v, %v", e, err)
		}
	})
	t.Run("a context ends the waiting with its cause", func(t *testing.T) {
		var hub qemu.Hub
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		if _, err := hub.Subscribe(5).Next(ctx); !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
	})
}

// TestSharedSubscriptionsLoseNoWakeUp lets goroutines share one queue; all of
// them must come to the end.
func TestSharedSubscriptionsLoseNoWakeUp(t *testing.T) {
	var hub qemu.Hub
	s := hub.Subscribe(10_000)
	var mu sync.Mutex
	seen := map[string]bool{}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for {
				e, err := s.Next(context.Background())
				if err != nil {
					return
				}
				mu.Lock()
				seen[e.Name] = true
				mu.Unlock()
			}
		})
	}
	for i := range 5000 {
		hub.Publish(named(fmt.Sprint(i)))
	}
	hub.Close(qemu.ErrClosed)
	all.Wait()
	if len(seen) != 5000 {
		t.Errorf("%d of 5000 events were seen", len(seen))
	}
}

func TestTheEndWakesAllThatWait(t *testing.T) {
	var hub qemu.Hub
	s := hub.Subscribe(5)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := s.Next(context.Background()); !errors.Is(err, qemu.ErrClosed) {
				t.Errorf("got %v", err)
			}
		})
	}
	time.Sleep(20 * time.Millisecond) // so that they do wait; less proves less
	s.Close()
	all.Wait()
}
