package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// A log answers the last change of each key after a revision, in order, or that it does
// not reach back so far: checked against all that was ever told.
func TestALogAnswersAllThatChangedOrThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := newFeed(7)
		f.turn, f.keep = 1, rapid.IntRange(1, 40).Draw(t, "keep")
		all, at := []change{}, int64(7)
		many := rapid.IntRange(1, 3*f.keep).Draw(t, "keys")
		t.Repeat(map[string]func(*rapid.T){
			"something is told": func(t *rapid.T) {
				var told []*clientv3.Event
				for range rapid.IntRange(1, 30).Draw(t, "changes") {
					at += int64(rapid.IntRange(0, 1).Draw(t, "step")) + at%2
					e := &clientv3.Event{Kv: &mvccpb.KeyValue{ModRevision: at,
						Key: fmt.Append(nil, int(at*7919)%many)}}
					told = append(told, e)
					all = append(all, change{at: store.Revision(at), key: string(e.Kv.Key)})
				}
				f.take(1, told)
				f.take(0, []*clientv3.Event{{Kv: &mvccpb.KeyValue{ModRevision: 1 << 40}}}) // void
			},
			"etcd is compacted": func(t *rapid.T) {
				f.lose(1, store.Revision(at))
			},
			"": func(t *rapid.T) {
				since := store.Revision(rapid.Int64Range(0, at).Draw(t, "since"))
				got, latest, ok := f.after(context.Background(), since, f.latest)
				if ok != (since >= f.base) {
					t.Fatalf("since %d: %v, and the log begins after %d", since, ok, f.base)
				}
				if !ok {
					return
				}
				slices.Reverse(got)
				compare(t, lastOf(all, since), got)
				if int64(latest) != at {
					t.Fatalf("the log has come to %d, not %d", latest, at)
				}
				if len(f.log) >= 2*f.keep {
					t.Fatalf("it remembers %d changes", len(f.log))
				}
			},
		})
	})
}

// TestAFeedWithoutReadersIsNotWatchedForEver: one that is waited for, or was read lately, is.
func TestAFeedWithoutReadersIsNotWatchedForEver(t *testing.T) {
	t.Parallel()
	s := &Store{feeds: map[store.Feed]*feed{}}
	s.ctx, s.stop = context.WithCancel(t.Context())
	s.stop() // no watch begins
	old, waited, read := s.follow(store.Feed{Host: "n1"}, 1), s.follow(store.Feed{Host: "n2"}, 1), s.follow(store.Leases, 1)
	waited.wait(1)
	for _, f := range []*feed{old, waited} {
		f.used = time.Now().Add(-idle - time.Second)
	}
	s.follow(store.Everything, 1)
	if s.feeds[store.Feed{Host: "n1"}] != nil {
		t.Error("what is not read is watched")
	}
	if s.feeds[store.Feed{Host: "n2"}] != waited || s.feeds[store.Leases] != read {
		t.Error("what is read is not watched")
	}
}

// TestAWatchCountsAsAnAnswer: an etcd that is older than what a watch has told was set back.
func TestAWatchCountsAsAnAnswer(t *testing.T) {
	t.Parallel()
	var p past
	p.heard(0, &etcdserverpb.ResponseHeader{Revision: 100})
	f := newFeed(100)
	f.turn = 2
	told := []*clientv3.Event{{Kv: &mvccpb.KeyValue{ModRevision: 105}}}
	p.told(f.take(1, told)) // void
	if p.top() != 100 {
		t.Errorf("a watch that is void raises it to %d", p.top())
	}
	p.told(f.take(2, told))
	if !p.heard(p.top(), &etcdserverpb.ResponseHeader{Revision: 102}) || p.top() != 102 {
		t.Errorf("etcd was set back from 105 to 102, and that is not noticed: %d", p.top())
	}
}

// lastOf is what a log is to answer, from all that ever changed.
func lastOf(all []change, since store.Revision) []change {
	seen := map[string]bool{}
	var last []change
	for _, c := range slices.Backward(all) {
		if c.at > since && !seen[c.key] {
			seen[c.key] = true
			last = append(last, c)
		}
	}
	slices.Reverse(last)
	return last
}

