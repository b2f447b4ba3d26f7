package store_test

import (
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/sim"
	"github.com/godwit-vm/godwit/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

func at(s float64) time.Time { return epoch.Add(time.Duration(s * float64(time.Second))) }

func vm(name string) *store.VM {
	return &store.VM{VM: hypervisor.VM{ID: hypervisor.VMID(name)}}
}

// beater returns one for host n1, and its connection.
func beater(t *testing.T, s store.Store, session string) (*store.Renewer, *sim.FlakyStore) {
	t.Helper()
	line := &sim.FlakyStore{Real: s}
	b, err := store.NewRenewer(line, store.LeaseConfig{Owner: store.HostLease("n1"), Boot: "boot 1",
		Session: session})
	if err != nil {
		t.Fatal(err)
	}
	return b, line
}

// look reconciles at a time, and wants to be asked again after a while.
func look(t *testing.T, p store.Participant, now time.Time, want time.Duration) error {
	t.Helper()
	wake, err := p.Reconcile(ctx, now)
	if got := wake.Sub(now); got != want {
		t.Errorf("at %v it looks again after %v, want %v", now.Sub(epoch), got, want)
	}
	return err
}

func stored(t *testing.T, s store.Store) *store.Lease {
	t.Helper()
	r, err := s.Get(ctx, store.Key{Kind: store.LeaseKind, Name: store.HostLease("n1")})
	if err != nil {
		t.Fatal(err)
	}
	l, _ := r.(*store.Lease)
	if l == nil {
		return &store.Lease{}
	}
	return l
}

func wantBeats(t *testing.T, s store.Store, session string, beats uint64) {
	t.Helper()
	if l := stored(t, s); l.Session != session || l.Beats != beats {
		t.Errorf("stored is beat %d of %q, want %d of %q", l.Beats, l.Session, beats, session)
	}
}

func want(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) || want == nil && err != nil {
		t.Errorf("error %v, want %v", err, want)
	}
}

func wantRival(t *testing.T, err error, session string) {
	t.Helper()
	e, ok := errors.AsType[*store.IdentityError](err)
	if session == "" && err == nil {
		return
	}
	if !ok || e.Session != session {
		t.Errorf("error %v, want that session %q lives", err, session)
	}
}

func TestASignIsGivenWhenItIsDue(t *testing.T) {
	s := store.NewMemory()
	b, _ := beater(t, s, "a")
	if !b.Last().IsZero() || b.Holds() {
		t.Error("it has sent a heartbeat already")
	}
	want(t, look(t, b, at(0), 5*time.Second), nil)
	wantBeats(t, s, "a", 1)
	want(t, look(t, b, at(2), 3*time.Second), nil) // a hint
	wantBeats(t, s, "a", 1)
	want(t, look(t, b, at(5), 5*time.Second), nil)
	wantBeats(t, s, "a", 2)
	if stored(t, s).Boot != "boot 1" || !b.Last().Equal(at(5)) || !b.Holds() {
		t.Errorf("stored %+v, last at %v", stored(t, s), b.Last())
	}
	want(t, look(t, b, at(-600), 5*time.Second), nil) // the clock was set back
	wantBeats(t, s, "a", 3)
	want(t, look(t, b, at(600), 5*time.Second), nil)
	wantBeats(t, s, "a", 4)
}

func TestASignSurvivesAStoreThatFails(t *testing.T) {
	s := store.NewMemory()
	b, line := beater(t, s, "a")
	want(t, look(t, b, at(0), 5*time.Second), nil)
	line.DropAnswers = 1
	want(t, look(t, b, at(5), time.Second), store.Unanswered)
	wantBeats(t, s, "a", 2) // it took effect
	want(t, look(t, b, at(6), 5*time.Second), nil)
	wantBeats(t, s, "a", 3)
	line.Full = true
	want(t, look(t, b, at(11), time.Second), store.Unavailable)
	if !b.Last().Equal(at(6)) {
		t.Errorf("it says that it succeeded last at %v", b.Last())
	}
	line.Full = false
	want(t, look(t, b, at(12), 5*time.Second), nil)
	wantBeats(t, s, "a", 4)
}

func TestARestartTakesTheLeaseOfASilentProcess(t *testing.T) {
	s := store.NewMemory()
	old, _ := beater(t, s, "a")
	want(t, look(t, old, at(0), 5*time.Second), nil)
	b, _ := beater(t, s, "b")
	for i := range 15 { // seconds; the first look begins the silence
		want(t, look(t, b, at(float64(i+1)), time.Second), nil)
		wantBeats(t, s, "a", 1)
		if b.Holds() {
			t.Fatal("it holds what it has not got")
		}
	}
	want(t, look(t, b, at(16), 5*time.Second), nil)
	wantBeats(t, s, "b", 2)

	// The old one was only stopped for a while. The new one has sent a heartbeat since.
	wantRival(t, look(t, old, at(18), time.Second), "")
	wantRival(t, look(t, old, at(19), time.Second), "b")
	wantBeats(t, s, "b", 2)
}

func TestALeaseThatIsNoLongerOursIsNotGivenBack(t *testing.T) {
	s := store.NewMemory()
	b, _ := beater(t, s, "a")
	want(t, look(t, b, at(0), 5*time.Second), nil)
	other := stored(t, s).WithVersion(stored(t, s).Version).(*store.Lease)
	other.Session = "b"
	if _, err := s.Put(ctx, other); err != nil {
		t.Fatal(err)
	}
	want(t, b.End(ctx), nil)
	wantBeats(t, s, "b", 1)
}

