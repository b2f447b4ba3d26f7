package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// A Registrar keeps what the store says about a host as its hypervisor says it. It writes
// the record's field Host, and takes back the Account of a time when the store was not believed.
type Registrar struct {
	Host       hypervisor.HostName
	Hypervisor hypervisor.Hypervisor
	Store      store.Store
}

const (
	registerEvery = time.Minute
	registerRetry = time.Second
)

// Reconcile looks once whether anything has changed, and stores that.
func (r *Registrar) Reconcile(ctx context.Context, now time.Time) (time.Time, error) {
	err := r.register(ctx)
	if err == nil {
		return now.Add(registerEvery), nil
	}
	if errors.Is(err, store.Stale) { // another process wrote another field of it
		err = nil
	}
	return now.Add(registerRetry), err
}

func (r *Registrar) register(ctx context.Context) error {
	host, err := r.Hypervisor.Host(ctx)
	if err != nil {
		return err
	}
	host.Name = r.Host
	stored, err := r.Store.Get(ctx, (&store.Host{Host: host}).Key())
	if err != nil {
		return err
	}
	next := store.Host{}
	if known, is := stored.(*store.Host); is {
		next = *known
	}
	if next.Version > 0 && next.Host == host && next.Account == nil {
		return nil
	}
	next.Host, next.Account = host, nil
	_, err = r.Store.Put(ctx, &next)
	return err
}
