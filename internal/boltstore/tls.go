package boltstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/internal/pki"
)

// The limits of what one side of a network takes from the other.
const (
	shake    = 10 * time.Second       // how long a handshake may take
	strange  = 256                    // handshakes that are under way; another one ends the oldest
	perPlace = 32                     // and of one address: see placeOf
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
		stop: stop, names: counts{}}
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

	mu      sync.Mutex
	shaking []*handshake // under way, the oldest first
	names   counts       // connections, by name
}

// A handshake is under way.
type handshake struct {
	place string
	ctx   context.Context
	end   context.CancelCauseFunc
}

// errOldest is why a handshake ends before its time.
var errOldest = fmt.Errorf("too many handshakes began after its own, %d from one place or %d, and it is not done", perPlace, strange)

// begin takes up a handshake. When there are too many from its place, or at all, the oldest of these ends: an honest
// peer needs some milliseconds, and one that is silent is not to keep it out.
func (l *tlsListener) begin(place string) *handshake {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, oldest := 0, 0
	for i, h := range slices.Backward(l.shaking) {
		if h.place == place {
			n, oldest = n+1, i
		}
	}
	switch {
	case n >= perPlace:
		l.give(oldest)
	case len(l.shaking) >= strange:
		l.give(0)
	}
	h := &handshake{place: place}
	h.ctx, h.end = context.WithCancelCause(l.ctx)
	l.shaking = append(l.shaking, h)
	return h
}

// give ends a handshake in favour of a new one; l.mu is held.
func (l *tlsListener) give(at int) {
	l.shaking[at].end(errOldest)
	l.shaking = slices.Delete(l.shaking, at, at+1)
}

// over says that a handshake has ended; l.mu is held.
func (l *tlsListener) over(h *handshake) {
	h.end(nil)
	l.shaking = slices.DeleteFunc(l.shaking, func(o *handshake) bool { return o == h })
}

// placeOf returns where an address is, of which only some handshakes may be under way: a host has an address of IPv4, and
// 2^64 of IPv6 as a rule. Source: RFC 7421, section 1.
func placeOf(a net.Addr) string {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return a.String()
	}
	ip := at.Addr().Unmap()
	if ip.Is4() {
		return ip.String()
	}
	network, err := ip.Prefix(64)
	if err != nil {
		return ip.String()
	}
	return network.String()
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
		h := l.begin(placeOf(c.RemoteAddr()))
		l.group.Go(func() { l.meet(c, h) })
	}
}

// meet shakes hands with a peer, and passes it on.
func (l *tlsListener) meet(raw net.Conn, h *handshake) {
	c, err := l.shakeHands(h.ctx, raw)
	if err != nil && errors.Is(context.Cause(h.ctx), errOldest) {
		err = errOldest
	}
	l.mu.Lock()
	l.over(h)
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
func (l *tlsListener) shakeHands(ctx context.Context, raw net.Conn) (*certified, error) {
	ctx, cancel := context.WithTimeout(ctx, shake)
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
