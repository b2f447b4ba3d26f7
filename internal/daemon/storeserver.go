package daemon

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/internal/pki"
	"github.com/godwit-vm/godwit/store"
)

// A StoreServer serves a store over a network, with the rights of agents and people.
type StoreServer struct {
	// Address is where: see Listen. Default: nowhere.
	Address string
	Files   pki.Dir
	Access  boltstore.Access
	Log     *slog.Logger
}

// Serve serves a store while run runs, whatever keeps its records. It ends when run does, or when no
// client can be answered any more.
func (s StoreServer) Serve(ctx context.Context, records store.Store, run func(context.Context) error) error {
	if s.Address == "" {
		return run(ctx)
	}
	if gate, gated := records.(*Gate); gated { // each client shows what it has seen itself
		records = gate.beyond()
	}
	raw, err := listen(s.Address, "the store")
	if err != nil {
		return err
	}
	l, err := boltstore.ListenTLS(raw, s.Files, s.refused())
	if err != nil {
		return errors.Join(err, raw.Close())
	}
	s.Log.Info("serves the store over TLS", "listens", l.Addr().String())
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	running, end := context.WithCancel(ctx)
	defer end()
	served := make(chan error, 1)
	go func() {
		served <- boltstore.ServeTo(serving, records, l, s.Access)
		end()
	}()
	err = run(running)
	stop()
	return errors.Join(err, <-served)
}

// refused logs a failed TLS handshake, once a second at most.
func (s StoreServer) refused() func(address string, why error) {
	var mu sync.Mutex
	var last time.Time
	return func(address string, why error) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(last) < time.Second {
			return
		}
		last = time.Now()
		s.Log.Warn("refuses a client of the store", "address", address, "why", why)
	}
}
