package boltstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/godwit-vm/godwit/internal/pki"
)

const (
	// reach is how long one server of several may take to shake hands.
	reach = 4 * time.Second
	// AnswerTimeout is how long a server may take to answer, from when there is a connection to it. An agent whose
	// heartbeats are not stored for 15 s begins anew: what remains of that after a server that was lost between
	// two of them is enough to ask the next one. It is longer than a store behind the server may take: see
	// etcdstore.Config.Timeout.
	AnswerTimeout = 6 * time.Second
	// lingers is for how long a wait stays with one server, which may be gone without a word.
	lingers = 30 * time.Second
	// kept is how long a connection is kept for the next call: a handshake costs much more than a call. A
	// server keeps it longer, and ends it itself only with an answer: see lives.
	kept = 10 * time.Second
)

// muchTimeout is how long a server may take when there is much to read or to write. When the answer may be long, it
// is from one part of it to the next. A server waits for nothing then but for the store behind it.
var muchTimeout = 15 * time.Second

// places are the addresses of servers of one store, and which of them is asked first.
type places struct {
	all   []string
	first atomic.Uint32
}

// turn asks the next server first from now on.
func (c *Client) turn() {
	if c.places != nil {
		c.places.first.Add(1)
		c.http.CloseIdleConnections()
	}
}

// DialTLS makes a client of the controllers that serve a store at addresses ("host:port"), with the
// files of a host or a person: no server needs to be there yet. It asks one, and the next one when that
// is gone. The error says that the files cannot be used; they are read again for each connection.
func DialTLS(addresses []string, files pki.Dir) (*Client, error) {
	if _, err := files.Client(""); err != nil {
		return nil, fmt.Errorf("the certificates to show to a controller: %w", err)
	}
	p := &places{all: addresses}
	return &Client{path: strings.Join(addresses, ","), places: p, remote: true, waiting: lingers,
		http: &http.Client{Transport: &http.Transport{IdleConnTimeout: kept, MaxIdleConnsPerHost: 4,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return p.dial(ctx, files) },
		}}}, nil
}

// dial connects to the first server that there is.
func (p *places) dial(ctx context.Context, files pki.Dir) (net.Conn, error) {
	var errs []error
	first := p.first.Load()
	for i := range p.all {
		c, err := dialOne(ctx, p.all[(int(first)+i)%len(p.all)], files)
		if err == nil {
			p.first.CompareAndSwap(first, first+uint32(i))
			return c, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

func dialOne(ctx context.Context, address string, files pki.Dir) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	config, err := files.Client(name)
	if err != nil {
		return nil, err
	}
	config.NextProtos = []string{protocol}
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	c := tls.Client(raw, config)
	if err = c.HandshakeContext(ctx); err == nil && c.ConnectionState().NegotiatedProtocol != protocol {
		err = errors.New("it serves no store of godwit")
	}
	if err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return c, nil
}
