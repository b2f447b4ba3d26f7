//go:build linux

package guest

import (
	"net"
	"path/filepath"
	"testing"
	"time"
)

// TestASocketThatEndedIsNotClosedTwice matters because its number may by then be
// another file's.
func TestASocketThatEndedIsNotClosedTwice(t *testing.T) {
	p, err := NewPulse()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	// An abstract name needs no path, and so cannot be too long for a socket.
	listener, err := net.Listen("unix", "@"+filepath.Base(t.TempDir())+t.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := p.Connect(t.Context(), "source", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		left := len(p.feeds)
		p.mu.Unlock()
		if left == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d sockets are still known", left)
		}
	}
}
