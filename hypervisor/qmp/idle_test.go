package qmp_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// crowd is more connections than a listener holds.
const crowd = 1100

// TestIdleConnectionsKeepNoSourceOut: a source is answered at its first attempt, at once, while
// idle connections are held open; one that has been answered is not closed for those that come
// later.
func TestIdleConnectionsKeepNoSourceOut(t *testing.T) {
	before, goroutines := descriptors(t), runtime.NumGoroutine()
	s := listen(t, "tcp")
	first := qmp.NewConn(dial(t, s), "secret")
	asks(t, first, prepare, &agreed)
	var ended atomic.Int64
	var idle []net.Conn
	for range crowd {
		c := dial(t, s)
		_ = c.SetDeadline(time.Time{})
		idle = append(idle, c)
		go func() {
			_, _ = c.Read(make([]byte, 1))
			ended.Add(1)
		}()
	}
	asks(t, qmp.NewConn(dial(t, s), "secret"), prepare, &agreed)
	asks(t, first, stopped, &qmp.Answer{})
	testutil.Eventually(t, "the listener holds few idle connections", func() error {
		if n := ended.Load(); n < crowd-100 {
			return errors.New("too few have been closed")
		}
		return nil
	})
	for _, c := range idle {
		_ = c.Close()
	}
	_ = first.Close()
	testutil.Eventually(t, "the file descriptors come back", func() error {
		if now := descriptors(t); now > before+8 {
			return errors.New("there are still too many")
		}
		return nil
	})
	testutil.Eventually(t, "the goroutines end", func() error {
		if now := runtime.NumGoroutine(); now > goroutines+8 {
			return fmt.Errorf("there were %d, and are %d", goroutines, now)
		}
		return nil
	})
}

// descriptors returns how many files this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("the kernel does not list open files: %v", err)
	}
	return len(all)
}

// TestIdleConnectionsTimeOut: a connection that shows no token is closed after a while, and one
// that has shown it is not.
func TestIdleConnectionsTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &once{conns: make(chan net.Conn, 100)}
		s := qmp.Serve(l, func(id hypervisor.JobID) string { return tokens[id] },
			func(*qmp.Message) qmp.Answer { return agreed })
		defer s.Close()
		var ended atomic.Int64
		for range 50 {
			here, there := net.Pipe()
			l.conns <- there
			go func() {
				_, _ = here.Read(make([]byte, 1))
				ended.Add(1)
			}()
		}
		here, there := net.Pipe()
		l.conns <- there
		source := qmp.NewConn(here, "secret")
		defer source.Close()
		asks(t, source, prepare, &agreed)
		synctest.Wait()
		if n := ended.Load(); n != 0 {
			t.Errorf("%d connections were closed at once", n)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := ended.Load(); n != 50 {
			t.Errorf("%d idle connections were closed, want 50", n)
		}
		asks(t, source, stopped, &agreed)
	})
}

// TestStrangersCrowdOutOnlyEachOther: over a socket that many processes share, too.
func TestStrangersCrowdOutOnlyEachOther(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	s := qmp.Serve(l, func(id hypervisor.JobID) string { return tokens[id] },
		func(*qmp.Message) qmp.Answer { return agreed })
	defer s.Close()
	var sources []*qmp.Conn
	for range 100 { // more than a peer may have that has shown no token
		conn, err := net.Dial("unix", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		sources = append(sources, qmp.NewConn(conn, "secret"))
		asks(t, sources[len(sources)-1], prepare, &agreed)
	}
	for _, c := range sources {
		asks(t, c, prepare, &agreed)
	}
}
