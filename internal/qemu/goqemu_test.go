package qemu_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/digitalocean/go-qemu/qmp"

	"github.com/godwit-vm/godwit/internal/qemu"
)

func TestRun(t *testing.T) {
	m := dial(t, func(p *peer) { p.greet(); p.echo() })
	for _, row := range []struct{ name, command, want string }{
		{"plain", `{"execute": "stop"}`, `{"return":{"name":"stop","arguments":null}}`},
		{"out of band", `{"exec-oob": "yank"}`, `{"return":{"name":"yank","arguments":null}}`},
		{"with arguments and an id",
			` {"execute": "x", "arguments": {"n": 1}, "id": "mine"}` + "\n",
			`{"return":{"name":"x","arguments":{"n":1}},"id":"mine"}`},
		{"nothing", ``, ""},
		{"no command", `{"arguments": {}}`, ""},
		{"two commands", `{"execute": "a", "exec-oob": "b"}`, ""},
		{"one after another", `{"execute": "a"}{"execute": "b"}`, ""},
		{"an unknown key", `{"execute": "a", "control": {}}`, ""},
		{"garbage", "\x00", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := m.Run([]byte(row.command))
			if string(got) != row.want {
				t.Errorf("got %s, %v; want %s", got, err, row.want)
			}
			if row.want == "" {
				expect(t, err, qemu.NotSent)
			}
		})
	}
}

