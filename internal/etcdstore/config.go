package etcdstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/godwit-vm/godwit/store"
)

// Config says where etcd is. A zero field takes the default that it names.
type Config struct {
	// Endpoints are members of the cluster: "host:2379" or "https://host:2379". At least
	// one is needed, and several for a store that outlives a member.
	Endpoints []string
	// Prefix is what all keys begin with. Default: "/godwit".
	Prefix string
	// CA is a file with the certificates that etcd's must be signed by. Default: those of
	// the system, when TLS is used at all.
	CA string
	// Cert and Key are files with this client's certificate and key, which are read again
	// for every connection. Default: none is shown.
	Cert, Key string
	// TLS is used instead of CA, Cert and Key. Default: no TLS, unless one of them is
	// given or an endpoint begins with "https:".
	TLS *tls.Config
	// DialTimeout is how long Open waits for an answer. Default: 5s.
	DialTimeout time.Duration
	// Timeout is how long one call waits, at most. Default: 5s.
	Timeout time.Duration
}

// complete returns c with the defaults filled in; the error says what contradicts what.
func (c Config) complete() (Config, error) {
	if len(c.Endpoints) == 0 {
		return c, errors.New("no endpoint is given")
	}
	if c.Prefix = strings.TrimRight(c.Prefix, "/"); c.Prefix == "" {
		c.Prefix = "/godwit"
	}
	if c.DialTimeout <= 0 {
		c.DialTimeout = 5 * time.Second
	}
	if c.Timeout <= 0 {
		c.Timeout = 5 * time.Second
	}
	files := c.CA != "" || c.Cert != "" || c.Key != ""
	if c.TLS != nil && files {
		return c, errors.New("both a TLS configuration and files for one are given: give one")
	}
	plain, secure := 0, 0
	for _, e := range c.Endpoints {
		switch scheme, _, _ := strings.Cut(e, "://"); scheme {
		case "http":
			plain++
		case "https":
			secure++
		}
	}
	if plain > 0 && (secure > 0 || files || c.TLS != nil) {
		return c, fmt.Errorf("endpoints %s: with TLS all of them are https, or have no scheme",
			strings.Join(c.Endpoints, ", "))
	}
	if c.TLS == nil && (files || secure > 0) {
		var err error
		c.TLS, err = c.fromFiles()
		return c, err
	}
	return c, nil
}

// Open connects to etcd, and returns when it has answered once. The error says what is
// wrong with the configuration, with TLS, or with etcd; it is a *[store.StoreError] of the
// kind Unavailable. [Store.Close] ends the connection.
func Open(ctx context.Context, config Config) (*Store, error) {
	failed := func(err error) (*Store, error) {
		return nil, &store.StoreError{Op: "Open", Kind: store.Unavailable, Err: err}
	}
	c, err := config.complete()
	if err != nil {
		return failed(err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.DialTimeout)
	defer cancel()
	if err := c.shakeHands(ctx); err != nil {
		return failed(err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: c.Endpoints, TLS: c.TLS,
		DialTimeout: c.DialTimeout, DialKeepAliveTime: 10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second, MaxCallSendMsgSize: math.MaxInt32,
		Logger:      zap.NewNop(), // the errors are returned
		DialOptions: []grpc.DialOption{grpc.WithStatsHandler(departures{})}})
	if err != nil {
		return failed(err)
	}
	s := &Store{client: client, keys: keys(c.Prefix), timeout: c.Timeout,
		known: known{size: generation}, page: page, feeds: map[store.Feed]*feed{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	for {
		if _, _, err = s.head(ctx, store.Everything); err == nil {
			return s, nil
		}
		if ctx.Err() != nil || !passing(err) {
			_ = s.Close() // the first error says more
			return failed(fmt.Errorf("etcd at %s: %w", strings.Join(c.Endpoints, ", "), err))
		}
	}
}
