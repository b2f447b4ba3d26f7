package boltstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/internal/pki"
)

// The limits of what one side of a network takes from the other.
const (
	shake    = 10 * time.Second       // how long a handshake may take
	strange  = 256                    // connections whose handshake is under way, of all addresses
	perPlace = 32                     // and of one
	perName  = 32                     // connections of the holder of a certificate
	breath   = 100 * time.Millisecond // after a connection that could not be taken
)

// lives is how long a connection serves: then the peer shows its certificate again.
var lives = time.Minute

// protocol is what both sides say in their handshake (ALPN), so that neither takes another service
// with certificates of the same authority for a store.
const protocol = "godwit-store"

// ListenTLS listens for peers that show a certificate of the same authority, and closes the listener
// with its own. The files are read for each handshake: they are renewed in place. The connections that
// it accepts have done their handshake; a peer that is slow, or has too many connections, keeps no other
// waiting. They are served with [ServeTo] and Access.Certified. refused is told why a peer was refused
// before it could ask for anything; nil: nothing is.
func ListenTLS(raw net.Listener, files pki.Dir, refused func(address string, why error)) (net.Listener, error) {
	if _, err := files.Server(); err != nil {
		return nil, fmt.Errorf("the certificates to serve the store with: %w", err)
	}
	if refused == nil {
		refused = func(string, error) {}
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &tlsListener{Listener: raw, files: files, refused: refused, ready: make(chan *certified), ctx: ctx,
		stop: stop, places: counts{}, names: counts{}}
	l.group.Go(l.accept)
	return l, nil
}

// A tlsListener shakes hands before others see a connection.
type tlsListener struct {
	net.Listener
	files   pki.Dir
	refused func(address string, why error)
	ready   chan *certified
	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	group   sync.WaitGroup

	mu     sync.Mutex
	places counts // handshakes under way, by address
	names  counts // connections, by name
}

// counts says how many there are of each; of what is not there, none.
type counts map[string]int

// add adds one, unless there are as many already as may be, of this or of all.
func (c counts) add(what string, most, all int) bool {
	n := 0
	for _, k := range c {
		n += k
	}
	if c[what] >= most || n >= all {
		return false
	}
	c[what]++
	return true
}

func (c counts) drop(what string) {
	if c[what]--; c[what] <= 0 {
		delete(c, what)
	}
}

// certified is a connection of a peer that has shown its certificate.
type certified struct {
	*tls.Conn
	peer Peer
	done func()
}

// Close implements net.Conn.
func (c *certified) Close() error {
	c.done()
	return c.Conn.Close()
}

// accept takes connections until the listener is closed.
func (l *tlsListener) accept() {
	for {
		c, err := l.Listener.Accept()
		switch {
		case l.ctx.Err() != nil:
			if err == nil {
				_ = c.Close()
			}
			return
		case err != nil: // no file is left for it: others close theirs
			select {
			case <-l.ctx.Done():
			case <-time.After(breath):
			}
			continue
		}
		place, _, _ := net.SplitHostPort(c.RemoteAddr().String())
		l.mu.Lock()
		room := l.places.add(place, perPlace, strange)
		l.mu.Unlock()
		if !room {
			_ = c.Close()
			continue
		}
		l.group.Go(func() { l.meet(c, place) })
	}
}

// meet shakes hands with a peer, and passes it on.
func (l *tlsListener) meet(raw net.Conn, place string) {
	c, err := l.shakeHands(raw)
	l.mu.Lock()
	l.places.drop(place)
	if err == nil && !l.names.add(c.peer.Name, perName, 1<<20) {
		err = fmt.Errorf("%v has %d connections already", c.peer, perName)
	} else if err == nil {
		c.done = sync.OnceFunc(func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.names.drop(c.peer.Name)
		})
	}
	l.mu.Unlock()
	if err != nil {
		_ = raw.Close()
		if l.ctx.Err() != nil {
			return
		}
		l.refused(raw.RemoteAddr().String(), err)
		return
	}
	select {
	case l.ready <- c:
	case <-l.ctx.Done():
		_ = c.Close()
	}
}

// shakeHands identifies a peer.
func (l *tlsListener) shakeHands(raw net.Conn) (*certified, error) {
	ctx, cancel := context.WithTimeout(l.ctx, shake)
	defer cancel()
	config, err := l.files.Server()
	if err != nil {
		return nil, err
	}
	config.NextProtos = []string{protocol}
	c := tls.Server(raw, config)
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	state := c.ConnectionState()
	if state.NegotiatedProtocol != protocol {
		return nil, errors.New("it is no client of a store")
	}
	p := Peer{Address: raw.RemoteAddr().String(), since: time.Now()}
	p.Name, p.Agent = pki.Holder(state.PeerCertificates[0])
	return &certified{Conn: c, peer: p}, nil
}

// Accept implements net.Listener.
func (l *tlsListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *tlsListener) Close() error {
	l.stop()
	err := l.Listener.Close()
	l.group.Wait()
	return err
}
