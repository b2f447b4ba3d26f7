package etcdstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/conformance"
	"github.com/godwit-vm/godwit/internal/etcdstore"
	"github.com/godwit-vm/godwit/internal/etcdtest"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/store"
)

// eventually repeats what until it answers nil; every error must be of one of the kinds.
func eventually(t *testing.T, what func() error, kinds ...store.StoreKind) {
	t.Helper()
	testutil.Eventually(t, "the cluster comes back", func() error {
		err := what()
		if err != nil {
			conformance.WantKind(t, err, kinds...)
		}
		if t.Failed() {
			return testutil.Stop(err)
		}
		return err
	})
}

// A counter counts in one VM, as far as the store lets it.
type counter struct {
	store        store.Store
	last         store.Record // as it was acknowledged last
	acked, tried int
}

// count writes the next number. A write that was not answered is looked up.
func (c *counter) count(ctx context.Context) error {
	vm := vmOn("counter", "n1")
	if c.last != nil {
		vm.Version = c.last.RecordVersion()
	}
	vm.Boots = c.acked + 1
	c.tried = vm.Boots
	stored, err := c.store.Put(ctx, vm)
	if errors.Is(err, store.Unanswered) || errors.Is(err, store.Stale) {
		if got, failed := c.store.Get(ctx, vm.Key()); failed == nil && got != nil {
			stored, err = got, nil
		}
	}
	if err == nil {
		c.last, c.acked = stored, stored.(*store.VM).Boots
	}
	return err
}

func TestAClusterThatLosesMembersLosesNothing(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 3)
	s := openWith(t, etcdstore.Config{Endpoints: c.Endpoints, Timeout: 700 * time.Millisecond})
	n := &counter{store: s}
	ctx := context.Background()
	next := func() error { return n.count(ctx) }
	harmless := []store.StoreKind{store.Unavailable, store.Unanswered}
	eventually(t, next, harmless...)
	seen := changes(t, s, store.Everything, 0)

	c.Kill(c.Leader())
	for range 20 {
		eventually(t, next, harmless...) // two of three go on
	}
	c.Kill(c.Leader())
	before := n.acked
	for range 2 { // one of three does not
		err := n.count(ctx)
		if err == nil {
			t.Fatalf("%d was stored by one member of three", n.acked)
		}
		conformance.WantKind(t, err, harmless...)
		_, err = s.Get(ctx, vmOn("counter", "").Key())
		conformance.WantKind(t, err, store.Unavailable)
		_, err = s.Changes(ctx, store.Everything, seen.Next)
		conformance.WantKind(t, err, store.Unavailable)
	}
	for i := range 3 {
		c.Restart(i)
	}
	c.Ready()
	var got store.Record
	eventually(t, func() (err error) {
		got, err = s.Get(ctx, vmOn("counter", "").Key())
		return err
	}, store.Unavailable)
	if boots := got.(*store.VM).Boots; boots != before && boots != before+1 {
		t.Errorf("%d is stored, %d were acknowledged, and %d was tried", boots, before, before+1)
	}
	eventually(t, next, harmless...)
	after := changes(t, s, store.Everything, seen.Next)
	if len(after.Records) != 1 || after.Records[0].RecordVersion() != n.last.RecordVersion() {
		t.Errorf("the reader is told %+v, want %+v", after.Records, n.last)
	}
}

