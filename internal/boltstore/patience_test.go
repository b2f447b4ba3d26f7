package boltstore_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/internal/pki"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/store"
)

// TestAServerThatGoesSilentIsLeftInTime: a heartbeat that is due just after it was lost is stored at the next one
// before the agent begins anew, 15 s after the last. The agent tries again after a second.
func TestAServerThatGoesSilentIsLeftInTime(t *testing.T) {
	const begins, every, again = 15 * time.Second, 5 * time.Second, time.Second
	dir := newDir(t)
	authority(t, dir)
	s := newStore(t, dir)
	one, _ := serveTLS(t, s, "127.0.0.1:0", dir, nil)
	two, _ := serveTLS(t, s, "127.0.0.1:0", dir, nil)
	w := newTCPWire(t, one)
	client := dialTLS(t, dir, w.path, two)
	_, err := client.Put(ctx, vmOn("a", "n1"))
	must(t, err)
	w.cut()
	lost := time.Now()
	_, err = client.Put(ctx, vmOn("b", "n1"))
	wantError(t, err, store.Unanswered, fmt.Sprint("no answer within ", boltstore.AnswerTimeout))
	_, err = client.Get(ctx, vmOn("b", "").Key())
	must(t, err)
	// An answer that waits for this machine's processor comes late on it, and is no matter of the limit.
	if took := time.Since(lost); took > testutil.Limit(begins-every) {
		t.Errorf("after %v the next server was asked", took)
	}
	if left := begins - every - again - boltstore.AnswerTimeout; left < 2*time.Second {
		t.Errorf("a server is waited for for %v, and %v are left for the next", boltstore.AnswerTimeout, left)
	}
}

// TestALongAnswerDoesNotStop for good: neither before it begins nor in the middle of it.
func TestALongAnswerDoesNotStop(t *testing.T) {
	defer func(was time.Duration) { *boltstore.MuchTimeout = was }(*boltstore.MuchTimeout)
	*boltstore.MuchTimeout = 2 * time.Second
	dir := newDir(t)
	authority(t, dir)
	begins, parts := true, 0
	over := make(chan struct{})
	defer close(over)
	at := serviceTLS(t, dir, func(w http.ResponseWriter, _ *http.Request) {
		if begins {
			_, _ = fmt.Fprintf(w, `{"Speaks":{"Protocol":%d,"Record":%d}`, boltstore.Protocol, store.Format)
		}
		for range parts { // slow, and never silent for long
			_, _ = fmt.Fprint(w, " ")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(100 * time.Millisecond)
		}
		if parts > 0 {
			_, _ = fmt.Fprint(w, `,"Next":7}`)
			return
		}
		_ = http.NewResponseController(w).Flush()
		<-over
	})
	client := dialTLS(t, dir, at)
	for _, begins = range []bool{false, true} {
		_, err := client.Changes(soon(t), store.Everything, 0)
		wantError(t, err, store.Unavailable, "no answer within 2s")
	}
	parts = 25 // longer than one silence may be
	c, err := client.Changes(soon(t), store.Everything, 0)
	if err != nil || c.Next != 7 {
		t.Errorf("a slow answer: %+v, %v", c, err)
	}
}

// serviceTLS answers all that connect in the same way.
func serviceTLS(t testing.TB, dir string, f http.HandlerFunc) (at string) {
	t.Helper()
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l, err := boltstore.ListenTLS(raw, pki.Dir(filepath.Join(dir, "pki", "a")), nil)
	must(t, err)
	server := &http.Server{Handler: f}
	ended := make(chan error)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return l.Addr().String()
}
