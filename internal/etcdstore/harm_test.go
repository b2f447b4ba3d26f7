package etcdstore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/godwit-vm/godwit/conformance"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/etcdstore"
	"github.com/godwit-vm/godwit/internal/etcdtest"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// A full etcd is told apart from one that does not answer; nothing is lost, nothing that was
// refused is there, and when its operators have made room it goes on.
func TestAStoreThatIsFull(t *testing.T) {
	t.Parallel()
	c := etcdtest.StartWith(t, etcdtest.Options{Quota: 4 << 20})
	s := open(t, c, "/p")
	ctx := t.Context()
	const writers = 4
	var acked, refused [writers]map[string]bool
	var group sync.WaitGroup
	for w := range writers {
		acked[w], refused[w] = map[string]bool{}, map[string]bool{}
		group.Go(func() {
			for i := 0; len(refused[w]) < 3 && i < 1000; i++ {
				vm := vmOn(fmt.Sprintf("w%d-%d", w, i), "n1")
				vm.NotMigratableReason = strings.Repeat("x", 20_000)
				_, err := s.Put(ctx, vm)
				switch {
				case err == nil:
					acked[w][vm.Key().Name] = true
				case errors.Is(err, store.Full):
					refused[w][vm.Key().Name] = true
					if !strings.Contains(err.Error(), "etcdctl alarm disarm") {
						t.Errorf("%v: what is to be done?", err)
					}
				default:
					conformance.WantKind(t, err, store.Unanswered)
				}
			}
		})
	}
	group.Wait()
	there := map[string]bool{}
	for _, r := range changes(t, s, store.Everything, 0).Records {
		there[r.Key().Name] = true
	}
	for w := range writers {
		for name := range acked[w] {
			if !there[name] {
				t.Errorf("%s was acknowledged, and is lost", name)
			}
		}
		for name := range refused[w] {
			if there[name] {
				t.Errorf("%s was refused, and is there", name)
			}
		}
	}
	if len(there) == 0 || len(refused[0]) == 0 {
		t.Fatalf("%d stored, %d refused", len(there), len(refused[0]))
	}
	makeRoom(t, c, "/p/r/")
	put(t, s, vmOn("again", "n1"))
}

