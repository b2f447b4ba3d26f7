package stores

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/godwit-vm/godwit/record"
	"github.com/godwit-vm/godwit/record/bolt"
	"github.com/godwit-vm/godwit/record/remote"
)

// Serve opens the file of a store, for its one controller, serves it to agents and operators
// at a socket ("" is the URL's), and lets run use it. It ends when run does, or when nobody
// can be answered any more. What was seen of the store is remembered in PATH.seen; a file that
// was set back is recognised before anybody is answered.
func Serve(ctx context.Context, u URL, socket string,
	run func(context.Context, Store) error) error {
	if socket == "" {
		socket = u.Socket()
	}
	store, err := bolt.Open(u.Path)
	if err != nil {
		return err
	}
	gate, err := own(ctx, store, u.Path+".seen")
	if err != nil {
		return errors.Join(err, store.Close())
	}
	l, err := remote.Listen(socket)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	running, end := context.WithCancel(ctx)
	defer end()
	served := make(chan error, 1)
	go func() {
		served <- remote.Serve(serving, store, l)
		end()
	}()
	err = run(running, gate)
	stop()
	return errors.Join(err, <-served, gate.Close(), store.Close())
}

// own is Remember for who serves a file, and before anybody is answered.
func own(ctx context.Context, store record.Historian, path string) (*Gate, error) {
	g := &Gate{store: store, path: path, who: "controller"}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		c, err := store.Changes(ctx, record.Everything, 0)
		if err != nil {
			return nil, err
		}
		g.unmarked = slices.ContainsFunc(c.Records, func(r record.Record) bool {
			return r.Key().Kind == record.HostKind
		})
	}
	return g.open(ctx)
}

// closing is a client that has nothing to close.
type closing struct{ *remote.Client }

// Close closes nothing: the client keeps no connection that it needs.
func (closing) Close() error { return nil }

// dial finds the controller that serves a file, and asks it something.
func dial(ctx context.Context, u URL) (Store, error) {
	c, err := remote.Dial(u.Socket())
	if err != nil {
		return nil, err
	}
	if _, err := c.Get(ctx, record.Key{Kind: record.LeaderKind, Name: "cluster"}); err != nil {
		return nil, absent(u, err)
	}
	return closing{c}, nil
}
