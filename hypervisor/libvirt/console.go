//go:build linux && libvirt_dlopen

package libvirt

import (
	"context"
	"net"

	"libvirt.org/go/libvirt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt/internal/conn"
	"github.com/godwit-vm/godwit/internal/backend"
	"github.com/godwit-vm/godwit/internal/domxml"
)

var _ hypervisor.Consoler = (*Host)(nil)

// Console opens the first serial port by a stream of libvirt, on a connection of its own. libvirt opens
// ports that are a pseudo-terminal or a socket.
// Source: libvirt v9.0.0 src/qemu/qemu_driver.c (qemuDomainOpenConsole).
func (h *Host) Console(ctx context.Context, vm hypervisor.VMID) (hypervisor.Console, error) {
	c, err := h.console(ctx, vm)
	return c, h.node.Explain("Console", vm, err)
}

func (h *Host) console(ctx context.Context, vm hypervisor.VMID) (hypervisor.Console, error) {
	d, err := h.Domain(ctx, vm)
	if err == nil {
		err = backend.HasConsole(d.State)
	}
	if err != nil {
		return nil, err
	}
	name, err := domxml.NameOf(h.node.Namespace, vm)
	if err != nil {
		return nil, backend.Errorf(hypervisor.NotFound, "%w", err)
	}
	if err := h.consoles.Take(vm); err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	opened := make(chan error, 2) // fn may be called twice
	begun := h.node.Conn.Begin(ctx, func(c *conn.Connect) error {
		return carry(h.node.Life, c, name, far, func() { opened <- nil })
	}, func(err error) {
		_ = far.Close()
		h.consoles.Leave(vm)
		opened <- err
	})
	if begun != nil {
		h.consoles.Leave(vm)
		return nil, begun
	}
	select {
	case err = <-opened:
	case <-ctx.Done():
		err = backend.Errorf(hypervisor.Transient, "%w", ctx.Err())
	}
	if err != nil {
		_ = near.Close()
		return nil, err
	}
	return near, nil
}

// carry opens the console of a domain, says so, and carries its bytes until one end closes.
func carry(life context.Context, c *conn.Connect, name string, far net.Conn, opened func()) error {
	dom, err := c.LookupDomainByName(name)
	if err != nil {
		return err
	}
	defer func() { _ = dom.Free() }()
	stream, err := c.NewStream(libvirt.STREAM_NONBLOCK)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Free() }()
	if err := dom.OpenConsole("", stream, 0); err != nil {
		if e, is := err.(libvirt.Error); is && e.Code == libvirt.ERR_OPERATION_FAILED { // of this call only
			return backend.Errorf(hypervisor.Conflict, "%s", e.Message)
		} else if is && e.Code == libvirt.ERR_INTERNAL_ERROR {
			return backend.Errorf(hypervisor.Unsupported, "%s: start it anew: since then it has a console",
				e.Message)
		}
		return err
	}
	ready := make(chan struct{}, 1)
	err = stream.EventAddCallback(libvirt.STREAM_EVENT_READABLE|libvirt.STREAM_EVENT_ERROR|
		libvirt.STREAM_EVENT_HANGUP, func(*libvirt.Stream, libvirt.StreamEventType) {
		select {
		case ready <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return err
	}
	opened()
	ctx, end := context.WithCancel(life)
	defer end()
	s := &session{stream: stream, far: far, ready: ready, typed: make(chan []byte)}
	go s.listen(ctx, end)
	err = s.run(ctx)
	_ = stream.EventRemoveCallback()
	_ = stream.Abort()
	return err
}

// A session is a console that is open.
type session struct {
	stream *libvirt.Stream
	far    net.Conn
	ready  chan struct{} // the stream may have something
	typed  chan []byte
}

// listen takes what is typed until the other end is closed.
func (s *session) listen(ctx context.Context, end func()) {
	defer end()
	for {
		buf := make([]byte, 1024)
		n, err := s.far.Read(buf)
		if err != nil {
			return
		}
		select {
		case s.typed <- buf[:n]:
		case <-ctx.Done():
			return
		}
	}
}

// wouldBlock says that a call of a stream would have to wait. Source: virStreamRecv, virStreamSend.
const wouldBlock = -2

// run carries bytes until the stream or the other end is closed.
func (s *session) run(ctx context.Context) error {
	defer s.far.Close()
	buf, typed := make([]byte, 4096), []byte(nil)
	for {
		n, err := s.stream.Recv(buf)
		if err != nil { // it has stopped, or left
			return nil
		}
		if n > 0 {
			if _, err := s.far.Write(buf[:n]); err != nil {
				return nil
			}
			continue
		}
		for len(typed) > 0 {
			n, err := s.stream.Send(typed)
			if err != nil {
				return nil
			}
			if n == wouldBlock { // libvirtd takes it when it can; what the guest writes is read meanwhile
				break
			}
			typed = typed[n:]
		}
		more := s.typed
		if len(typed) > 0 {
			more = nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.ready:
		case typed = <-more:
		}
	}
}