// makeRoom does what an operator does when etcd is full.
func makeRoom(t *testing.T, c *etcdtest.Cluster, prefix string) {
	t.Helper()
	client := c.Client()
	ctx := t.Context()
	_, err := client.Delete(ctx, prefix, clientv3.WithPrefix())
	if err == nil {
		err = c.Compact()
	}
	if err == nil {
		_, err = client.Defragment(ctx, c.Endpoints[0])
	}
	if err == nil {
		_, err = client.AlarmDisarm(ctx, &clientv3.AlarmMember{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsNotGodwitsOrNewerIsNamed(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	raw := c.Client()
	ctx := t.Context()
	for key, text := range map[string]string{
		"r/vm/newer":   `{"Format":99,"Record":{"VM":{"ID":"newer"}}}`,
		"r/vm/damaged": `{"Format":1,"Rec`,
		"r/sheep/a":    `{"Format":1,"Record":{}}`,
		"r/vm/other":   `{"Format":1,"Record":{"VM":{"ID":"swapped"}}}`,
	} {
		s := open(t, c, "/"+strings.ReplaceAll(key, "/", "-"))
		prefix := "/" + strings.ReplaceAll(key, "/", "-") + "/"
		name := key[strings.LastIndex(key, "/")+1:]
		vm := put(t, s, vmOn("fine", "n1"))
		seen := changes(t, s, store.Everything, 0)
		if _, err := raw.Txn(ctx).Then(clientv3.OpPut(prefix+key, text),
			clientv3.OpPut(prefix+"h/all", "")).Commit(); err != nil {
			t.Fatal(err)
		}
		for _, since := range []store.Revision{0, seen.Next} {
			_, err := s.Changes(ctx, store.Everything, since)
			conformance.WantKind(t, err, store.Unreadable)
			if err != nil && !strings.Contains(err.Error(), name) {
				t.Errorf("%v does not name %s", err, name)
			}
		}
		if strings.HasPrefix(key, "r/vm/") {
			_, err := s.Get(ctx, vmOn(name, "").Key())
			conformance.WantKind(t, err, store.Unreadable)
			_, err = s.Put(ctx, vmOn(name, ""))
			conformance.WantKind(t, err, store.Stale) // it is there, and stays
		}
		put(t, s, vm) // the others can be written
		if _, err := raw.Delete(ctx, prefix+key); err != nil {
			t.Fatal(err)
		}
		if got := changes(t, s, store.Everything, 0); len(got.Records) != 1 {
			t.Errorf("after it was removed: %+v", got)
		}
	}
}

// scatter puts, moves and deletes records of every kind, a few hundred times.
func scatter(t *testing.T, s store.Store) map[store.Key]store.Record {
	t.Helper()
	hosts := []hypervisor.HostName{"", "n1", "n 2", "n/3"}
	stored := map[store.Key]store.Record{}
	for i := range 400 {
		name := fmt.Sprint(i * 7 % 5)
		host, other := hosts[i*3%4], hosts[i*5%7%4]
		all := []store.Record{vmOn(name, host), &store.Lease{Owner: name},
			&store.Migration{Spec: migration.Spec{ID: migration.ID(name)},
				State: migration.State{Source: host, Target: other}},
			&store.Host{Host: hypervisor.Host{Name: host}},
			&store.Rebuild{VM: hypervisor.VMID(name), Source: other}}
		r := all[i%len(all)]
		old := stored[r.Key()]
		switch {
		case old == nil:
		case i%3 == 0:
			if err := s.Delete(t.Context(), old); err != nil {
				t.Fatal(err)
			}
			delete(stored, r.Key())
			continue
		default:
			r = r.WithVersion(old.RecordVersion())
		}
		stored[r.Key()] = put(t, s, r)
	}
	return stored
}

// There is a marker for each record in a host's feed, and for nothing else; and when
// everything is deleted nothing is left but the heads of the two big feeds.
func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	s, other := open(t, c, "/p"), open(t, c, "/p")
	stored := scatter(t, s)
	want := map[string]bool{}
	for key, r := range stored {
		for _, f := range store.Feeds(r) {
			if f.Host != "" {
				want[fmt.Sprintf("%s %v", f.Host, key)] = true
			}
		}
	}
	got := map[string]bool{}
	for _, h := range []hypervisor.HostName{"n1", "n 2", "n/3"} {
		for _, r := range changes(t, other, store.Feed{Host: h}, 0).Records {
			got[fmt.Sprintf("%s %v", h, r.Key())] = true
		}
	}
	if !maps.Equal(want, got) || len(keys(t, c, "/p/f/")) != len(want) {
		t.Errorf("markers %v, want %v", keys(t, c, "/p/f/"), slices.Sorted(maps.Keys(want)))
	}
	hosts := []store.Record{}
	for _, h := range []hypervisor.HostName{"n1", "n 2", "n/3", ""} {
		r := &store.Host{Host: hypervisor.Host{Name: h}}
		if stored[r.Key()] == nil {
			stored[r.Key()] = put(t, s, r)
		}
		hosts = append(hosts, stored[r.Key()])
		delete(stored, r.Key())
	}
	for _, r := range append(slices.Collect(maps.Values(stored)), hosts...) {
		if err := other.Delete(t.Context(), r); err != nil { // it has read only some of them
			t.Fatal(err)
		}
	}
	if left := keys(t, c, "/p/"); !slices.Equal(left, []string{"/p/h/all", "/p/h/signs"}) {
		t.Errorf("left behind: %v", left)
	}
}

// keys lists the keys with a prefix.
func keys(t *testing.T, c *etcdtest.Cluster, prefix string) []string {
	t.Helper()
	r, err := c.Client().Get(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, kv := range r.Kvs {
		all = append(all, string(kv.Key))
	}
	return all
}

// A client that writes a record that another one has changed or deleted meanwhile, or that it
// has never read itself, leaves nothing behind either.
func TestSeveralClientsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	s, other := open(t, c, "/p"), open(t, c, "/p")
	vm := put(t, s, vmOn("v", "n1"))
	moved := *vm.(*store.VM)
	moved.Host = "n2"
	next := put(t, other, &moved) // it was read by s only
	want := []string{"/p/f/n2/vm/v"}
	if got := keys(t, c, "/p/f/"); !slices.Equal(got, want) {
		t.Errorf("markers %v, want %v", got, want)
	}
	_, err := s.Put(t.Context(), vm)
	conformance.WantKind(t, err, store.Stale)
	conformance.WantKind(t, s.Delete(t.Context(), vm), store.Stale)
	if got, err := s.Get(t.Context(), vm.Key()); err != nil || got.RecordVersion() != next.RecordVersion() {
		t.Errorf("%+v, %v: want version %d", got, err, next.RecordVersion())
	}
	for range 2 { // a client that believes that it is there deletes it again
		for _, by := range []store.Store{other, s} {
			if err := by.Delete(t.Context(), next); err != nil {
				t.Errorf("it is gone: %v", err)
			}
		}
	}
	if got := keys(t, c, "/p/f/"); len(got) > 0 {
		t.Errorf("markers %v of what is gone", got)
	}
}

// A feed of more than a page is read as it was at one moment, while it changes.
func TestAFeedOfManyPagesIsReadAtOneMoment(t *testing.T) {
	t.Parallel()
	const many = 83
	c := etcdtest.Start(t, 1)
	s, reader := open(t, c, "/p"), open(t, c, "/p")
	reader.Page(9)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var group sync.WaitGroup
	for w := range 8 {
		group.Go(func() {
			for i := w; i < many; i += 8 {
				if _, err := s.Put(ctx, vmOn(strings.Repeat("0", i+1), "n1")); err != nil {
					t.Errorf("Put: %v", err)
				}
			}
		})
	}
	group.Wait()
	// Two VMs change hands all the time: in turn, one of them is at n1, and never both.
	a, b := put(t, s, vmOn("-a", "n1")), put(t, s, vmOn("zzzz-b", "n2"))
	group.Go(func() {
		for ctx.Err() == nil {
			for _, r := range []*store.Record{&a, &b, &b, &a} {
				next := *(*r).(*store.VM)
				if next.Host = "n1"; (*r).(*store.VM).Host == "n1" {
					next.Host = "n2"
				}
				if stored, err := s.Put(ctx, &next); err == nil {
					*r = stored
				}
			}
		}
	})
	for range 5 {
		for _, of := range []store.Feed{store.Everything, {Host: "n1"}} {
			reader.Forget()
			got := changes(t, reader, of, 0)
			here := 0
			for _, r := range got.Records {
				if r.(*store.VM).Host == "n1" {
					here++
				}
				if r.RecordVersion() > store.Version(got.Next) {
					t.Errorf("a record is of revision %d, in an answer of %d", r.RecordVersion(), got.Next)
				}
			}
			if here < many || here > many+1 {
				t.Errorf("feed %+v: %d records at n1, want %d or one more", of, here, many)
			}
		}
	}
	cancel()
	group.Wait()
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	absent, plain := []string{"127.0.0.1:1"}, []string{"http://a:1"}
	for name, c := range map[string]struct {
		config etcdstore.Config
		want   string
	}{
		"no endpoint":    {etcdstore.Config{}, "no endpoint"},
		"no server":      {etcdstore.Config{Endpoints: absent, DialTimeout: 2e8}, absent[0]},
		"no such CA":     {etcdstore.Config{Endpoints: absent, CA: "/nowhere"}, "/nowhere"},
		"no CA in it":    {etcdstore.Config{Endpoints: absent, CA: "harm_test.go"}, "no certificate in it"},
		"no key":         {etcdstore.Config{Endpoints: absent, Cert: "/nowhere"}, "only one"},
		"no such key":    {etcdstore.Config{Endpoints: absent, Cert: "/a", Key: "/b"}, "/a"},
		"TLS, and plain": {etcdstore.Config{Endpoints: plain, CA: "/nowhere"}, "https"},
		"some with TLS":  {etcdstore.Config{Endpoints: append(plain, "https://b:1")}, "https"},
	} {
		s, err := etcdstore.Open(t.Context(), c.config)
		if err == nil {
			t.Errorf("%s: it opens", name)
			_ = s.Close() // it should not be there
			continue
		}
		conformance.WantKind(t, err, store.Unavailable)
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v does not say %q", name, err, c.want)
		}
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	ours, theirs := etcdtest.NewAuthority(t), etcdtest.NewAuthority(t)
	c := etcdtest.StartWith(t, etcdtest.Options{Authority: ours})
	cert, key := ours.Issue(t, "agent")
	wrongCert, wrongKey := theirs.Issue(t, "stranger")
	bare := strings.TrimPrefix(c.Endpoints[0], "https://")

	good := etcdstore.Config{Endpoints: c.Endpoints, CA: ours.File, Cert: cert, Key: key}
	put(t, openWith(t, good), vmOn("v", "n1"))
	good.Endpoints = []string{bare} // as on the command line
	s := openWith(t, good)
	if got := changes(t, s, store.Everything, 0); len(got.Records) != 1 {
		t.Errorf("over TLS: %+v", got)
	}
	for name, b := range map[string]struct {
		config etcdstore.Config
		want   string
	}{
		"its CA is another": {etcdstore.Config{CA: theirs.File, Cert: cert, Key: key},
			"check the CA's certificates"},
		"no CA":          {etcdstore.Config{Cert: cert, Key: key}, "check the CA's certificates"},
		"no certificate": {etcdstore.Config{CA: ours.File}, "check the client's certificate"},
		"a stranger": {etcdstore.Config{CA: ours.File, Cert: wrongCert, Key: wrongKey},
			"check the client's certificate"},
		"the key is another's": {etcdstore.Config{CA: ours.File, Cert: cert, Key: wrongKey},
			"private key"},
	} {
		b.config.Endpoints = c.Endpoints
		_, err := etcdstore.Open(t.Context(), b.config)
		conformance.WantKind(t, err, store.Unavailable)
		if err != nil && !strings.Contains(err.Error(), b.want) {
			t.Errorf("%s: %v does not say %q", name, err, b.want)
		}
	}
	_, err := etcdstore.Open(t.Context(), etcdstore.Config{Endpoints: []string{bare}, DialTimeout: 1e9})
	conformance.WantKind(t, err, store.Unavailable) // it is not asked for TLS
}

// What JSON cannot hold as it is would be read as something else, by another client.
func TestWhatIsNotTextIsRefused(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	s := open(t, c, "/p")
	for _, r := range []store.Record{vmOn("a\xff", "n1"), vmOn("a", "n\xff"),
		&store.Lease{Owner: "\xc3"}} {
		_, err := s.Put(t.Context(), r)
		conformance.WantKind(t, err, store.Unreadable)
	}
	if got := keys(t, c, "/"); len(got) > 0 {
		t.Errorf("stored: %v", got)
	}
}