// compare allows a key twice when it changed twice at one revision.
func compare(t *rapid.T, want, got []change) {
	if !slices.IsSortedFunc(got, func(a, b change) int { return int(a.at) - int(b.at) }) {
		t.Fatal("the changes are not in order")
	}
	last := map[string]store.Revision{}
	for _, c := range want {
		last[c.key] = c.at
	}
	for _, c := range got {
		if at, known := last[c.key]; !known || at != c.at {
			t.Fatalf("%q at %d is not its last change, %d", c.key, c.at, at)
		}
	}
	for _, c := range got {
		delete(last, c.key)
	}
	if len(last) > 0 {
		t.Fatalf("missing: %v", last)
	}
}

func TestOnlyWhatIsCertainIsSaidOfAWriteThatFailed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		err  error
		left bool
		want store.StoreKind
	}{
		{"it waited for a connection", context.DeadlineExceeded, false, store.Unavailable},
		{"its answer did not come", context.DeadlineExceeded, true, store.Unanswered},
		{"its caller went", context.Canceled, true, store.Unanswered},
		{"the connection broke", status.Error(codes.Unavailable, "EOF"), true, store.Unanswered},
		{"no leader was known", rpctypes.ErrNoLeader, true, store.Unavailable},
		{"the leader was lost", rpctypes.ErrLeaderChanged, true, store.Unanswered},
		{"it took too long", rpctypes.ErrTimeout, true, store.Unanswered},
		{"the leader failed", rpctypes.ErrTimeoutDueToLeaderFail, true, store.Unanswered},
		{"the member stopped", rpctypes.ErrStopped, true, store.Unanswered},
		{"no room", rpctypes.ErrNoSpace, true, store.Full},
		{"it is too big for etcd", rpctypes.ErrRequestTooLarge, true, store.Full},
		{"it is too big for gRPC", status.Error(codes.ResourceExhausted, "x"), true, store.Full},
		{"etcd is busy", rpctypes.ErrTooManyRequests, true, store.Unavailable},
		{"etcd is busy, on the wire", rpctypes.ErrGRPCRequestTooManyRequests, true,
			store.Unavailable},
		{"it is not allowed", rpctypes.ErrPermissionDenied, true, store.Forbidden},
		{"it is not known", errors.New("etcdserver: no leader?"), true, store.Unanswered},
	} {
		if got := kindOf(c.err, c.left); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if !errors.Is(advised(c.err), c.err) {
			t.Errorf("%s: the error was lost in %v", c.name, advised(c.err))
		}
	}
}

func TestEveryKeyIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := keys("/p")
		name := string(rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "name"))
		host := hypervisor.HostName(rapid.SliceOfN(rapid.Byte(), 1, 12).Draw(t, "host"))
		k := store.Key{Kind: rapid.SampledFrom(store.Kinds()).Draw(t, "kind"), Name: name}
		got, err := p.parse(store.Feed{Leases: signs(k.Kind)}, p.record(k))
		if err != nil || got != k {
			t.Errorf("%q: %v, %v", p.record(k), got, err)
		}
		got, err = p.parse(store.Feed{Host: host}, p.marker(host, k))
		if err != nil || got != k {
			t.Errorf("%q: %v, %v", p.marker(host, k), got, err)
		}
	})
	for _, odd := range []string{"", "/p/r/", "/p/r/vm", "/p/r/sheep/a", "/p/s/vm/a",
		"/p/r/vm/%zz"} {
		if k, err := keys("/p").parse(store.Everything, odd); err == nil {
			t.Errorf("%q is %v", odd, k)
		}
	}
}

func TestTheYoungestRecordsAreKnown(t *testing.T) {
	t.Parallel()
	const generation = 100
	k := known{size: generation}
	key := func(i int) store.Key { return (&store.Lease{Owner: fmt.Sprint(i)}).Key() }
	for i := range 3 * generation {
		k.keep(&store.Lease{Owner: fmt.Sprint(i), Version: 5})
	}
	k.keep(&store.Lease{Owner: "99", Version: 5})
	k.keep(&store.Lease{Owner: "99", Version: 4}) // older than what is known
	if k.find(key(99), 5) == nil || k.find(key(99), 4) != nil {
		t.Error("the newest version is not what is known")
	}
	if k.find(key(3*generation-1), 5) == nil || k.find(key(0), 5) != nil {
		t.Error("not the youngest are known")
	}
	if n := len(k.young) + len(k.old); n > 2*generation {
		t.Errorf("%d are known", n)
	}
	k.drop(key(99))
	k.clear()
	if k.find(key(99), 5) != nil || k.find(key(3*generation-1), 5) != nil {
		t.Error("what was forgotten is known")
	}
}
