package qemu_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/qemu"
)

const (
	greeting = `{"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}, ` +
		`"package": "test"}, "capabilities": ["oob"]}}`
	greetingWithoutOOB = `{"QMP": {"version": {"qemu": {"micro": 0, "minor": 0, "major": 2}, ` +
		`"package": ""}, "capabilities": []}}`
)

// A peer is the other end of a connection, as a script plays it.
type peer struct {
	net.Conn
	lines *bufio.Reader
}

// A command is what the peer was asked.
type command struct {
	Execute   string
	ExecOOB   string `json:"exec-oob"`
	Arguments json.RawMessage
	ID        uint64
}

// say writes lines; a client that has gone is no concern of the peer.
func (p *peer) say(format string, args ...any) { fmt.Fprintf(p, format+"\r\n", args...) }

// hear reads one command; ok is false when the client has gone.
func (p *peer) hear() (c command, ok bool) {
	line, err := p.lines.ReadBytes('\n')
	return c, err == nil && json.Unmarshal(line, &c) == nil
}

// greet plays the handshake.
func (p *peer) greet() {
	p.say(greeting)
	c, _ := p.hear()
	p.say(`{"return": {}, "id": %d}`, c.ID)
}

// echo answers every command with its name and arguments until the client goes.
func (p *peer) echo() {
	for c, ok := p.hear(); ok; c, ok = p.hear() {
		p.say(`{"return": {"name": %q, "arguments": %s}, "id": %d}`, c.Execute+c.ExecOOB,
			orNull(c.Arguments), c.ID)
	}
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

// deadEnd reads and says nothing until the client goes.
func (p *peer) deadEnd() { _, _ = io.Copy(io.Discard, p.lines) }

// scripted returns a Config whose connections are played by scripts, one each;
// the end of a script hangs up.
func scripted(t testing.TB, scripts ...func(*peer)) qemu.Config {
	t.Helper()
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	var mu sync.Mutex
	return qemu.Config{Timeout: patience, Dial: func(context.Context) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if len(scripts) == 0 {
			return nil, errors.New("no script is left")
		}
		script := scripts[0]
		scripts = scripts[1:]
		ours, theirs := net.Pipe()
		running.Go(func() {
			defer theirs.Close()
			script(&peer{theirs, bufio.NewReader(theirs)})
		})
		return ours, nil
	}}
}

// dial connects to scripts and closes the Monitor when the test ends.
func dial(t testing.TB, scripts ...func(*peer)) *qemu.Monitor {
	t.Helper()
	m, err := qemu.Dial(context.Background(), scripted(t, scripts...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// overSocket connects over a real unix socket.
func overSocket(t *testing.T, script func(*peer)) *qemu.Monitor {
	t.Helper()
	dir, err := os.MkdirTemp("", "qmp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "monitor")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		script(&peer{conn, bufio.NewReader(conn)})
	})
	t.Cleanup(running.Wait)
	t.Cleanup(func() { _ = l.Close() })
	m, err := qemu.Dial(t.Context(), qemu.Config{Path: path, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// within returns a context that ends soon: for what must not happen.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// mustEnd waits for the end of the connection and returns why.
func mustEnd(t *testing.T, m qemu.Client) error {
	t.Helper()
	select {
	case <-m.Done():
	case <-time.After(patience):
		t.Fatal("the connection did not end")
	}
	return m.Err()
}

// expect fails the test unless err has the outcome, and wraps each cause.
func expect(t *testing.T, err error, outcome qemu.Outcome, causes ...error) {
	t.Helper()
	for _, want := range append(causes, outcome) {
		if !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	for _, other := range []qemu.Outcome{qemu.Unknown, qemu.NotSent,
		qemu.CarriedOut} {
		if other != outcome && errors.Is(err, other) {
			t.Errorf("got %v, which is also %v", err, other)
		}
	}
}

func isProtocolError(err error) bool {
	_, ok := errors.AsType[*qemu.ProtocolError](err)
	return ok
}
