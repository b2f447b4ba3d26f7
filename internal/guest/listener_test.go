//go:build linux

package guest_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/guest"
)

// console is a debug console without a machine.
func console(t *testing.T, p *guest.HeartbeatListener, process string) net.Conn {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "listener")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	listener, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := p.Connect(withPatience(t), process, filepath.Join(dir, "s")); err != nil {
		t.Fatal(err)
	}
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func send(t *testing.T, to net.Conn, codes ...byte) {
	t.Helper()
	if _, err := to.Write(codes); err != nil {
		t.Fatal(err)
	}
}

// TestWhatTwoProcessesSendIsHeardInOrder hands over many times as fast as
// sockets allow: were the order ever lost, a move would look like a return.
func TestWhatTwoProcessesSendIsHeardInOrder(t *testing.T) {
	p := newListener(t)
	const moves = 200
	last := console(t, p, "0")
	for i := range moves {
		next := console(t, p, strconv.Itoa(i+1))
		send(t, last, 0x40|byte(2*i)&0x3f)
		send(t, last, 0x40|byte(2*i+1)&0x3f)
		last = next
	}
	r := await(t, p, beats(2*moves))
	if err := r.Check(); err != nil {
		t.Error(err)
	}
}

func TestMarkForgetsTheLargestGap(t *testing.T) {
	p := newListener(t)
	c := console(t, p, "source")
	send(t, c, 'A')
	await(t, p, beats(1))
	time.Sleep(20 * time.Millisecond)
	send(t, c, 'B')
	if g := await(t, p, beats(2)).Gap; g.Length < 20*time.Millisecond {
		t.Errorf("the largest gap is %v", g.Length)
	}
	p.Mark()
	if g := p.Log().Gap; g.Length != 0 {
		t.Errorf("after the mark the largest gap is %v", g.Length)
	}
}

func TestAProcessThatEndsIsForgotten(t *testing.T) {
	p := newListener(t)
	c := console(t, p, "source")
	send(t, c, 'A')
	c.Close()
	send(t, console(t, p, "target"), 'B')
	if r := await(t, p, beats(2)); r.From != "target" || r.Check() != nil {
		t.Errorf("%+v", r)
	}
}

func TestConnectGivesUpWithItsContext(t *testing.T) {
	p := newListener(t)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := p.Connect(ctx, "source", "/tmp/no/such/socket"); !errors.Is(err,
		context.DeadlineExceeded) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
	if err := p.Wait(ctx, beats(1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error of Wait is %v", err)
	}
}

func TestAClosedPulseSaysSo(t *testing.T) {
	p := newListener(t)
	c := console(t, p, "source")
	for range 2 {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := p.Wait(withPatience(t), beats(1)); !errors.Is(err, guest.ErrClosed) {
		t.Errorf("the error of Wait is %v", err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the socket is still open")
	}
}

// BenchmarkPulse is the cost of one heartbeat, its sender's included.
func BenchmarkPulse(b *testing.B) {
	p, err := guest.NewHeartbeatListener()
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	listener, err := net.Listen("unix", filepath.Join(b.TempDir(), "s"))
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	if err := p.Connect(b.Context(), "source", listener.Addr().String()); err != nil {
		b.Fatal(err)
	}
	conn, err := listener.Accept()
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	for i := 0; b.Loop(); i++ {
		if _, err := conn.Write([]byte{0x40 | byte(i)&0x3f}); err != nil {
			b.Fatal(err)
		}
	}
}
