package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/internal/pki"
	"github.com/godwit-vm/godwit/store"
)

// Serve opens the file of a store, for its one controller, serves it to agents and operators
// at a socket ("" is the URL's), and lets run use it. It ends when run does, or when no client
// can be answered any more. What was seen of the store is remembered in PATH.seen; a file that
// was set back is recognised before any client is answered.
// Access says who may do what at the socket.
func Serve(ctx context.Context, u URL, socket string, access boltstore.Access,
	run func(context.Context, Store) error) error {
	if socket == "" {
		socket = u.Socket()
	}
	store, err := boltstore.Open(u.Path)
	if err != nil {
		return err
	}
	gate, err := storesOwn(ctx, store, u.Path+".seen")
	if err != nil {
		return errors.Join(err, store.Close())
	}
	l, err := boltstore.ListenTo(socket, access)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	running, end := context.WithCancel(ctx)
	defer end()
	served := make(chan error, 1)
	go func() {
		served <- boltstore.ServeTo(serving, store, l, access)
		end()
	}()
	err = run(running, gate)
	stop()
	return errors.Join(err, <-served, gate.Close(), store.Close())
}

// storesOwn is Remember for a server of a file, before any client is answered.
func storesOwn(ctx context.Context, records store.Historian, path string) (*Gate, error) {
	g := &Gate{store: records, path: path, who: "controller"}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		c, err := records.Changes(ctx, store.Everything, 0)
		if err != nil {
			return nil, err
		}
		g.unmarked = slices.ContainsFunc(c.Records, func(r store.Record) bool {
			return r.Key().Kind == store.HostKind
		})
	}
	return g.open(ctx)
}

// dial finds a controller that serves a store, and asks it something.
func dial(ctx context.Context, u URL, files TLS) (Store, error) {
	c, err := reach(u, files)
	if err != nil {
		return nil, err
	}
	if _, err := c.Get(ctx, store.Key{Kind: store.LeaderKind, Name: "cluster"}); err != nil {
		return nil, errors.Join(absent(u, err), c.Close())
	}
	return c, nil
}

// reach makes a client of the controllers that serve a store.
func reach(u URL, files TLS) (*boltstore.Client, error) {
	if u.Kind != Served {
		return boltstore.Dial(u.Socket())
	}
	if files.Dir == "" {
		return nil, fmt.Errorf("the store %s: give --tls-dir DIR with ca-cert.pem, client-cert.pem and "+
			"client-key.pem: godwit pki issue makes them", u)
	}
	return boltstore.DialTLS(u.Endpoints, pki.Dir(files.Dir))
}
