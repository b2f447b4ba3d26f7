package qemu

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"

	"github.com/digitalocean/go-qemu/qmp"
)

// A Client carries commands to one QEMU and events from it. [Monitor] is one,
// and Adapt makes one of anything that go-qemu calls a Monitor.
type Client interface {
	// Execute carries a command out and decodes what it returns into reply, a
	// pointer, unless that is nil. Arguments are encoded as JSON; nil is none.
	// An error is an *Error or a *Failure.
	Execute(ctx context.Context, command string, arguments, reply any) error
	// ExecuteOOB does the same out of band: the command overtakes others. It
	// fails with NotSent and an *UnsupportedError where that cannot be done.
	ExecuteOOB(ctx context.Context, command string, arguments, reply any) error
	// SendFile gives QEMU a file, to be known by name (getfd). The caller keeps
	// f. It fails as ExecuteOOB does where that cannot be done.
	SendFile(ctx context.Context, name string, f *os.File) error
	// Subscribe begins to listen to events. If the connection has ended, a Gap
	// that says so comes first.
	Subscribe() *Subscription
	// Done returns a channel that is closed when the present connection ends;
	// Err then says why. Err is nil while there is a connection.
	Done() <-chan struct{}
	Err() error
	// Close ends the connection and all subscriptions, for ever.
	Close() error
}

var (
	_ Client      = (*Monitor)(nil)
	_ qmp.Monitor = (*Monitor)(nil)
	_ Reconnecter = (*Monitor)(nil)
)

// A Reconnecter is a [Client] that can be connected again: to a QEMU that hung, or whose monitor was
// closed. One that a user's own monitor was adapted to is none.
type Reconnecter interface {
	// ConnectContext connects unless the client is connected.
	ConnectContext(ctx context.Context) error
}

// A Monitor is a client of one QEMU's QMP server. Its methods are safe for
// concurrent use.
type Monitor struct {
	config Config
	hub    Hub
	life   context.Context // ends with Close
	end    context.CancelCauseFunc
	lock   chan struct{} // holds a value while the link changes
	link   atomic.Pointer[link]

	mu      sync.Mutex
	streams map[*stream]struct{} // what Events began and has not ended
}

// Prepare returns a Monitor that is not connected, so that one can subscribe
// before the first event. It fails if config has a negative field.
func Prepare(config Config) (*Monitor, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	m := &Monitor{config: config, lock: make(chan struct{}, 1), streams: map[*stream]struct{}{}}
	m.life, m.end = context.WithCancelCause(context.Background())
	m.link.Store(noLink())
	return m, nil
}

// Dial connects to QEMU. ctx, or else config.Timeout, bounds connecting only.
// The errors are those of ConnectContext.
func Dial(ctx context.Context, config Config) (*Monitor, error) {
	m, err := Prepare(config)
	if err != nil {
		return nil, err
	}
	if err := m.ConnectContext(ctx); err != nil {
		_ = m.Close() // nothing is open: it has nothing to tell
		return nil, err
	}
	return m, nil
}

// New speaks QMP over a connection that exists. It owns conn from now on, and
// closes it also when it fails. Connect dials as config says.
func New(ctx context.Context, conn net.Conn, config Config) (*Monitor, error) {
	m, err := Prepare(config)
	if err == nil {
		err = m.connect(ctx, func(context.Context) (net.Conn, error) { return conn, nil })
	}
	if err != nil {
		_ = conn.Close() // the first error is the one to tell
		return nil, err
	}
	return m, nil
}

// ConnectContext connects unless the Monitor is connected. Subscriptions go
// on; if there was a connection before, they are given a Gap that is Renewed,
// and then the new connection's events. A failure is a *Failure that is
// NotSent, as no command but the handshake's left.
func (m *Monitor) ConnectContext(ctx context.Context) error {
	return m.connect(ctx, m.config.Dial)
}

// Connect is ConnectContext with the default timeout, as go-qemu wants it.
func (m *Monitor) Connect() error { return m.ConnectContext(context.Background()) }

func (m *Monitor) connect(
	ctx context.Context, dial func(context.Context) (net.Conn, error),
) error {
	r := request{command: "connect"}
	ctx, cancel := m.config.bound(ctx)
	defer cancel()
	ctx, abandon := context.WithCancelCause(ctx)
	defer context.AfterFunc(m.life, func() { abandon(context.Cause(m.life)) })()
	defer abandon(nil)
	if err := m.begin(ctx); err != nil {
		return r.failed(NotSent, err)
	}
	defer m.finish()
	old := m.link.Load()
	if old.reason() == nil {
		return nil
	}
	<-old.drained // so that no event of it comes after those of the new one
	if dial == nil {
		return r.failed(NotSent, errors.New("neither Path nor Dial is configured"))
	}
	conn, err := dial(ctx)
	if err != nil {
		return r.failed(NotSent, fmt.Errorf("is QEMU running? %w", err))
	}
	l := newLink(conn, m.config.MaxLine, &m.hub)
	early, err := l.greet(ctx)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close() // the first error is the one to tell
		return r.failed(NotSent, err)
	}
	m.start(l, early, old.conn != nil)
	return nil
}

