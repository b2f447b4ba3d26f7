//go:build linux && libvirt_dlopen

package conn

import (
	"context"

	"libvirt.org/go/libvirt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// Look runs fn, which must change nothing, on the live connection. It answers within
// the context and Config.Timeout. What could not be asked, or was not answered, is
// Transient.
//
// fn may go on after Look has given up on it: it must not write to what its caller
// reads after an error. [Ask] takes care of that.
func (c *Conn) Look(ctx context.Context, fn func(*Connect) error) error {
	return observing(c.call(ctx, fn))
}

// Act runs fn on the live connection like [Conn.Look]. What was not begun is
// Transient; what has, or may have, begun and has no outcome is Unknown. fn must be
// safe to repeat: the binding may lose a race while it loads a function of libvirt,
// and fn is then called a second time.
func (c *Conn) Act(ctx context.Context, fn func(*Connect) error) error {
	return c.call(ctx, fn)
}

// Ask is [Conn.Look] for a function that answers something.
func Ask[T any](ctx context.Context, c *Conn, fn func(*Connect) (T, error)) (T, error) {
	answer := make(chan T, 2) // fn may be called twice
	err := c.Look(ctx, func(conn *Connect) error {
		t, err := fn(conn)
		if err == nil {
			answer <- t
		}
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return <-answer, nil
}

// call runs fn in a goroutine of its own, and waits for it as long as it may.
func (c *Conn) call(ctx context.Context, fn func(*Connect) error) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	l, err := c.lanes.take(ctx)
	if err != nil {
		return within("not asked", err)
	}
	outcome := make(chan error, 1)
	go func() {
		err := l.run(fn)
		c.lanes.put(l)
		outcome <- err
	}()
	select {
	case err := <-outcome:
		return err
	case <-ctx.Done():
		return backend.Errorf(hypervisor.Unknown, "%w: does libvirtd hang?", context.Cause(ctx))
	}
}

// run calls fn, and makes of what libvirt answers an error of ours.
func (l *link) run(fn func(*Connect) error) error {
	err := fn(l.conn)
	if notCalled(err) {
		err = fn(l.conn)
	}
	if err == nil {
		return nil
	}
	err = classify("", err)
	if backend.KindOf(err) == hypervisor.Unknown {
		l.inspect(err)
	}
	return err
}

// notCalled reports whether the binding may have failed to find a function in libvirt.so,
// and so called nothing. Two callers that need the same function for the first time at
// the same moment can make it say so though the function is there. libvirtd uses the same
// numbers where a program that it runs has failed, such as qemu-img: they do not say what
// took effect.
func notCalled(err error) bool {
	e, ok := asLibvirt(err)
	return ok && e.Code == libvirt.ERR_INTERNAL_ERROR && e.Domain == libvirt.FROM_NONE
}

// Begin starts fn and returns; done is told the outcome, once, from another
// goroutine, with the kinds of [Conn.Act]. fn may last: it runs on a connection of
// its own, because libvirtd serves only five calls of one connection at a time.
// Keep-alive ends it when the daemon hangs, and Close does not.
//
// It waits for that connection within the context and Config.Timeout; an error says
// that fn was not begun and done will not be called.
func (c *Conn) Begin(ctx context.Context, fn func(*Connect) error, done func(error)) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	if c.closing.Err() != nil {
		return backend.Errorf(hypervisor.Transient, "not begun: %w", errClosed)
	}
	l, err := c.lanes.dial(ctx)
	if err != nil {
		return within("not begun", err)
	}
	c.begun.Add(1)
	go func() {
		err := l.run(fn)
		l.leave()
		c.begun.Add(-1)
		done(err)
	}()
	return nil
}
