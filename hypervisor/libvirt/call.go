//go:build linux && libvirt_dlopen

package libvirt

import (
	"context"
	"errors"
	"sync"
	"time"

	"libvirt.org/go/libvirt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/internal/conn"
	"github.com/godwit-vm/godwit/internal/backend"
)

// A call is a call that asks libvirt to migrate, which returns when the migration
// has ended. libvirt goes on when the call is lost.
type call struct {
	mu   sync.Mutex
	done bool
	err  error
}

func (c *call) finish(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done, c.err = true, err
}

// state says what has become of the call. An error that comes from the far end's
// hypervisor is its word; one of a connection says nothing about the VM.
func (c *call) state() libvirtCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.done {
		return calling
	}
	if c.err == nil {
		return callSucceeded
	}
	var e libvirt.Error
	if !errors.As(c.err, &e) || e.Domain == libvirt.FROM_RPC || e.Domain == libvirt.FROM_REMOTE ||
		e.Code == libvirt.ERR_SYSTEM_ERROR ||
		e.Code == libvirt.ERR_INTERNAL_ERROR && e.Domain != libvirt.FROM_QEMU {
		return callBroken
	}
	return callRefused
}

// answer says what has become of the domain's call.
func (d *domain) answer() libvirtCall {
	d.mu.Lock()
	c := d.call
	d.mu.Unlock()
	if c == nil {
		return callNone
	}
	return c.state()
}

// Begin asks libvirt to migrate. The caller holds the domain's lock; the worker
// acts on the result when the call has returned.
func (d *domain) Begin(ctx context.Context, ask func(*conn.Connect, *libvirt.Domain) error) error {
	c := &call{}
	d.mu.Lock()
	d.call, d.stats, d.sent, d.stood, d.flow = c, nil, 0, false, flow{}
	d.stoodAt, d.blind, d.last, d.told = time.Time{}, false, observation{}, false
	d.mu.Unlock()
	err := d.Node.Conn.Begin(ctx, func(conn *conn.Connect) error {
		dom, err := conn.LookupDomainByName(d.Name)
		if err != nil {
			return err
		}
		defer func() { _ = dom.Free() }()
		return ask(conn, dom)
	}, func(err error) {
		c.finish(err)
		d.Trigger()
	})
	if err != nil {
		c.finish(err)
	}
	return err
}

// Why returns what the last call answered, for people; "" is nothing.
func (d *domain) Why() string {
	d.mu.Lock()
	c := d.call
	d.mu.Unlock()
	if c == nil {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		return ""
	}
	return backend.ErrorText(c.err)
}

// Forget lets go of the last call: what came of it is noted.
func (d *domain) Forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.call = nil
}

// need answers Unsupported when an ability is wanted that the host does not have.
func need(has, want hypervisor.Abilities) error {
	if missing := want &^ has; missing != 0 {
		return backend.Errorf(hypervisor.Unsupported, "this host lacks %v", missing.Names())
	}
	return nil
}