// start makes l the present link and lets it run. The order matters: a caller that
// is told of the renewal can execute commands.
func (m *Monitor) start(l *link, early []Notice, renewed bool) {
	m.link.Store(l)
	if renewed {
		m.hub.Publish(Notice{Gap: Gap{Renewed: true}})
	}
	for _, n := range early {
		m.hub.Publish(n)
	}
	go l.run()
}

func (m *Monitor) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	select {
	case m.lock <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if m.life.Err() != nil {
		m.finish()
		return ErrClosed
	}
	return nil
}

func (m *Monitor) finish() { <-m.lock }

// Disconnect ends the connection and the channels that Events returned, and
// waits for a Connect that is under way. Subscriptions remain. It may be
// repeated; its error is always nil.
func (m *Monitor) Disconnect() error {
	m.lock <- struct{}{}
	defer m.finish()
	m.hangUp(ErrDisconnected)
	return nil
}

// Close ends the connection, a Connect that is under way and all
// subscriptions, for ever. When it returns, nothing of the Monitor runs. It may
// be repeated; its error is always nil.
func (m *Monitor) Close() error {
	m.end(ErrClosed)
	m.lock <- struct{}{}
	defer m.finish()
	m.hub.Close(ErrClosed)
	m.hangUp(ErrClosed)
	return nil
}

func (m *Monitor) hangUp(why error) {
	l := m.link.Load()
	l.fail(why)
	<-l.drained
	m.endStreams()
}

// Done returns a channel that is closed when the connection that exists now
// ends. Without a connection it is closed already.
func (m *Monitor) Done() <-chan struct{} { return m.link.Load().ended }

// Err returns why there is no connection: it wraps ErrNotConnected,
// ErrDisconnected, ErrClosed or ErrLost, or is a *ProtocolError. It is nil
// while there is a connection.
func (m *Monitor) Err() error {
	if m.life.Err() != nil {
		return ErrClosed
	}
	return m.link.Load().reason()
}

// Greeting returns what QEMU said of itself when the latest connection began;
// zero before the first.
func (m *Monitor) Greeting() Greeting { return m.link.Load().greeting }

// Peer returns the process at the other end of a unix socket: the one that
// began to listen, which is not QEMU where another process made the socket for
// it or where QEMU forked afterwards (-daemonize). The kernel remembers the
// number also when the process is gone and the number is another's. The error
// is an *UnsupportedError where the connection has no such thing.
func (m *Monitor) Peer() (pid int, err error) {
	l := m.link.Load()
	if err := m.Err(); err != nil {
		return 0, fmt.Errorf("the peer's credentials: %w", err)
	}
	return peerOf(l.conn)
}

// Subscribe begins to listen to events: to all that arrive from now on. If the
// connection has ended, a Gap that says so comes first.
func (m *Monitor) Subscribe() *Subscription { return m.hub.Subscribe(m.config.MaxEvents) }

// Execute carries a command out, in the order in which one goroutine calls it,
// and decodes what it returns into reply, a pointer, unless that is nil.
// Arguments are encoded as JSON; nil is none. When ctx ends, or config.Timeout
// if ctx has no deadline, it gives up waiting, and a reply that comes later is
// dropped; the command is not undone. An error is an *Error or a *Failure.
func (m *Monitor) Execute(ctx context.Context, command string, arguments, reply any) error {
	r, err := newRequest(command, arguments)
	if err != nil {
		return err
	}
	return m.execute(ctx, r, reply)
}

// ExecuteOOB does what Execute does for the few commands that QEMU carries out
// out of band (migrate-recover, migrate-pause, yank): the command overtakes all
// others. Where QEMU does not offer that, it fails with NotSent and an
// *UnsupportedError.
func (m *Monitor) ExecuteOOB(ctx context.Context, command string, arguments, reply any) error {
	r, err := newRequest(command, arguments)
	if err != nil {
		return err
	}
	r.outOfBand = true
	return m.execute(ctx, r, reply)
}

// ExecuteFile does what Execute does for the commands that take a file along
// (getfd, add-fd). The file goes with the command's first byte; QEMU gets a
// duplicate, and f remains the caller's. Over anything but a unix socket, it
// fails with NotSent and an *UnsupportedError.
func (m *Monitor) ExecuteFile(
	ctx context.Context, command string, arguments, reply any, f *os.File,
) error {
	r, err := newRequest(command, arguments)
	if err != nil {
		return err
	}
	if f == nil {
		return r.failed(NotSent, os.ErrInvalid)
	}
	r.file = f
	return m.execute(ctx, r, reply)
}

// SendFile gives QEMU a file, to be known by name until a command uses it up
// or closefd closes it (getfd). The errors are those of ExecuteFile.
func (m *Monitor) SendFile(ctx context.Context, name string, f *os.File) error {
	arguments := struct {
		Name string `json:"fdname"`
	}{name}
	return m.ExecuteFile(ctx, "getfd", arguments, nil, f)
}

func (m *Monitor) execute(ctx context.Context, r request, reply any) error {
	ctx, cancel := m.config.bound(ctx)
	defer cancel()
	returned, err := m.link.Load().roundTrip(ctx, r)
	if err != nil {
		return err
	}
	return r.decode(returned, reply)
}
