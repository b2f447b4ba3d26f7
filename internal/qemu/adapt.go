package qemu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/digitalocean/go-qemu/qmp"
)

// An adapted is a Client on top of a Monitor that can only Run and tell
// Events.
type adapted struct {
	monitor qmp.Monitor
	config  Config
	hub     Hub
	turn    chan struct{}      // held by the command that runs
	stop    context.CancelFunc // ends the copying of events
	copied  chan struct{}      // closed when no more events are copied
	done    chan struct{}

	closing sync.Once
	mu      sync.Mutex
	err     error // why it is done
}

// Adapt makes a Client of a connected Monitor, which it then owns; one that is
// a Client already is returned as it is. Of config, Timeout and MaxEvents are
// used. It fails if config has a negative field or if events cannot be had,
// other than because the Monitor has none at all: then each Subscription ends
// at once with an *UnsupportedError.
//
// Commands run one at a time, as many Monitors can do no more, and there are
// no files and no out-of-band commands. A Monitor's Run cannot be interrupted:
// a command that was given up holds up the next ones, which then fail with
// NotSent. Any error of Run that is not of this package is Unknown, because
// its text is all that there is.
func Adapt(m qmp.Monitor, config Config) (Client, error) {
	if c, ok := m.(Client); ok {
		return c, nil
	}
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	a := &adapted{monitor: m, config: config, turn: make(chan struct{}, 1), stop: stop,
		copied: make(chan struct{}), done: make(chan struct{})}
	events, err := m.Events(ctx)
	switch {
	case errors.Is(err, qmp.ErrEventsNotSupported):
		a.hub.Close(&UnsupportedError{"events"})
		close(a.copied)
	case err != nil:
		stop()
		return nil, fmt.Errorf("monitor: listening to events: %w", err)
	default:
		go a.copy(ctx, events)
	}
	return a, nil
}

// copy takes events until there are no more; some Monitors answer no command
// while an event waits.
func (a *adapted) copy(ctx context.Context, events <-chan qmp.Event) {
	defer close(a.copied)
	for {
		select {
		case <-ctx.Done():
			return
		case p, ok := <-events:
			if !ok {
				a.fail(ErrLost)
				a.hub.Publish(Notice{Gap: Gap{Ended: a.Err()}})
				return
			}
			e, err := eventOf(p)
			if err != nil { // nothing that was JSON does that
				a.hub.Publish(Notice{Gap: Gap{Lost: 1}})
				continue
			}
			a.hub.Publish(Notice{Event: e})
		}
	}
}

func (a *adapted) fail(why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		a.err = why
		close(a.done)
	}
}

// Execute is Client's.
func (a *adapted) Execute(ctx context.Context, command string, arguments, reply any) error {
	r, err := newRequest(command, arguments)
	if err != nil {
		return err
	}
	line, err := json.Marshal(plainCommand{Execute: command, Arguments: r.arguments})
	if err != nil {
		return r.failed(NotSent, err)
	}
	ctx, cancel := a.config.bound(ctx)
	defer cancel()
	if err := a.begin(ctx); err != nil {
		return r.failed(NotSent, err)
	}
	answered := make(chan answer, 1)
	go func() {
		out, err := a.monitor.Run(line)
		answered <- answer{out, err}
		<-a.turn
	}()
	select {
	case given := <-answered:
		return given.decode(r, reply)
	case <-ctx.Done():
		err = fmt.Errorf("no reply: %w", context.Cause(ctx))
	case <-a.done:
		err = a.Err()
	}
	select {
	case given := <-answered: // it came at the same moment, and is better than none
		return given.decode(r, reply)
	default:
		return r.failed(Unknown, err)
	}
}

func (a *adapted) begin(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := a.Err(); err != nil {
		return err
	}
	select {
	case a.turn <- struct{}{}:
		return nil
	case <-a.done:
		return a.Err()
	case <-ctx.Done():
		return fmt.Errorf("an earlier command is still under way: %w", context.Cause(ctx))
	}
}

// An answer is what Run returned.
type answer struct {
	out []byte
	err error
}

func (a answer) decode(r request, reply any) error {
	if a.err != nil {
		_, refused := errors.AsType[*Error](a.err)
		_, failed := errors.AsType[*Failure](a.err)
		if refused || failed {
			return a.err
		}
		return r.failed(Unknown, a.err)
	}
	m, err := Parse(a.out)
	if err == nil && m.Event != "" {
		err = Violation(a.out, "the reply is an event")
	}
	if err != nil {
		return r.failed(Unknown, err)
	}
	returned, err := r.result(m)
	if err != nil {
		return err
	}
	return r.decode(returned, reply)
}

// ExecuteOOB is Client's: it is not supported.
func (a *adapted) ExecuteOOB(_ context.Context, command string, _, _ any) error {
	return &Failure{command, NotSent, &UnsupportedError{"out-of-band commands"}}
}

// SendFile is Client's: it is not supported.
func (a *adapted) SendFile(context.Context, string, *os.File) error {
	return &Failure{"getfd", NotSent, &UnsupportedError{"files along with commands"}}
}

// Subscribe is Client's.
func (a *adapted) Subscribe() *Subscription { return a.hub.Subscribe(a.config.MaxEvents) }

// Done is Client's. The end is noticed by the end of the events; without
// events, only Close is.
func (a *adapted) Done() <-chan struct{} { return a.done }

// Err is Client's.
func (a *adapted) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// Close disconnects the Monitor and returns the error of that, the first time.
// Events are taken until then: some Monitors cannot disconnect otherwise.
func (a *adapted) Close() (err error) {
	a.closing.Do(func() {
		a.hub.Close(ErrClosed)
		a.fail(ErrClosed)
		err = a.monitor.Disconnect()
		a.stop()
		<-a.copied
	})
	return err
}
