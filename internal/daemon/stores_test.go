package daemon_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/internal/daemon"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/store"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]daemon.URL{
		"bolt:/var/lib/c.db": {Kind: daemon.Bolt, Path: "/var/lib/c.db"},
		"bolt:c:d.db":        {Kind: daemon.Bolt, Path: "c:d.db"},
		"unix:/run/g.sock":   {Kind: daemon.Unix, Path: "/run/g.sock"},
		"etcd://a:1,b:2": {Kind: daemon.Etcd, Endpoints: []string{"a:1", "b:2"},
			Prefix: "/godwit"},
		"etcd://[::1]:1/x/y/": {Kind: daemon.Etcd, Endpoints: []string{"[::1]:1"},
			Prefix: "/x/y"},
		"tls://a:1,b:2": {Kind: daemon.Served, Endpoints: []string{"a:1", "b:2"}},
	} {
		got, err := daemon.ParseURL(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
		}
		again, err := daemon.ParseURL(got.String())
		if diff := cmp.Diff(got, again); err != nil || diff != "" {
			t.Errorf("%s, printed and read again: %v\n%s", got, err, diff)
		}
	}
	for _, wrong := range []string{"", "bolt", "bolt:", "unix:/run/", "etcd:a:1", "etcd://",
		"etcd://a", "etcd://a:1,", "tls:a:1", "tls://a", "tls://a:1/x", "http://a", "bolt:/" + strings.Repeat("x", 110)} {
		_, err := daemon.ParseURL(wrong)
		if _, is := errors.AsType[*daemon.URLError](err); !is {
			t.Errorf("%q: %v, want a URLError", wrong, err)
		}
	}
}

func url(t *testing.T, text string) daemon.URL {
	t.Helper()
	u, err := daemon.ParseURL(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestServeAndOpen: what the controller writes, an operator reads; when it has ended, the
// store is absent; who waits for it, finds it.
func TestServeAndOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	u := url(t, "bolt:"+filepath.Join(dir, "c.db"))
	_, err := daemon.OpenStore(t.Context(), u, daemon.TLS{})
	if _, is := errors.AsType[*daemon.AbsentError](err); !is ||
		!strings.Contains(err.Error(), "godwit controller --store bolt:PATH") {
		t.Fatalf("before: %v", err)
	}
	found := make(chan error, 1)
	told := make(chan error, 1)
	go func() {
		s, err := daemon.Await(t.Context(), u, daemon.TLS{}, func(err *daemon.AbsentError) { told <- err })
		if err == nil {
			err = s.Close()
		}
		found <- err
	}()
	<-told
	ctx, stop := context.WithTimeout(t.Context(), testutil.Limit(testutil.DefaultLimit))
	defer stop()
	err = daemon.Serve(ctx, u, "", boltstore.Access{}, func(ctx context.Context, s daemon.Store) error {
		h := &store.Host{Host: hypervisor.Host{Name: "n1"}}
		if _, err := s.Put(ctx, h); err != nil {
			return err
		}
		if err := <-found; err != nil {
			t.Errorf("the client that waited: %v", err)
		}
		other, err := daemon.OpenStore(ctx, url(t, "unix:"+u.Socket()), daemon.TLS{})
		if err != nil {
			return err
		}
		if r, err := other.Get(ctx, h.Key()); r == nil || err != nil {
			t.Errorf("nothing is read: %v, %v", r, err)
		}
		second := daemon.Serve(ctx, u, u.Socket()+"2", boltstore.Access{}, nil)
		if !errors.Is(second, store.Unavailable) {
			t.Errorf("a second controller of the file: %v", second)
		}
		return other.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(u.Socket()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	if _, err := daemon.OpenStore(t.Context(), u, daemon.TLS{}); err == nil {
		t.Error("after: it answers")
	}
}

// TestAFileWithHostsOfWhichNothingIsRemembered may be a backup, also the next time, until an operator
// vouches for it; a new one, and one that was seen, are not.
func TestAFileWithHostsOfWhichNothingIsRemembered(t *testing.T) {
	u := url(t, "bolt:"+filepath.Join(t.TempDir(), "d", "c.db"))
	unmarked := func(then func(*daemon.Gate)) (is bool) {
		t.Helper()
		err := daemon.Serve(t.Context(), u, "", boltstore.Access{}, func(ctx context.Context, s daemon.Store) error {
			gate := s.(*daemon.Gate)
			is = gate.Unmarked()
			_, err := s.Put(ctx, &store.Host{Host: hypervisor.Host{Name: "n1"}})
			if errors.Is(err, store.Stale) {
				err = nil // it is known
			}
			then(gate)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	nothing := func(*daemon.Gate) {}
	for range 2 {
		if unmarked(nothing) {
			t.Error("a file that was made here is taken for a backup")
		}
	}
	if err := os.Remove(u.Path + ".seen"); err != nil {
		t.Fatal(err)
	}
	if !unmarked(nothing) || !unmarked((*daemon.Gate).Vouch) {
		t.Error("a file of which nothing is remembered is not taken for a backup")
	}
	if unmarked(nothing) {
		t.Error("a file that was vouched for is taken for a backup")
	}
}

func TestWhoWaitsMayBeTold(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	_, err := daemon.Await(ctx, url(t, "unix:"+filepath.Join(t.TempDir(), "s")), daemon.TLS{},
		func(*daemon.AbsentError) { stop(enough) })
	if !errors.Is(err, enough) {
		t.Errorf("the error is %v", err)
	}
}

func TestCertificatesAreForEtcd(t *testing.T) {
	_, err := daemon.OpenStore(t.Context(), url(t, "unix:/s"), daemon.TLS{CA: "x"})
	if err == nil || !strings.Contains(err.Error(), "for etcd only") {
		t.Errorf("a socket: %v", err)
	}
	_, err = daemon.OpenStore(t.Context(), url(t, "etcd://127.0.0.1:1"), daemon.TLS{CA: "none.pem"})
	if _, absent := errors.AsType[*daemon.AbsentError](err); err == nil || absent {
		t.Errorf("a file that is not there is waited for: %v", err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	_, err = daemon.OpenStore(ctx, url(t, "etcd://127.0.0.1:1"), daemon.TLS{})
	if _, absent := errors.AsType[*daemon.AbsentError](err); !absent ||
		!strings.Contains(err.Error(), "start etcd") {
		t.Errorf("no server listens: %v", err)
	}
}

// TestASocketThatIsNotForThisUser: it is not said that no controller runs.
func TestASocketThatIsNotForThisUser(t *testing.T) {
	err := &daemon.AbsentError{URL: url(t, "bolt:/d/c.db"), Err: &store.StoreError{Op: "Get", Kind: store.Unavailable,
		Err: &net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.EACCES)}}}
	if text := err.Error(); !strings.Contains(text, "--viewer-group") || strings.Contains(text, "start a controller on") {
		t.Errorf("%q", text)
	}
	if brief := err.Brief(); brief != "this user may not use its socket" {
		t.Errorf("%q", brief)
	}
}
