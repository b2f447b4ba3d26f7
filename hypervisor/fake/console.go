package fake

import (
	"context"
	"io"
	"net"
	"sync"

	"github.com/godwit-vm/godwit/hypervisor"
)

var _ hypervisor.Consoler = (*Host)(nil)

// Console opens the console of a VM, whose guest echoes what is typed.
func (h *Host) Console(ctx context.Context, vm hypervisor.VMID) (hypervisor.Console, error) {
	h.network.mu.Lock()
	defer h.network.mu.Unlock()
	if err := h.ask(ctx, "Console", vm); err != nil {
		return nil, err
	}
	var err error
	switch d := h.peek(vm); {
	case d == nil:
		err = refuse(hypervisor.NotFound, "no such VM")
	case d.State != hypervisor.Running && d.State != hypervisor.Paused:
		err = d.conflict()
	case h.consoles[vm] != nil:
		err = refuse(hypervisor.Conflict, "its console is open")
	}
	if err != nil {
		return nil, h.explain("Console", vm, err)
	}
	near, far := net.Pipe()
	c := &console{Conn: near, far: far, host: h, vm: vm}
	if h.consoles == nil {
		h.consoles = map[hypervisor.VMID]*console{}
	}
	h.consoles[vm] = c
	go func() {
		_, _ = io.Copy(far, far)
		_ = far.Close()
	}()
	return c, nil
}

// A console is one end of a pipe, at the other end of which a guest echoes.
type console struct {
	net.Conn
	far  net.Conn
	host *Host
	vm   hypervisor.VMID
	once sync.Once
}

// Close lets another one be opened.
func (c *console) Close() error {
	c.once.Do(func() {
		c.host.network.mu.Lock()
		defer c.host.network.mu.Unlock()
		if c.host.consoles[c.vm] == c {
			delete(c.host.consoles, c.vm)
		}
	})
	_ = c.far.Close()
	return c.Conn.Close()
}

// hangUp ends the console of a VM that does not execute on the host any more. The caller has the
// network's lock.
func (h *Host) hangUp(vm hypervisor.VMID) {
	if c := h.consoles[vm]; c != nil {
		delete(h.consoles, vm)
		_ = c.far.Close()
	}
}
