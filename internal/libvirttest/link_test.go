//go:build linux

package libvirttest_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/godwit-vm/godwit/internal/libvirttest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// within does something in the network of a host. Sockets that it makes stay there.
func within(t *testing.T, l *libvirttest.Lab, host string, do func() error) error {
	t.Helper()
	space, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", l.PID(host)))
	if err != nil {
		t.Fatal(err)
	}
	defer space.Close()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // unlocked only at home; otherwise the thread ends
		home, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			done <- err
			return
		}
		defer home.Close()
		if err = unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err == nil {
			err = do()
		}
		if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}

// connection is one from hostb to hosta: its ends there and here.
func connection(t *testing.T, l *libvirttest.Lab) (near, far net.Conn) {
	t.Helper()
	var listener net.Listener
	err := within(t, l, hosta, func() (err error) {
		listener, err = net.Listen("tcp", "10.99.0.1:0")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if far, err = dial(t, l, listener.Addr().String(), patience); err != nil {
		t.Fatal(err)
	}
	if near, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

// dial connects from hostb.
func dial(t *testing.T, l *libvirttest.Lab, to string, limit time.Duration) (net.Conn, error) {
	t.Helper()
	var conn net.Conn
	err := within(t, l, hostb, func() (err error) {
		conn, err = net.DialTimeout("tcp", to, limit)
		return err
	})
	return conn, err
}

// silent fails if a connection says anything, an error or data, within a while.
func silent(t *testing.T, conn net.Conn) {
	t.Helper()
	if _, err := conn.Write([]byte("lost?")); err != nil {
		t.Errorf("a write is told: %v", err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	n, err := conn.Read(make([]byte, 1))
	if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a read gets %d bytes: %v", n, err)
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
}

// hears fails unless what one end has written arrives at the other.
func hears(t *testing.T, conn net.Conn, want string) {
	t.Helper()
	begin := time.Now()
	if err := conn.SetReadDeadline(begin.Add(patience)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Fatalf("got %q, want %q: %v", got, want, err)
	}
	t.Logf("it came after %v", time.Since(begin).Round(time.Millisecond))
}

func TestACutLinkIsSilentAndConnectionsGoOn(t *testing.T) {
	testutil.Sample(t, 5)
	l := shared(t)
	near, far := connection(t, l)
	if _, err := near.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	hears(t, far, "hello")
	l.CutLink()
	silent(t, near)
	silent(t, far)
	conn, err := dial(t, l, "10.99.0.1:16509", 1500*time.Millisecond)
	if timeout, ok := errors.AsType[net.Error](err); !ok || !timeout.Timeout() {
		t.Errorf("a new connection over a cut link: %v, %v", conn, err)
	}
	for _, host := range []string{hosta, hostb} {
		out, err := l.Run(host, "cat", "/sys/class/net/veth0/carrier")
		if err != nil || out != "1\n" {
			t.Errorf("%s sees its carrier as %q: %v", host, out, err)
		}
	}
	l.MendLink()
	hears(t, near, "lost?")
	hears(t, far, "lost?")
	if conn, err = dial(t, l, "10.99.0.1:16509", patience); err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

func TestAResetEndsConnectionsAtBothEnds(t *testing.T) {
	for _, cut := range []bool{false, true} {
		t.Run(fmt.Sprintf("cut %t", cut), func(t *testing.T) {
			l := shared(t)
			near, far := connection(t, l)
			if cut {
				l.CutLink()
			}
			l.ResetLink()
			for _, conn := range []net.Conn{near, far} {
				if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
					t.Fatal(err)
				}
				_, err := conn.Read(make([]byte, 1))
				if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.ECONNABORTED) {
					t.Errorf("a connection that was reset: %v", err)
				}
			}
			l.MendLink()
			conn, err := dial(t, l, "10.99.0.1:16509", patience)
			if err != nil {
				t.Fatalf("libvirtd does not listen any more: %v", err)
			}
			conn.Close()
		})
	}
}

// TestALinkThatIsCutStaysCut when both hosts boot, and each gets a port anew.
func TestALinkThatIsCutStaysCut(t *testing.T) {
	l := shared(t)
	l.PowerOff(hosta)
	l.CutLink()
	l.PowerOff(hostb)
	l.PowerOn(hosta)
	l.PowerOn(hostb)
	if conn, err := dial(t, l, "10.99.0.1:16509", 500*time.Millisecond); err == nil {
		conn.Close()
		t.Error("a host that boots mends the link")
	}
	l.MendLink()
	connection(t, l)
}
