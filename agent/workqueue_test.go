package agent_test

import (
	"errors"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/store"
)

var (
	web = store.Key{Kind: store.VMKind, Name: "default/web"}
	db  = store.Key{Kind: store.VMKind, Name: "default/db"}
)

func TestWhatFailsWaitsTwiceAsLongEachTime(t *testing.T) {
	var l agent.WorkQueue
	stale := &store.StoreError{Op: "Put", Key: web, Kind: store.Stale}
	broken := errors.New("connection refused")
	for _, c := range []struct {
		what string
		err  error
		want time.Duration
	}{
		{"a lost race is tried again soon", stale, 1},
		{"the first failure waits the least", broken, 1},
		{"the second twice as long", broken, 2},
		{"a lost race does not count", stale, 1},
		{"the third four times", broken, 4},
		{"and no longer than the most", broken, 5},
	} {
		l.At(web, epoch) // it had asked for an earlier look before it failed
		l.Failed(web, c.err, epoch, time.Second, 5*time.Second)
		if got := l.Next().Sub(epoch); got != c.want*time.Second {
			t.Errorf("%s: it waits %v, want %v", c.what, got, c.want*time.Second)
		}
	}
	if !l.Failing(web) || l.Failing(db) {
		t.Errorf("failing: web %v, db %v", l.Failing(web), l.Failing(db))
	}
	if l.Done(web); l.Failing(web) {
		t.Error("it fails although it could be dealt with")
	}
}

func TestEachIsTakenOnceAndItsTimeIsForgotten(t *testing.T) {
	var l agent.WorkQueue
	l.Add(web)
	l.At(db, epoch)
	l.At(web, epoch.Add(time.Hour))
	l.RequeueDue(epoch)
	l.Add(web)
	for _, want := range []store.Key{web, db} {
		if got, ok := l.Take(); got != want || !ok {
			t.Errorf("taken: %v, %v, want %v", got, ok, want)
		}
	}
	if got, ok := l.Take(); ok || !l.Next().IsZero() {
		t.Errorf("left: %v, %v, next %v", got, ok, l.Next())
	}
}

func TestWhatIsDroppedHasNoTimeAndNoFailures(t *testing.T) {
	var l agent.WorkQueue
	l.Failed(web, errors.New("connection refused"), epoch, time.Second, time.Minute)
	l.At(db, epoch)
	l.Drop(web)
	if l.Failing(web) || !l.Next().Equal(epoch) {
		t.Errorf("failing %v, next %v", l.Failing(web), l.Next())
	}
	if l.Drop(db); !l.Next().IsZero() {
		t.Errorf("next %v", l.Next())
	}
}
