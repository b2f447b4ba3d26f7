//go:build linux

package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A HeartbeatListener listens to the heartbeats of one VM, from all the processes that run
// it in turn: before a migration it is connected to the source and the target.
// Its methods are safe for concurrent use.
//
// One goroutine reads all the sockets, with epoll, which reports them in the
// order in which they became readable: what two processes send is never seen in
// the wrong order, however busy the machine is. A goroutine for each socket
// could not promise that, and a guest that ran twice for a moment could not be
// told from a late reader.
type HeartbeatListener struct {
	poll   int
	wake   int // an eventfd that ends the goroutine
	done   chan struct{}
	closed sync.Once

	mu     sync.Mutex
	ledger ledger
	feeds  map[int32]string // by socket
	ended  bool
}

// pollBatch is how many sockets are read for each look at epoll.
const pollBatch = 8

// connectPause is how long a socket that is not there yet is left alone.
const connectPause = 2 * time.Millisecond

// ErrClosed says that a HeartbeatListener was closed.
var ErrClosed = errors.New("guest: the listener is closed")

// NewHeartbeatListener returns a HeartbeatListener that listens to nothing yet. It fails when the system
// is out of files. Close ends its goroutine.
func NewHeartbeatListener() (*HeartbeatListener, error) {
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("guest: make a listener: %w", os.NewSyscallError("epoll_create1", err))
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(poll)
		return nil, fmt.Errorf("guest: make a listener: %w", os.NewSyscallError("eventfd", err))
	}
	p := &HeartbeatListener{poll: poll, wake: wake, done: make(chan struct{}), feeds: map[int32]string{}}
	if err := p.add(wake); err != nil {
		unix.Close(wake)
		unix.Close(poll)
		return nil, err
	}
	go p.listen()
	return p, nil
}

// Connect begins to listen to the process at a Unix socket that QEMU makes. It
// waits until the socket is there or the context ends. The process's name is
// the caller's choice and must be another for each process: a process that
// beats again after another has is an error (see HeartbeatLog.Returns).
func (p *HeartbeatListener) Connect(ctx context.Context, process, path string) error {
	for {
		err := p.connect(process, path)
		if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ECONNREFUSED) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", err, context.Cause(ctx))
		case <-time.After(connectPause):
		}
	}
}

func (p *HeartbeatListener) connect(process, path string) error {
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("guest: listen to %s: %w", process, os.NewSyscallError("socket", err))
	}
	if err := unix.Connect(socket, &unix.SockaddrUnix{Name: path}); err != nil {
		unix.Close(socket)
		return fmt.Errorf("guest: listen to %s at %s: %w", process, path,
			os.NewSyscallError("connect", err))
	}
	if err := unix.SetNonblock(socket, true); err != nil {
		unix.Close(socket)
		return fmt.Errorf("guest: listen to %s: %w", process, os.NewSyscallError("fcntl", err))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err = ErrClosed; !p.ended {
		p.feeds[int32(socket)] = process
		if err = p.add(socket); err == nil {
			return nil
		}
		delete(p.feeds, int32(socket))
	}
	unix.Close(socket)
	return err
}

// add watches a file for arrivals, not for being readable: a socket that is read
// empty then leaves epoll's queue, and comes in anew behind the others.
func (p *HeartbeatListener) add(file int) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(file)}
	if err := unix.EpollCtl(p.poll, unix.EPOLL_CTL_ADD, file, &event); err != nil {
		return fmt.Errorf("guest: listen: %w", os.NewSyscallError("epoll_ctl", err))
	}
	return nil
}

// listen is the goroutine. It ends when Close wakes it.
func (p *HeartbeatListener) listen() {
	defer close(p.done)
	var buf [4096]byte
	var events [pollBatch]unix.EpollEvent
	for {
		n, err := unix.EpollWait(p.poll, events[:], -1)
		at := time.Now()
		if err != nil && !errors.Is(err, unix.EINTR) {
			return // only a programming error; Wait then ends with its context
		}
		for _, e := range events[:max(n, 0)] {
			if int(e.Fd) == p.wake {
				return
			}
			p.read(int(e.Fd), at, buf[:])
		}
	}
}

// read takes all that a socket has; at its end it is forgotten.
func (p *HeartbeatListener) read(socket int, at time.Time, buf []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	process := p.feeds[int32(socket)]
	for {
		n, err := unix.Read(socket, buf)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return
		case n <= 0:
			delete(p.feeds, int32(socket))
			unix.Close(socket)
			return
		}
		for _, code := range buf[:n] {
			p.ledger.hear(process, at, code)
		}
	}
}

// Log returns what has been heard so far.
func (p *HeartbeatListener) Log() HeartbeatLog {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.ledger.now
	r.Troubles = slices.Clone(r.Troubles)
	return r
}

// Anew says that the guest is about to be started anew, not moved, by a process whose name begins
// so and that was not heard before. Its heartbeats need not go on where the last process ended,
// and it may be heard late; that an earlier process beats again after it is still an error. An
// empty name takes it back.
func (p *HeartbeatListener) Anew(process string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ledger.renew(process)
}

// Mark forgets the largest gap: the next HeartbeatLog tells the largest that ended
// after now. A gap that is open now counts from where it began.
func (p *HeartbeatListener) Mark() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ledger.now.Gap = Gap{}
}

// Wait returns when until holds, looking every two milliseconds, or with an
// error when the context ends.
func (p *HeartbeatListener) Wait(ctx context.Context, until func(HeartbeatLog) bool) error {
	tick := time.NewTicker(connectPause)
	defer tick.Stop()
	for {
		r := p.Log()
		if until(r) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("guest: wait for its heartbeats after %d boots and %d heartbeats: %w",
				r.Boots, r.Beats, context.Cause(ctx))
		case <-p.done:
			return ErrClosed
		case <-tick.C:
		}
	}
}

// Close stops listening and ends the goroutine. It may be repeated. What was
// heard stays readable.
func (p *HeartbeatListener) Close() error {
	p.closed.Do(func() {
		p.mu.Lock()
		p.ended = true
		p.mu.Unlock()
		// An eventfd takes a number of eight bytes; any but zero wakes.
		_, err := unix.Write(p.wake, []byte{1, 0, 0, 0, 0, 0, 0, 1})
		if err == nil {
			<-p.done
		}
		for socket := range p.feeds {
			unix.Close(int(socket))
		}
		unix.Close(p.wake)
		unix.Close(p.poll)
	})
	return nil
}
