package boltstore

import (
	"net"
	"sync"
)

// The limits of what the users of a machine take from a server at its socket. Admins have none: one of them ends the
// server when it likes.
const (
	perUser      = perName // connections of a user
	perStranger  = 4       // of one without a role, who is told so
	allStrangers = 64      // and of all of them
)

// A userListener accepts the connections of users with roles, and as many as each may have.
type userListener struct {
	net.Listener
	access Access

	mu               sync.Mutex
	users, strangers counts
}

// limitUsers returns a listener that keeps to the limits, if its peers have roles by the kernel's word.
func limitUsers(l net.Listener, access Access) net.Listener {
	if access.Certified != nil || !access.Open() {
		return l
	}
	return &userListener{Listener: l, access: access, users: counts{}, strangers: counts{}}
}

// Accept implements net.Listener. A connection that is one too many is closed.
func (l *userListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if taken := l.take(c); taken != nil {
			return taken, nil
		}
		_ = c.Close()
	}
}

// take counts a connection; nil is that it is one too many.
func (l *userListener) take(c net.Conn) net.Conn {
	p := PeerOf(c)
	of, most, all := l.users, perUser, 1<<20
	switch l.access.role(p) {
	case Admin:
		return c
	case NoRole:
		of, most, all = l.strangers, perStranger, allStrangers
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !of.add(p.who(), most, all) {
		return nil
	}
	return &userConn{c, p, sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		of.drop(p.who())
	})}
}

// userConn is a connection that is counted.
type userConn struct {
	net.Conn
	peer Peer
	done func()
}

// Close implements net.Conn.
func (c *userConn) Close() error {
	c.done()
	return c.Conn.Close()
}
