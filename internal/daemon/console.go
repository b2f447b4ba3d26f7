package daemon

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/internal/durable"
)

// ConsoleEscape is the key that ends a session: ^]. Source: telnet(1), virsh(1).
const ConsoleEscape = 0x1d

// hello is the first line of a client, and of the server's answer. Bytes of the console follow.
type hello struct {
	VM    hypervisor.VMID `json:"vm,omitempty"`
	Error string          `json:"error,omitempty"`
}

const (
	longestHello = 4096             // bytes of a hello
	helloTimeout = 20 * time.Second // for a hello
)

// ConsolePath returns where the agent of a host serves consoles: in a directory that only its user can enter.
// Locks is the directory of the agent's locks; "" is the usual one.
func ConsolePath(locks string, host hypervisor.HostName) string {
	if locks == "" {
		locks = durable.Runtime()
	}
	return filepath.Join(locks, "agents", durable.Name("host "+string(host)), "console.sock")
}

// ListenConsoles opens the socket at a path, whose directory is there. What a dead process left is removed: who
// calls it holds the host's lock.
func ListenConsoles(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen for consoles: %w", err)
	}
	return l, os.Chmod(path, 0o600)
}

// A ConsoleServer serves the consoles of a host.
type ConsoleServer struct {
	// Open opens the console of a VM.
	Open func(context.Context, hypervisor.VMID) (io.ReadWriteCloser, error)
	// Note is called when a console is opened or closed, with the user.
	Note func(hypervisor.VMID, string)
}

// Serve answers until ctx ends, and then closes all consoles.
func (s *ConsoleServer) Serve(ctx context.Context, l net.Listener) {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	for {
		c, err := l.Accept()
		if err != nil && ctx.Err() != nil {
			return
		}
		if err != nil { // as when no more files may be open
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		all.Go(func() { s.session(ctx, c) })
	}
}

// session serves one client.
func (s *ConsoleServer) session(ctx context.Context, c net.Conn) {
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	asked, rest, err := hear(c)
	if err != nil {
		_ = say(c, hello{Error: err.Error()})
		return
	}
	opening, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	con, err := s.Open(opening, asked.VM)
	if err != nil {
		_ = say(c, hello{Error: err.Error()})
		return
	}
	who := boltstore.PeerOf(c).String()
	s.Note(asked.VM, "console opened by "+who)
	defer s.Note(asked.VM, "console closed by "+who)
	defer con.Close()
	if say(c, hello{}) != nil {
		return
	}
	ended := make(chan struct{}, 2)
	carry := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from)
		ended <- struct{}{}
	}
	go carry(con, io.MultiReader(rest, c))
	go carry(c, con)
	<-ended
	_, _ = con.Close(), c.Close()
	<-ended
}

// hear reads a hello, and returns what was read beyond it.
func hear(c net.Conn) (h hello, rest io.Reader, err error) {
	if err := c.SetReadDeadline(time.Now().Add(helloTimeout)); err != nil {
		return h, nil, err
	}
	r := bufio.NewReaderSize(c, longestHello)
	line, err := r.ReadSlice('\n')
	if err == nil {
		err = json.Unmarshal(line, &h)
	}
	if err != nil {
		return h, nil, fmt.Errorf("read who it is: %w", err)
	}
	more, _ := r.Peek(r.Buffered())
	return h, bytes.NewReader(bytes.Clone(more)), c.SetReadDeadline(time.Time{})
}

func say(c net.Conn, h hello) error { return json.NewEncoder(c).Encode(h) }

// A ConsoleRefusedError is a console that the agent did not open.
type ConsoleRefusedError struct{ Why string }

// Error is the agent's reason.
func (e *ConsoleRefusedError) Error() string { return e.Why }

// DialConsole opens the console of a VM at the socket of its host's agent. The error is a *[ConsoleRefusedError] when
// the agent refuses.
func DialConsole(ctx context.Context, path string, vm hypervisor.VMID) (io.ReadWriteCloser, error) {
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err = say(c, hello{VM: vm}); err == nil {
		var answer hello
		var rest io.Reader
		if answer, rest, err = hear(c); err == nil && answer.Error == "" {
			return &consoleClient{io.MultiReader(rest, c), c}, nil
		}
		if err == nil {
			err = &ConsoleRefusedError{answer.Error}
		}
	}
	return nil, errors.Join(err, c.Close())
}

// consoleClient is an open console.
type consoleClient struct {
	io.Reader
	net.Conn
}

// Read reads what the guest writes.
func (c *consoleClient) Read(p []byte) (int, error) { return c.Reader.Read(p) }

// AttachConsole carries what is typed to a console, and what the guest writes to out, until [ConsoleEscape] is typed,
// in ends, or the console does. Escaped reports which: the user has ended it. It closes the console. A
// read of in may go on when it has returned.
func AttachConsole(c io.ReadWriteCloser, in io.Reader, out io.Writer) (escaped bool, err error) {
	typed := make(chan error, 1)
	go func() {
		typed <- typeTo(c, in)
		_ = c.Close()
	}()
	_, err = io.Copy(out, c)
	_ = c.Close()
	select {
	case <-typed:
		return true, nil
	default:
	}
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return false, err
	}
	return false, nil
}

// typeTo types what is read until the escape is.
func typeTo(c io.Writer, in io.Reader) error {
	buf := make([]byte, 1024)
	for {
		n, err := in.Read(buf)
		before, _, end := bytes.Cut(buf[:n], []byte{ConsoleEscape})
		if _, err := c.Write(before); err != nil {
			return err
		}
		if end || err != nil {
			return nil
		}
	}
}
