package boltstore_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/godwit-vm/godwit/conformance"
	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/internal/testutil"
	"github.com/godwit-vm/godwit/store"
)

// remoteChildEnv makes the test binary a server of the store in a directory.
const remoteChildEnv = "GODWIT_REMOTE_CHILD"

func serveDir(dir string) error {
	if address, err := os.ReadFile(filepath.Join(dir, "tls")); err == nil {
		return serveDirTLS(dir, address)
	}
	s, err := boltstore.Open(filepath.Join(dir, "godwit.db"))
	if err != nil {
		return err
	}
	l, err := boltstore.Listen(filepath.Join(dir, "sock"))
	if err != nil {
		return err
	}
	fmt.Println("serving")
	return boltstore.Serve(ctx, s, l)
}

// newDir is closed to others, and in memory where there is room for such.
func newDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "godwit-remote-")
	if err != nil {
		dir, err = os.MkdirTemp("", "godwit-remote-") // the path of a socket is short
	}
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// startServer runs a process that serves the store in a directory, until what it returns
// is called, or the test ends.
func startServer(t testing.TB, dir string) (kill func()) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), remoteChildEnv+"="+dir)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	kill = sync.OnceFunc(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	t.Cleanup(kill)
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatalf("the server has not begun: %v", err)
	}
	return kill
}

func TestRemoteConformance(t *testing.T) {
	conformance.Store(t, func(t *testing.T) conformance.Subject {
		testutil.Sample(t, 3) // the store behind the socket passes all of them: TestConformance
		dir := newDir(t)
		kill := startServer(t, dir)
		w := newWire(t, filepath.Join(dir, "sock"))
		return remoteSubject(dir, dial(t, w.path), w, kill)
	})
}

// remoteSubject is a client of a server in another process, which kill ends.
func remoteSubject(dir string, client store.Store, w *wire, kill func()) conformance.Subject {
	return conformance.Subject{
		Store: client,
		Again: func(t *testing.T) store.Store {
			kill()
			kill = startServer(t, dir)
			return client // it survives its server
		},
		Crash: func() { kill() },
		Cut:   w.cut,
		Heal:  w.heal,
	}
}

// A wire is a socket whose bytes go to another one, or wait while it is cut.
type wire struct {
	kind  string // "unix" or "tcp"
	path  string
	mu    sync.Mutex
	whole chan struct{} // closed unless it is cut
}

func newWire(t testing.TB, to string) *wire {
	t.Helper()
	return (&wire{kind: "unix", path: to + ".wire"}).begin(t, to)
}

// newTCPWire is newWire over TCP.
func newTCPWire(t testing.TB, to string) *wire {
	t.Helper()
	return (&wire{kind: "tcp", path: "127.0.0.1:0"}).begin(t, to)
}

func (w *wire) begin(t testing.TB, to string) *wire {
	t.Helper()
	w.whole = make(chan struct{})
	close(w.whole)
	l, err := net.Listen(w.kind, w.path)
	must(t, err)
	w.path = l.Addr().String()
	ended, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	t.Cleanup(func() {
		stop()
		l.Close()
		group.Wait()
	})
	group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() { w.join(ended, c, to) })
		}
	})
	return w
}

// join carries one connection.
func (w *wire) join(ctx context.Context, near net.Conn, to string) {
	defer near.Close()
	far, err := net.Dial(w.kind, to)
	if err != nil {
		return
	}
	defer far.Close()
	defer context.AfterFunc(ctx, func() { near.Close(); far.Close() })()
	var group sync.WaitGroup
	group.Go(func() { w.carry(ctx, near, far) })
	w.carry(ctx, far, near)
	group.Wait()
}

func (w *wire) carry(ctx context.Context, from, to net.Conn) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		w.mu.Lock()
		whole := w.whole
		w.mu.Unlock()
		select {
		case <-whole:
		case <-ctx.Done():
			return
		}
		if _, failed := to.Write(b[:n]); failed != nil || err != nil {
			return
		}
	}
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.whole = make(chan struct{})
}

func (w *wire) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.whole)
}

func dial(t testing.TB, path string) *boltstore.Client {
	t.Helper()
	c, err := boltstore.Dial(path)
	must(t, err)
	return c
}

func listen(t testing.TB, path string) net.Listener {
	t.Helper()
	l, err := boltstore.Listen(path)
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// serve serves a store until what it returns is called, or the test ends.
func serve(t testing.TB, s store.Store, path string) (stop func()) {
	t.Helper()
	l := listen(t, path)
	serving, cancel := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- boltstore.Serve(serving, s, l) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func newStore(t testing.TB, dir string) *boltstore.Store {
	t.Helper()
	s, err := boltstore.Open(filepath.Join(dir, "godwit.db"))
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// soon is a context for what must not last.
func soon(t testing.TB) context.Context {
	c, cancel := context.WithTimeout(ctx, testutil.Limit(testutil.DefaultLimit))
	t.Cleanup(cancel)
	return c
}
