package qemu_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/qemu"
)

func TestBeforeTheFirstConnection(t *testing.T) {
	m, err := qemu.Prepare(qemu.Config{})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, m.Execute(t.Context(), "x", nil, nil), qemu.NotSent, qemu.ErrNotConnected)
	expect(t, m.ExecuteOOB(t.Context(), "x", nil, nil), qemu.NotSent,
		qemu.ErrNotConnected)
	expect(t, m.SendFile(t.Context(), "x", os.Stdin), qemu.NotSent, qemu.ErrNotConnected)
	if err := mustEnd(t, m); !errors.Is(err, qemu.ErrNotConnected) {
		t.Errorf("got %v", err)
	}
	if _, err := m.Peer(); !errors.Is(err, qemu.ErrNotConnected) {
		t.Errorf("got %v", err)
	}
	for range 2 {
		_ = m.Disconnect()
	}
	for range 2 {
		_ = m.Close()
	}
	if err := m.Connect(); !errors.Is(err, qemu.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// TestSubscriptionsOutliveConnections loses one connection, ends another and
// closes the third.
func TestSubscriptionsOutliveConnections(t *testing.T) {
	m, err := qemu.Prepare(scripted(t,
		func(p *peer) { p.greet(); p.say(`{"event": "A"}`) },
		func(p *peer) { p.greet(); p.say(`{"event": "B"}`); p.echo() },
		func(p *peer) { p.greet(); p.say(`{"event": "C"}`); p.echo() },
	))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s := m.Subscribe()
	next := func(name string, ended error, renewed bool) {
		t.Helper()
		e, err := s.Next(within(t, patience))
		gap, missing := errors.AsType[*qemu.Gap](err)
		if missing != (name == "") || e.Name != name {
			t.Fatalf("got %q, %v; want %q", e.Name, err, name)
		}
		if missing && (gap.Renewed != renewed || !errors.Is(gap.Ended, ended)) {
			t.Fatalf("got %+v", gap)
		}
		if missing && renewed {
			if err := m.Execute(t.Context(), "x", nil, nil); err != nil {
				t.Errorf("told of the renewal, and then: %v", err)
			}
		}
	}
	connect := func() {
		t.Helper()
		for range 2 { // the second changes nothing
			if err := m.Connect(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := m.Connect(); err != nil {
		t.Fatal(err)
	}
	next("A", nil, false)
	next("", qemu.ErrLost, false)
	connect()
	next("", nil, true)
	next("B", nil, false)
	_ = m.Disconnect()
	next("", qemu.ErrDisconnected, false)
	expect(t, m.Execute(t.Context(), "x", nil, nil), qemu.NotSent, qemu.ErrDisconnected)
	connect()
	next("", nil, true)
	next("C", nil, false)
	_ = m.Close()
	if _, err := s.Next(t.Context()); !errors.Is(err, qemu.ErrClosed) {
		t.Errorf("got %v", err)
	}
	expect(t, m.Execute(t.Context(), "x", nil, nil), qemu.NotSent, qemu.ErrClosed)
}

func TestCloseEndsEverything(t *testing.T) {
	t.Run("commands that wait for a reply", func(t *testing.T) {
		heard := make(chan struct{})
		m := dial(t, func(p *peer) { p.greet(); p.hear(); close(heard); p.deadEnd() })
		var all sync.WaitGroup
		all.Go(func() {
			err := m.Execute(context.Background(), "x", nil, nil)
			expect(t, err, qemu.Unknown, qemu.ErrClosed)
		})
		<-heard
		for range 3 {
			all.Go(func() { _ = m.Close() })
		}
		all.Wait()
	})
	t.Run("a handshake that hangs", func(t *testing.T) {
		begun := make(chan struct{})
		m, err := qemu.Prepare(scripted(t, func(p *peer) { close(begun); p.deadEnd() }))
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		all.Go(func() { expect(t, m.Connect(), qemu.NotSent, qemu.ErrClosed) })
		<-begun
		_ = m.Close()
		all.Wait()
	})
}

// TestEverythingAtOnce calls everything from many goroutines while connections
// come and go; the race detector and the search for leaks are the judges.
func TestEverythingAtOnce(t *testing.T) {
	var scripts []func(*peer)
	for range 20 {
		scripts = append(scripts, func(p *peer) {
			p.greet()
			for range 20 {
				c, ok := p.hear()
				if !ok {
					return
				}
				p.say(`{"event": "E"}`)
				p.say(`{"return": {}, "id": %d}`, c.ID)
			}
		})
	}
	m := dial(t, scripts...)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 60 {
				err := m.Execute(context.Background(), "x", nil, nil)
				if errors.Is(err, qemu.CarriedOut) {
					t.Error(err)
				}
				if err != nil {
					_ = m.Connect()
				}
				s := m.Subscribe()
				_, _ = s.Next(within(t, time.Millisecond))
				s.Close()
				if i == 0 {
					_, _ = m.Events(within(t, patience))
				}
				_, _, _ = m.Err(), m.Greeting(), m.Done()
			}
		})
	}
	all.Wait()
	_ = m.Close()
}

func TestNewTakesAnyConnection(t *testing.T) {
	ours, theirs := net.Pipe()
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		defer theirs.Close()
		p := &peer{theirs, bufio.NewReader(theirs)}
		p.greet()
		p.echo()
	})
	m, err := qemu.New(t.Context(), ours, qemu.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.Execute(t.Context(), "x", nil, nil); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"files":       m.SendFile(t.Context(), "x", os.Stdin),
		"credentials": func() error { _, err := m.Peer(); return err }(),
	} {
		if _, ok := errors.AsType[*qemu.UnsupportedError](err); !ok {
			t.Errorf("%s over a pipe: %v", name, err)
		}
	}
	_ = m.Disconnect()
	expect(t, m.Connect(), qemu.NotSent)
}