func TestEventsEndWhereSomeMayBeMissing(t *testing.T) {
	m := dial(t,
		func(p *peer) {
			p.greet()
			p.hear()
			p.say(`{"event":"A","data":{"n":1},"timestamp":{"seconds":5,"microseconds":6}}`)
			p.say(`{"event":"B","data":5}`)
		},
		func(p *peer) { p.greet(); p.echo() })
	events, err := m.Events(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = m.Execute(t.Context(), "x", nil, nil)
	e := <-events
	if e.Event != "A" || e.Data["n"] != 1.0 || e.Timestamp.Seconds != 5 ||
		e.Timestamp.Microseconds != 6 {
		t.Errorf("got %+v", e)
	}
	if e := <-events; e.Event != "B" || e.Data != nil {
		t.Errorf("got %+v", e)
	}
	if e, ok := <-events; ok {
		t.Errorf("got %+v after the connection was lost", e)
	}
	if err := m.Connect(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ends := map[string]func(){"ctx": cancel, "Disconnect": func() { _ = m.Disconnect() },
		"Close": func() { _ = m.Close() }}
	for _, how := range []string{"ctx", "Disconnect", "Close"} {
		events, err := m.Events(ctx)
		if how != "ctx" {
			events, err = m.Events(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		ends[how]()
		if e, ok := <-events; ok {
			t.Errorf("got %+v after %s", e, how)
		}
	}
	if _, err := m.Events(t.Context()); !errors.Is(err, qemu.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// plain is a foreign Monitor.
type plain struct {
	run       func([]byte) ([]byte, error)
	events    chan qmp.Event
	err       error // of Events
	closing   sync.Once
	destroyed chan struct{}
}

func newPlain(run func([]byte) ([]byte, error)) *plain {
	return &plain{run: run, events: make(chan qmp.Event), destroyed: make(chan struct{})}
}

func (p *plain) Connect() error               { return nil }
func (p *plain) Run(b []byte) ([]byte, error) { return p.run(b) }
func (p *plain) Disconnect() error {
	p.closing.Do(func() { close(p.destroyed) })
	return nil
}

func (p *plain) Events(context.Context) (<-chan qmp.Event, error) { return p.events, p.err }

func adapt(t *testing.T, p *plain) qemu.Client {
	t.Helper()
	c, err := qemu.Adapt(p, qemu.Config{Timeout: patience, MaxEvents: 5})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestAdaptedAnswers(t *testing.T) {
	for _, row := range []struct {
		name, said string
		failed     error
		want       error
	}{
		{"a return", `{"return": {"name": "x"}}`, nil, nil},
		{"a refusal", `{"error": {"class": "DeviceNotFound", "desc": "no"}}`, nil,
			qemu.DeviceNotFound},
		{"an event", `{"event": "A"}`, nil, qemu.Unknown},
		{"nothing", ``, nil, qemu.Unknown},
		{"a reply that does not fit", `{"return": 5}`, nil, qemu.CarriedOut},
		{"an error of the Monitor's", ``, io.ErrClosedPipe, qemu.Unknown},
		{"a failure of ours", ``, &qemu.Failure{Outcome: qemu.NotSent}, qemu.NotSent},
		{"a refusal of ours", ``, &qemu.Error{Class: qemu.GenericError},
			qemu.GenericError},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := adapt(t, newPlain(func(asked []byte) ([]byte, error) {
				if string(asked) != `{"execute":"x","arguments":{"n":1}}` {
					t.Errorf("got %s", asked)
				}
				return []byte(row.said), row.failed
			}))
			var got struct{ Name string }
			err := c.Execute(t.Context(), "x", map[string]int{"n": 1}, &got)
			if !errors.Is(err, row.want) || row.want == nil && got.Name != "x" {
				t.Errorf("got %v, %v; want %v", got, err, row.want)
			}
		})
	}
}

func TestAnAdaptedCommandIsGivenUp(t *testing.T) {
	p := newPlain(nil)
	p.run = func([]byte) ([]byte, error) { <-p.destroyed; return nil, io.EOF }
	c := adapt(t, p)
	err := c.Execute(within(t, 20*time.Millisecond), "hangs", nil, nil)
	expect(t, err, qemu.Unknown, context.DeadlineExceeded)
	err = c.Execute(within(t, 20*time.Millisecond), "waits", nil, nil)
	expect(t, err, qemu.NotSent, context.DeadlineExceeded)
	_ = c.Close()
	_ = c.Close()
	expect(t, c.Execute(t.Context(), "x", nil, nil), qemu.NotSent, qemu.ErrClosed)
	if err := mustEnd(t, c); !errors.Is(err, qemu.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestWhatAnAdaptedMonitorLacks(t *testing.T) {
	p := newPlain(nil)
	p.err = qmp.ErrEventsNotSupported
	c := adapt(t, p)
	_, noEvents := c.Subscribe().Next(t.Context())
	for name, err := range map[string]error{
		"events":      noEvents,
		"files":       c.SendFile(t.Context(), "x", os.Stdin),
		"out of band": c.ExecuteOOB(t.Context(), "yank", nil, nil),
	} {
		if _, ok := errors.AsType[*qemu.UnsupportedError](err); !ok {
			t.Errorf("%s: got %v", name, err)
		}
	}
	p = newPlain(nil)
	p.err = io.ErrClosedPipe
	if _, err := qemu.Adapt(p, qemu.Config{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
	if _, err := qemu.Adapt(p, qemu.Config{MaxEvents: -1}); err == nil {
		t.Error("a negative number of events was accepted")
	}
	ours := dial(t, (*peer).greet)
	if c, err := qemu.Adapt(ours, qemu.Config{}); c != ours || err != nil {
		t.Errorf("got %v, %v: a Client needs no adapting", c, err)
	}
}

func TestAdaptedEvents(t *testing.T) {
	p := newPlain(nil)
	c := adapt(t, p)
	s := c.Subscribe()
	e := qmp.Event{Event: "A", Data: map[string]any{"n": json.Number("1")}}
	e.Timestamp.Seconds, e.Timestamp.Microseconds = 5, 6
	p.events <- e
	got, err := s.Next(t.Context())
	if err != nil || got.Name != "A" || string(got.Data) != `{"n":1}` ||
		!got.Time.Equal(time.Unix(5, 6000)) {
		t.Errorf("got %+v, %v", got, err)
	}
	close(p.events)
	if err := mustEnd(t, c); !errors.Is(err, qemu.ErrLost) {
		t.Errorf("got %v", err)
	}
	_, err = s.Next(t.Context())
	if gap, ok := errors.AsType[*qemu.Gap](err); !ok || !errors.Is(gap, qemu.ErrLost) {
		t.Errorf("got %v", err)
	}
}
