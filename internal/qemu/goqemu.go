package qemu

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/digitalocean/go-qemu/qmp"
)

// A plainCommand is what go-qemu's Run is given.
type plainCommand struct {
	Execute   string          `json:"execute,omitempty"`
	ExecOOB   string          `json:"exec-oob,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	ID        json.RawMessage `json:"id,omitempty"`
}

// Run carries out a command that is given, and answers, in QMP's own notation,
// with the default timeout. An id of the caller's is his own: it comes back
// with the reply and is not sent. The errors are those of Execute.
func (m *Monitor) Run(command []byte) (out []byte, err error) {
	c, err := parseCommand(command)
	if err != nil {
		return nil, err
	}
	var arguments any
	if c.Arguments != nil {
		arguments = c.Arguments
	}
	r, err := newRequest(c.Execute+c.ExecOOB, arguments)
	if err != nil {
		return nil, err
	}
	r.outOfBand = c.ExecOOB != ""
	var returned json.RawMessage
	if err := m.execute(context.Background(), r, &returned); err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		Return json.RawMessage `json:"return"`
		ID     json.RawMessage `json:"id,omitempty"`
	}{returned, c.ID})
}

func parseCommand(command []byte) (c plainCommand, err error) {
	d := json.NewDecoder(bytes.NewReader(command))
	d.DisallowUnknownFields()
	err = d.Decode(&c)
	if err == nil && (c.Execute == "") == (c.ExecOOB == "") {
		err = errors.New("it has neither, or both, of execute and exec-oob")
	}
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("something follows the command")
		}
	}
	if err != nil {
		err = fmt.Errorf("this is no QMP command: %w", err)
		return c, &Failure{Command: c.Execute + c.ExecOOB, Outcome: NotSent, Err: err}
	}
	return c, nil
}

// A stream is a goroutine that copies events into a channel.
type stream struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// Events returns a channel of events, as go-qemu wants it. The channel is
// closed when ctx ends, on Disconnect or Close, and where events may be
// missing: that is all this interface can say. Numbers are float64 in it;
// Subscribe does both better. The error wraps ErrClosed.
func (m *Monitor) Events(ctx context.Context) (<-chan qmp.Event, error) {
	ctx, cancel := context.WithCancel(ctx)
	s := &stream{cancel: cancel, done: make(chan struct{})}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.life.Err() != nil {
		cancel()
		return nil, fmt.Errorf("events: %w", ErrClosed)
	}
	m.streams[s] = struct{}{}
	subscription := m.Subscribe()
	out := make(chan qmp.Event)
	go func() {
		defer close(s.done)
		defer close(out)
		defer m.forget(s)
		defer subscription.Close()
		defer cancel()
		copyEvents(ctx, subscription, out)
	}()
	return out, nil
}

func copyEvents(ctx context.Context, from *Subscription, to chan<- qmp.Event) {
	for {
		e, err := from.Next(ctx)
		if err != nil {
			return
		}
		select {
		case to <- plainEvent(e):
		case <-ctx.Done():
			return
		}
	}
}

func (m *Monitor) forget(s *stream) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.streams, s)
}

// endStreams ends what Events began, and waits for it.
func (m *Monitor) endStreams() {
	m.mu.Lock()
	var running []*stream
	for s := range m.streams {
		running = append(running, s)
	}
	m.mu.Unlock()
	for _, s := range running {
		s.cancel()
		<-s.done
	}
}

// plainEvent is e for go-qemu. Data that is no object has no place in it.
func plainEvent(e Event) qmp.Event {
	p := qmp.Event{Event: e.Name}
	if json.Unmarshal(e.Data, &p.Data) != nil {
		p.Data = nil
	}
	if !e.Time.IsZero() {
		p.Timestamp.Seconds = e.Time.Unix()
		p.Timestamp.Microseconds = int64(e.Time.Nanosecond()) / int64(time.Microsecond)
	}
	return p
}

// eventOf is what go-qemu gives as an Event of ours. Its data has been decoded
// and is encoded again, so numbers above 2^53 may have lost digits already.
func eventOf(p qmp.Event) (Event, error) {
	e := Event{Name: p.Event}
	if t := p.Timestamp; t.Seconds > 0 {
		e.Time = time.Unix(t.Seconds, t.Microseconds*int64(time.Microsecond)).UTC()
	}
	if p.Data == nil {
		return e, nil
	}
	data, err := json.Marshal(p.Data)
	e.Data = data
	return e, err
}