func TestOfTwoProcessesWithOneNameTheSecondIsTold(t *testing.T) {
	s := store.NewMemory()
	first, _ := beater(t, s, "a")
	second, _ := beater(t, s, "b")
	for i := range 60 {
		now := at(float64(i))
		if i%5 == 0 {
			want(t, look(t, first, now, 5*time.Second), nil)
		}
		rival := ""
		if i >= 5 {
			rival = "a"
		}
		wantRival(t, look(t, second, now, time.Second), rival)
		if second.Holds() {
			t.Fatal("the second holds the lease")
		}
	}
	wantBeats(t, s, "a", 12)
	// The first dies: the second notices, and then nothing is wrong any more.
	for i := 60; i < 70; i++ {
		wantRival(t, look(t, second, at(float64(i)), time.Second), "a")
	}
	want(t, look(t, second, at(70), 5*time.Second), nil)
	wantBeats(t, s, "b", 13)
}

func TestARivalWhoseLeaseIsGoneIsForgotten(t *testing.T) {
	s := store.NewMemory()
	first, _ := beater(t, s, "a")
	second, _ := beater(t, s, "b")
	want(t, look(t, first, at(0), 5*time.Second), nil)
	want(t, look(t, second, at(1), time.Second), nil)
	want(t, look(t, first, at(5), 5*time.Second), nil)
	wantRival(t, look(t, second, at(6), time.Second), "a")
	want(t, s.Delete(ctx, stored(t, s)), nil)
	want(t, look(t, second, at(7), 5*time.Second), nil)
	wantBeats(t, s, "b", 1)
}

func TestALeaseThatWasGivenBackIsTakenAtOnce(t *testing.T) {
	s := store.NewMemory()
	first, _ := beater(t, s, "a")
	want(t, look(t, first, at(0), 5*time.Second), nil)
	want(t, first.End(ctx), nil)
	if wake, err := first.Reconcile(ctx, at(5)); err != nil || !wake.IsZero() {
		t.Errorf("after the end: %v, %v", wake, err)
	}
	wantBeats(t, s, "", 2)
	second, _ := beater(t, s, "b")
	want(t, look(t, second, at(1), 5*time.Second), nil)
	wantBeats(t, s, "b", 3)
	never, _ := beater(t, s, "c")
	want(t, never.End(ctx), nil)
	wantBeats(t, s, "b", 3)
}

func TestWhoIsAloneForCertainNeedNotWait(t *testing.T) {
	s := store.NewMemory()
	first, _ := beater(t, s, "a")
	want(t, look(t, first, at(0), 5*time.Second), nil)
	b, err := store.NewRenewer(s, store.LeaseConfig{Owner: store.HostLease("n1"), Session: "b",
		Alone: true})
	want(t, err, nil)
	want(t, look(t, b, at(1), 5*time.Second), nil)
	wantBeats(t, s, "b", 2)
	// It was certain about the past. Now there is another one after all.
	third, _ := beater(t, s, "c")
	for i := range 20 {
		if _, err := third.Reconcile(ctx, at(float64(i))); err != nil {
			t.Fatal(err)
		}
	}
	wantBeats(t, s, "c", 3)
	want(t, look(t, b, at(22), time.Second), nil)
	wantRival(t, look(t, b, at(23), time.Second), "c")
}

func TestClocksThatAreSetMakeNoHostSilent(t *testing.T) {
	s := store.NewMemory()
	first, _ := beater(t, s, "a")
	second, _ := beater(t, s, "b")
	clock := epoch
	for i := range 40 {
		if i%5 == 0 {
			want(t, look(t, first, at(float64(i)), 5*time.Second), nil)
		}
		clock = clock.Add(time.Second)
		switch i {
		case 7, 22:
			clock = clock.Add(10 * time.Minute)
		case 13, 28:
			clock = clock.Add(-10 * time.Minute)
		}
		if _, err := second.Reconcile(ctx, clock); err != nil {
			wantRival(t, err, "a")
		}
	}
	wantBeats(t, s, "a", 8)
}

func TestAConfigurationThatCannotWorkIsRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		beat store.LeaseConfig
	}{
		{"a lease without an owner", store.LeaseConfig{Session: "a"}},
		{"a lease without a session", store.LeaseConfig{Owner: "host/n1"}},
		{"a lease duration that a single heartbeat outlasts", store.LeaseConfig{Owner: "host/n1",
			Session: "a", HeartbeatInterval: time.Second, LeaseDuration: time.Second}},
	} {
		if _, err := store.NewRenewer(store.NewMemory(), c.beat); err == nil {
			t.Errorf("%s: no error", c.name)
		}
	}
	for _, c := range []struct {
		name string
		e    store.Election
	}{
		{"an elector without a name", store.Election{Session: "a"}},
		{"an elector without a session", store.Election{Identity: "a"}},
		{"a leader that is lost before its next sign", store.Election{Identity: "a",
			Session: "a", LeaseDuration: 6 * time.Second}},
	} {
		if _, err := store.NewElector(store.NewMemory(), c.e); err == nil {
			t.Errorf("%s: no error", c.name)
		}
	}
}