// A client of a member that is cut off goes on with the others, and is told of
// everything, also when the watch was at that member.
func TestALeaderThatIsStoppedIsLeftBehind(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 3)
	ctx := context.Background()
	var stores []*etcdstore.Store
	for range 4 {
		stores = append(stores, openWith(t, etcdstore.Config{Endpoints: c.Endpoints,
			Timeout: time.Second}))
	}
	n := &counter{store: stores[0]}
	harmless := []store.StoreKind{store.Unavailable, store.Unanswered}
	eventually(t, func() error { return n.count(ctx) }, harmless...)
	since := make([]store.Revision, len(stores))
	feeds := []store.Feed{store.Everything, {Host: "n1"}}
	for i, s := range stores {
		since[i] = changes(t, s, feeds[i%2], 0).Next
	}
	reader := openWith(t, etcdstore.Config{Endpoints: c.Endpoints, Timeout: 6 * time.Second})
	for range 30 { // it is connected to all of them
		eventually(t, func() error { _, err := reader.Get(ctx, vmOn("counter", "").Key()); return err }, harmless...)
	}
	leader := c.Leader()
	c.Pause(leader)
	for range 5 {
		eventually(t, func() error { return n.count(ctx) }, harmless...)
	}
	failed := 0
	for range 6 { // every third asks the one that does not answer, and then another
		if _, err := reader.Get(ctx, vmOn("counter", "").Key()); err != nil {
			failed++
		}
	}
	if failed > 1 {
		t.Errorf("%d of 6 reads failed: two members of three can answer", failed)
	}
	for i, s := range stores {
		var got store.Changes
		eventually(t, func() (err error) {
			got, err = s.Changes(ctx, feeds[i%2], since[i])
			return err
		}, store.Unavailable)
		if len(got.Records) != 1 || got.Records[0].RecordVersion() != n.last.RecordVersion() {
			t.Errorf("client %d is told %+v, want version %d", i, got.Records, n.last.RecordVersion())
		}
	}
	c.Continue(leader)
	if n.acked > n.tried {
		t.Errorf("%d were stored, and %d tried", n.acked, n.tried)
	}
}

// Readers and writers go on while etcd forgets what it no longer needs to know.
func TestACompactionUnderReaders(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	writer, reader := open(t, c, "/p"), open(t, c, "/p")
	late := open(t, c, "/p")
	ctx := t.Context()
	var vm store.Record = vmOn("v", "n1")
	vm = put(t, writer, vm)
	gone := put(t, writer, vmOn("gone", "n1"))
	seen := changes(t, late, store.Feed{Host: "n1"}, 0).Next
	late.Forget()
	var group sync.WaitGroup
	group.Go(func() {
		var at store.Revision
		for boots := 0; boots < 120; {
			if err := reader.Wait(ctx, store.Everything, at); err != nil {
				t.Errorf("Wait: %v", err)
				return
			}
			got, err := reader.Changes(ctx, store.Everything, at)
			if err != nil {
				t.Errorf("Changes: %v", err)
				return
			}
			at = got.Next
			for _, r := range got.Records {
				if v := r.(*store.VM); v.VM.ID == "v" {
					boots = v.Boots
				}
			}
		}
	})
	for i := range 120 {
		next := *vm.(*store.VM)
		next.Boots = i + 1
		vm = put(t, writer, &next)
		if i%20 == 0 {
			if err := c.Compact(); err != nil {
				t.Error(err)
			}
			reader.Break() // its watch has to begin again
		}
	}
	group.Wait()
	if err := writer.Delete(ctx, gone); err != nil {
		t.Fatal(err)
	}
	if err := c.Compact(); err != nil {
		t.Fatal(err)
	}
	got := changes(t, late, store.Feed{Host: "n1"}, seen)
	if !got.Reset || len(got.Records) != 1 || got.Records[0].RecordVersion() != vm.RecordVersion() {
		t.Errorf("a reader from before a compaction is told %+v", got)
	}
	follows(t, late, store.Feed{Host: "n1"}, got.Next, vm)
}

// A write that cannot have left this process has certainly not taken effect.
func TestWhatWasNotSentHasNotTakenEffect(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	s := openWith(t, etcdstore.Config{Endpoints: c.Endpoints, Timeout: time.Second})
	c.Kill(0)
	sure := 0
	for i := range 20 {
		_, err := s.Put(t.Context(), vmOn(fmt.Sprint(i), "n1"))
		conformance.WantKind(t, err, store.Unavailable, store.Unanswered)
		if errors.Is(err, store.Unavailable) {
			sure++
		}
		if sure == 2 {
			return
		}
	}
	t.Errorf("no member is there, and of 20 writes %d certainly did not take effect", sure)
}

func TestAnOldStateIsNoticed(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	s := open(t, c, "/p")
	vm := put(t, s, vmOn("v", "n1"))
	for _, of := range []store.Feed{store.Everything, {Host: "n1"}} {
		for _, since := range []store.Revision{1 << 30, 1<<64 - 1} {
			short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			if err := s.Wait(short, of, since); err == nil {
				t.Logf("waiting for what comes after %d woke for nothing, as it may", since)
			}
			cancel()
			got := changes(t, s, of, since)
			if !got.Reset || len(got.Records) != 1 || got.Next >= since {
				t.Errorf("since %d: %+v", since, got)
			}
			vm = follows(t, s, of, got.Next, vm)
		}
	}
}

