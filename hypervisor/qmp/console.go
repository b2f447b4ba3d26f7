//go:build linux

package qmp

import (
	"context"
	"net"
	"sync"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/qemu"
)

var _ hypervisor.Consoler = (*Host)(nil)

// Console opens the socket of the first serial port. QEMU serves one client at a time and lets the next
// one wait without a word: this process knows whether the console is open.
func (h *Host) Console(ctx context.Context, vm hypervisor.VMID) (hypervisor.Console, error) {
	c, err := h.console(ctx, vm)
	if err != nil {
		return nil, h.node.Explain("Console", vm, err)
	}
	return c, nil
}

func (h *Host) console(ctx context.Context, vm hypervisor.VMID) (*console, error) {
	d, err := h.Domain(ctx, vm)
	if err == nil {
		err = backend.HasConsole(d.State)
	}
	if err == nil {
		err = h.consoles.Take(vm)
	}
	if err != nil {
		return nil, err
	}
	c := &console{leave: sync.OnceFunc(func() { h.consoles.Leave(vm) })}
	c.Conn, err = new(net.Dialer).DialContext(ctx, "unix", h.Files(vm).Console)
	if err != nil {
		c.leave()
		return nil, qemu.Refuse(hypervisor.Transient, "%v", err)
	}
	context.AfterFunc(h.node.Life, func() { _ = c.Close() })
	return c, nil
}

// A console is the open console of a VM.
type console struct {
	net.Conn
	leave func()
}

// Close lets another one be opened.
func (c *console) Close() error {
	err := c.Conn.Close()
	c.leave()
	return err
}
