//go:build linux

package guest

import (
	"fmt"
	"net"
	"path/filepath"
	"testing"

	"github.com/godwit-vm/godwit/internal/testutil"
)

// TestASocketThatEndedIsNotClosedTwice matters because its number may by then be
// another file's.
func TestASocketThatEndedIsNotClosedTwice(t *testing.T) {
	p, err := NewHeartbeatListener()
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
	testutil.Eventually(t, "the socket is forgotten", func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if left := len(p.feeds); left > 0 {
			return fmt.Errorf("%d are still known", left)
		}
		return nil
	})
}