func TestNewClosesTheConnectionWhenItFails(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	if _, err := qemu.New(t.Context(), ours, qemu.Config{Timeout: -1}); err == nil {
		t.Error("a negative timeout was accepted")
	}
	if _, err := theirs.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("got %v", err)
	}
}

// TestAFileArrivesWithItsCommand passes the reading end of a pipe, and looks
// whether a second file waits until the first has been taken.
func TestAFileArrivesWithItsCommand(t *testing.T) {
	m := overSocket(t, func(p *peer) {
		p.greet()
		for range 2 {
			c, fd := hearFile(t, p)
			if fd < 0 {
				return
			}
			f := os.NewFile(uintptr(fd), "passed")
			said, err := io.ReadAll(f)
			_ = f.Close()
			if err != nil || string(said) != "text" {
				t.Errorf("got %q, %v", said, err)
			}
			_ = p.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			if n, _ := p.Read(make([]byte, 1)); n > 0 {
				t.Error("another file came before this one was taken")
			}
			_ = p.SetReadDeadline(time.Time{})
			p.say(`{"return": {}, "id": %d}`, c)
		}
	})
	var all sync.WaitGroup
	for range 2 {
		f := written(t, "text")
		all.Go(func() {
			if err := m.SendFile(context.Background(), "a", f); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	closed := written(t, "")
	_ = closed.Close()
	expect(t, m.SendFile(t.Context(), "c", closed), qemu.NotSent)
	expect(t, m.SendFile(t.Context(), "c", nil), qemu.NotSent, os.ErrInvalid)
}

// written returns a pipe from which text can be read, and then the end.
func written(t *testing.T, text string) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	_, _ = w.WriteString(text)
	_ = w.Close()
	return r
}

// hearFile reads a command and its descriptor; below zero when nothing came.
func hearFile(t *testing.T, p *peer) (id, fd int) {
	line, control := make([]byte, 4096), make([]byte, 64)
	n, controls, _, _, err := p.Conn.(*net.UnixConn).ReadMsgUnix(line, control)
	if err != nil {
		t.Errorf("no command: %v", err)
		return 0, -1
	}
	var c command
	if err := json.Unmarshal(line[:n], &c); err != nil || c.Execute != "getfd" {
		t.Errorf("got %s, %v", line[:n], err)
	}
	messages, err := syscall.ParseSocketControlMessage(control[:controls])
	if err != nil || len(messages) != 1 {
		t.Errorf("%d control messages, %v", len(messages), err)
		return 0, -1
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		t.Errorf("%d descriptors, %v", len(fds), err)
		return 0, -1
	}
	return int(c.ID), fds[0]
}

func TestPeer(t *testing.T) {
	m := overSocket(t, func(p *peer) { p.greet(); p.echo() })
	if pid, err := m.Peer(); err != nil || pid != os.Getpid() {
		t.Errorf("got %d, %v; want %d", pid, err, os.Getpid())
	}
}
