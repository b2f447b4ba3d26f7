//go:build linux

package qmp_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A link is the network between two hosts: everything that one advertises to the
// other goes through it, and it can be cut.
type link struct {
	dir string
	// overhear is given all that passes, and may delay it. Nil is none.
	overhear func([]byte)

	mu        sync.Mutex
	mended    *sync.Cond
	cut       bool
	closed    bool
	through   map[string]string // address → where it is advertised
	listeners []net.Listener
	conns     map[net.Conn]bool
	running   sync.WaitGroup
}

func newLink(t *testing.T, dir string) *link {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l := &link{dir: dir, through: map[string]string{}, conns: map[net.Conn]bool{}}
	l.mended = sync.NewCond(&l.mu)
	t.Cleanup(l.close)
	return l
}

// advertise returns where an address is reached through the link.
func (l *link) advertise(address string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.through[address]; known != "" || l.closed {
		return known
	}
	path := filepath.Join(l.dir, fmt.Sprint(len(l.through)))
	listener, err := net.Listen("unix", path)
	if err != nil {
		panic(err) // the directory is ours
	}
	l.listeners = append(l.listeners, listener)
	l.through[address] = "unix:" + path
	l.running.Go(func() { l.accept(listener, address) })
	return l.through[address]
}

// accept takes connections to where they are to go, in their order: QEMU 7.2 takes
// the first that arrives for the one that is not just another channel.
func (l *link) accept(listener net.Listener, address string) {
	network, where, _ := strings.Cut(address, ":")
	for {
		near, err := listener.Accept()
		if err != nil {
			return
		}
		if !l.passable() {
			near.Close()
			return
		}
		far, err := net.Dial(network, where)
		if err != nil {
			near.Close()
			continue
		}
		l.mu.Lock()
		l.conns[near], l.conns[far] = true, true
		if l.closed { // meanwhile
			near.Close()
			far.Close()
		}
		l.mu.Unlock()
		l.running.Go(func() { l.pump(near, far) })
		l.running.Go(func() { l.pump(far, near) })
	}
}

// pump copies what comes from one end to the other, as long as the link is whole.
func (l *link) pump(to, from net.Conn) {
	defer l.drop(to, from)
	buf := make([]byte, 256<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && l.overhear != nil {
			l.overhear(buf[:n]) // before the cut is looked at: it may come meanwhile
		}
		if !l.passable() {
			return
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// passable waits until the link is whole, and reports whether it is for ever gone.
func (l *link) passable() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.cut && !l.closed {
		l.mended.Wait()
	}
	return !l.closed
}

func (l *link) drop(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		c.Close()
		delete(l.conns, c)
	}
}

func (l *link) setCut(cut bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	l.mended.Broadcast()
	return nil
}

// reset closes every connection.
func (l *link) reset() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		c.Close()
	}
	return nil
}

func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	l.mended.Broadcast()
	for _, listener := range l.listeners {
		listener.Close()
	}
	for c := range l.conns {
		c.Close()
	}
	l.mu.Unlock()
	l.running.Wait()
}
