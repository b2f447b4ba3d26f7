package qemu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// maxPending is how many commands of a kind wait for QEMU at once; the others
// wait here, where giving up on them surely has no effect. QEMU stops reading,
// out-of-band commands included, when it has eight in its queue.
// Source: QEMU 7.2 monitor/qmp.c (QMP_REQ_QUEUE_LEN_MAX, handle_qmp_command).
const maxPending = 7

// A link is one connection, from its greeting to its end.
type link struct {
	conn     net.Conn
	lines    *Reader
	greeting Greeting
	hub      *Hub

	inBand    semaphore
	outOfBand semaphore
	files     semaphore // QEMU keeps the files of one message only until the next
	writing   semaphore // one writer at a time

	ended   chan struct{} // closed when the connection is of no more use
	drained chan struct{} // closed when nothing of it runs any more

	mu      sync.Mutex
	lastID  uint64
	pending map[uint64]*call // a call that was given up stays until its reply
	err     error            // why it ended
}

// A call is a command that was, or is being, written.
type call struct {
	request request
	reply   chan Message // holds one, so that the reader never waits
}

// A semaphore bounds how many callers use something at once.
type semaphore chan struct{}

// acquire waits for a place, and not longer than ctx or the link last.
func (s semaphore) acquire(ctx context.Context, l *link) error {
	select {
	case s <- struct{}{}:
		return nil
	default:
	}
	select {
	case s <- struct{}{}:
		return nil
	case <-l.ended:
		return l.reason()
	case <-ctx.Done():
		return fmt.Errorf("earlier commands are still under way: %w", context.Cause(ctx))
	}
}

func (s semaphore) release() { <-s }

func newLink(conn net.Conn, maxLine int, h *Hub) *link {
	return &link{
		conn:      conn,
		lines:     NewReader(conn, maxLine),
		hub:       h,
		inBand:    make(semaphore, maxPending),
		outOfBand: make(semaphore, maxPending),
		files:     make(semaphore, 1),
		writing:   make(semaphore, 1),
		ended:     make(chan struct{}),
		drained:   make(chan struct{}),
		pending:   map[uint64]*call{},
	}
}

// noLink stands for a connection that there has never been.
func noLink() *link {
	l := newLink(nil, 0, nil)
	l.err = ErrNotConnected
	close(l.ended)
	close(l.drained)
	return l
}

// mostGreetings is how many clients may have left just before: their greetings may come before an answer.
const mostGreetings = 100

// greet reads the greeting and agrees on the capabilities. It returns the
// events that came in between; nothing else runs on the link yet.
func (l *link) greet(ctx context.Context) (early []Notice, err error) {
	defer l.interruptedBy(ctx, l.conn.SetDeadline)()
	line, err := l.nextLine()
	if err != nil {
		return nil, duringGreeting(ctx, err)
	}
	if l.greeting, err = ParseGreeting(line); err != nil {
		return nil, err
	}
	r := request{command: "qmp_capabilities"}
	if l.offers("oob") {
		r.arguments = json.RawMessage(`{"enable":["oob"]}`)
	}
	hello, err := r.encoded(l.lastID)
	if err != nil {
		return nil, err
	}
	if _, err := l.conn.Write(hello); err != nil {
		return nil, duringGreeting(ctx, fmt.Errorf("%w: %w", ErrLost, err))
	}
	greetings := 0
	for held := 0; held <= MaxQueued && len(early) <= defaultMaxEvents && greetings <= mostGreetings; {
		line, err := l.nextLine()
		if err != nil {
			return nil, duringGreeting(ctx, err)
		}
		if again, err := ParseGreeting(line); err == nil {
			// That of a client before us who left at once: QEMU sends it to the client that is connected then.
			l.greeting, greetings = again, greetings+1
			continue
		}
		m, err := Parse(line)
		if err != nil {
			return nil, err
		}
		if m.Event != "" {
			early = append(early, Notice{Event: eventIn(m)})
			held += len(m.Data)
			continue
		}
		if id, ok := m.Number(); (!ok || id != l.lastID) && m.Error == nil {
			return nil, Violation(line, "the answer to qmp_capabilities has another id")
		}
		_, err = r.result(m)
		return early, err
	}
	return nil, &ProtocolError{What: "lines without end before the answer to qmp_capabilities"}
}

// nextLine reads one line. Its error wraps ErrLost or is a *ProtocolError.
func (l *link) nextLine() ([]byte, error) {
	line, err := l.lines.Next()
	if _, spoken := errors.AsType[*ProtocolError](err); err != nil && !spoken {
		err = fmt.Errorf("%w: %w", ErrLost, err)
	}
	return line, err
}

// duringGreeting explains why there was none.
func duringGreeting(ctx context.Context, err error) error {
	if ctx.Err() == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return fmt.Errorf("QEMU sent no greeting, as when another client is connected, "+
		"or when it hangs: %w", context.Cause(ctx))
}

func (l *link) offers(capability string) bool {
	return slices.Contains(l.greeting.Capabilities, capability)
}

// interruptedBy makes ctx interrupt reads or writes of the connection, until
// the returned function is called.
func (l *link) interruptedBy(ctx context.Context, set func(time.Time) error) (undo func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		_ = set(time.Unix(1, 0)) // a connection that is gone needs no interruption
	})
	return func() {
		if !stop() {
			<-done
			_ = set(time.Time{})
		}
	}
}

// run reads until the connection ends, and then tells the listeners.
func (l *link) run() {
	defer close(l.drained)
	for {
		line, err := l.nextLine()
		if err == nil {
			err = l.handle(line)
		}
		if err != nil {
			l.fail(err)
			l.hub.Publish(Notice{Gap: Gap{Ended: l.reason()}})
			return
		}
	}
}

func (l *link) handle(line []byte) error {
	m, err := Parse(line)
	if err != nil {
		return err
	}
	if m.Event != "" {
		l.hub.Publish(Notice{Event: eventIn(m)})
		return nil
	}
	c := l.settle(m)
	if c == nil {
		return Violation(line, "a reply to no command that is under way")
	}
	c.reply <- m
	return nil
}

// settle finds the call that m answers, nil if there is none. QEMU answers a
// line that it cannot parse with an error without id: when only one command is
// under way, it can only be that one's.
func (l *link) settle(m Message) *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, ok := m.Number()
	if len(m.ID) == 0 && m.Error != nil && len(l.pending) == 1 {
		for only := range l.pending {
			id, ok = only, true
		}
	}
	c := l.pending[id]
	if !ok || c == nil {
		return nil
	}
	l.forget(id)
	return c
}

// forget gives back what the call held. The caller holds mu.
func (l *link) forget(id uint64) {
	c := l.pending[id]
	delete(l.pending, id)
	l.leave(c.request)
}

// fail ends the connection for the first reason given.
func (l *link) fail(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	l.err = why
	close(l.ended)
	_ = l.conn.Close() // there is nothing that could be done about an error
}

// reason returns why the connection ended, nil if it did not.
func (l *link) reason() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