// TestWhatAReaderSaysThatItHasSeenIsNotBelieved: a revision that etcd has not come to makes no other reader read
// everything, each time, and what is remembered stays. There is no feed of the leases of a host.
func TestWhatAReaderSaysThatItHasSeenIsNotBelieved(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	s := open(t, c, "/p")
	vm := put(t, s, vmOn("v", "n1"))
	for _, of := range []store.Feed{store.Everything, {Host: "n1"}} {
		for _, since := range []store.Revision{1 << 63, 1<<64 - 1} {
			standby := open(t, c, "/p") // it follows nothing yet
			short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			_ = standby.Wait(short, of, since)
			cancel()
			vm = follows(t, standby, of, changes(t, standby, of, 0).Next, vm)
			if got := changes(t, standby, of, since); !got.Reset || !standby.Knows(vm) {
				t.Errorf("%+v since %d: %+v, and the record is known: %v", of, since, got, standby.Knows(vm))
			}
		}
	}
	both := store.Feed{Host: "n1", Leases: true}
	_, err := s.Changes(t.Context(), both, 0)
	conformance.WantKind(t, err, store.Unreadable)
	conformance.WantKind(t, s.Wait(t.Context(), both, 1), store.Unreadable)
}

// follows checks that a feed is watched: what is written is told, without everything else.
// A busy machine may be late, but not always.
func follows(t *testing.T, s store.Store, of store.Feed, at store.Revision,
	vm store.Record) store.Record {
	t.Helper()
	for range 20 {
		vm = put(t, s, vm)
		got := changes(t, s, of, at)
		if len(got.Records) != 1 || got.Records[0].RecordVersion() != vm.RecordVersion() {
			t.Errorf("feed %+v since %d: told %+v, want version %d", of, at, got, vm.RecordVersion())
		}
		if !got.Reset {
			return vm
		}
		at = got.Next
	}
	t.Errorf("feed %+v: everything was told, again and again", of)
	return vm
}

// Close ends what waits for an answer, and whatever is asked afterwards is answered at once.
func TestClose(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	s := openWith(t, etcdstore.Config{Endpoints: c.Endpoints, Timeout: 10 * time.Minute})
	put(t, s, vmOn("v", "n1"))
	at := changes(t, s, store.Everything, 0).Next
	c.Pause(0)
	ctx := context.Background()
	key := vmOn("v", "n1").Key()
	var group sync.WaitGroup
	asked := func() {
		for _, ask := range []func() error{
			func() error { _, err := s.Get(ctx, key); return err },
			func() error { _, err := s.Put(ctx, vmOn("w", "n1")); return err },
			func() error { return s.Delete(ctx, vmOn("v", "n1").WithVersion(1)) },
			func() error { _, err := s.Changes(ctx, store.Everything, at); return err },
			func() error { return s.Wait(ctx, store.Everything, at) },
		} {
			group.Go(func() { conformance.WantKind(t, ask(), store.Unavailable, store.Unanswered) })
		}
	}
	asked()
	time.Sleep(50 * time.Millisecond) // they may be under way
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	group.Wait()
	asked()
	group.Wait()
	c.Continue(0)
}

// A watch that tells nothing is noticed: its feed is read in full, and watched anew.
func TestADeafWatchIsNoticed(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	s := openWith(t, etcdstore.Config{Endpoints: c.Endpoints, Timeout: 8 * time.Second})
	vm := put(t, s, vmOn("v", "n1"))
	for _, of := range []store.Feed{store.Everything, {Host: "n1"}} {
		at := changes(t, s, of, 0).Next
		vm = put(t, s, vm)
		at = changes(t, s, of, at).Next // the watch is there
		s.DropWatch()
		vm = put(t, s, vm)
		got := changes(t, s, of, at)
		if len(got.Records) != 1 || got.Records[0].RecordVersion() != vm.RecordVersion() {
			t.Errorf("feed %+v: told %+v, want version %d", of, got, vm.RecordVersion())
		}
		vm = follows(t, s, of, got.Next, vm)
	}
}
