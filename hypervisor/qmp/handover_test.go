package qmp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// patience is how long anything may take that does not fail.
var patience = testutil.Limit(testutil.DefaultLimit)

// tokens are what the target of these tests expects.
var tokens = map[hypervisor.JobID]string{"job": "secret", "other": "another secret"}

// agreed is what it answers to Prepare.
var agreed = qmp.Answer{URI: "tcp:192.0.2.1:4444", Disks: "nbd:192.0.2.1:10809"}

// A target answers, and keeps what it heard.
type handoverTarget struct {
	*qmp.Server
	mu    sync.Mutex
	heard []qmp.Message
}

func (s *handoverTarget) answer(m *qmp.Message) qmp.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = append(s.heard, *m)
	switch {
	case m.VM == "unknown":
		return qmp.Answer{Refused: "no such VM", Kind: hypervisor.NotFound}
	case m.Say == qmp.Prepare:
		return agreed
	}
	return qmp.Answer{}
}

func (s *handoverTarget) messages() []qmp.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.heard)
}

// listen starts a target. It ends with the test.
func listen(t testing.TB, network string) *handoverTarget {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	s := &handoverTarget{}
	s.Server = qmp.Serve(l, func(id hypervisor.JobID) string { return tokens[id] }, s.answer)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// dial makes a connection to a target.
func dial(t testing.TB, s *handoverTarget) net.Conn {
	t.Helper()
	conn, err := net.Dial(s.Addr().Network(), s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}

var (
	prepare = qmp.Message{Say: qmp.Prepare, Job: "job", VM: "ns/web", Paused: true,
		Machine: "digest", Cold: true, Options: hypervisor.TransferOptions{PostCopy: true,
			Downtime: time.Second, Method: "zstd"}}
	stopped = qmp.Message{Say: qmp.Stopped, Job: "job", VM: "ns/web",
		Downtime: 3 * time.Millisecond}
)

// TestConversation: both verbs, over both networks, one after the other and again.
func TestConversation(t *testing.T) {
	for _, network := range []string{"unix", "tcp"} {
		t.Run(network, func(t *testing.T) {
			s := listen(t, network)
			for range 2 { // connections
				conn := qmp.NewConn(dial(t, s), "secret")
				for range 2 { // repetitions
					asks(t, conn, prepare, &agreed)
					asks(t, conn, stopped, &qmp.Answer{})
				}
				refused := prepare
				refused.VM = "unknown"
				asks(t, conn, refused,
					&qmp.Answer{Refused: "no such VM", Kind: hypervisor.NotFound})
				asks(t, conn, stopped, &qmp.Answer{}) // a refusal ends nothing
				if err := conn.Close(); err != nil {
					t.Error(err)
				}
			}
			if diff := cmp.Diff(prepare, s.messages()[0]); diff != "" {
				t.Errorf("heard (-want +got):\n%s", diff)
			}
		})
	}
}

func asks(t *testing.T, c *qmp.Conn, m qmp.Message, want *qmp.Answer) {
	t.Helper()
	got, err := c.Ask(t.Context(), &m)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%s (-want +got): %v\n%s", m.Say, err, diff)
	}
}

func TestAnswerErr(t *testing.T) {
	if err := (&qmp.Answer{URI: "tcp:x"}).Err(); err != nil {
		t.Errorf("an answer that agrees is %v", err)
	}
	err := (&qmp.Answer{Refused: "no room", Kind: hypervisor.NoRoom}).Err()
	if !errors.Is(err, hypervisor.NoRoom) || errors.Is(err, hypervisor.Conflict) {
		t.Errorf("got %v", err)
	}
}

// TestStrangers: no peer is heard that does not know the job's secret.
func TestStrangers(t *testing.T) {
	for _, row := range []struct {
		name  string
		token string
		job   hypervisor.JobID
	}{
		{"a wrong secret", "guessed", "job"},
		{"no secret", "", "job"},
		{"the secret of another job", "another secret", "job"},
		{"a job that is not expected", "secret", "unheard of"},
		{"a job that is not expected, with no secret", "", "unheard of"},
		{"no job", "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := listen(t, "unix")
			m := stopped
			m.Job = row.job
			got, err := qmp.NewConn(dial(t, s), row.token).Ask(t.Context(), &m)
			if err != nil || !errors.Is(got.Err(), hypervisor.Transient) {
				t.Errorf("got %v, %v; want a refusal that may end", got, err)
			}
			if heard := s.messages(); len(heard) > 0 {
				t.Errorf("heard %v", heard)
			}
		})
	}
}

// TestSilence: a request waits no longer than its context.
func TestSilence(t *testing.T) {
	hold := make(chan struct{})
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	s := qmp.Serve(l, func(hypervisor.JobID) string { return "secret" },
		func(*qmp.Message) qmp.Answer { <-hold; return qmp.Answer{} })
	defer s.Close()
	defer close(hold)
	for name, context := range map[string]func() (context.Context, context.CancelFunc){
		"a deadline passes": func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(t.Context(), 20*time.Millisecond)
		},
		"it is called off": func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(20*time.Millisecond, cancel)
			return ctx, cancel
		},
		"it was called off before": func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return ctx, cancel
		},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("unix", s.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			ctx, cancel := context()
			defer cancel()
			_, err = qmp.NewConn(conn, "secret").Ask(ctx, &stopped)
			if err == nil || !errors.Is(err, ctx.Err()) {
				t.Errorf("got %v, want %v", err, ctx.Err())
			}
		})
	}
}

// TestClose ends what is under way, and waits for it.
func TestClose(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	began, hold, answered := make(chan struct{}), make(chan struct{}), false
	s := qmp.Serve(l, func(hypervisor.JobID) string { return "secret" },
		func(*qmp.Message) qmp.Answer {
			close(began)
			<-hold
			answered = true
			return qmp.Answer{}
		})
	conn, err := net.Dial("unix", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	idle, err := net.Dial("unix", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	asked := make(chan error, 1)
	go func() {
		_, err := qmp.NewConn(conn, "secret").Ask(context.Background(), &stopped)
		asked <- err
	}()
	<-began
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	if err := <-asked; err == nil {
		t.Error("a closed server has answered")
	}
	select {
	case <-closed:
		t.Error("closed while it was answering")
		closed <- nil
	case <-time.After(50 * time.Millisecond):
	}
	close(hold)
	if err := <-closed; err != nil || !answered {
		t.Errorf("closed with %v before it was answered: %v", err, !answered)
	}
	if _, err := idle.Read(make([]byte, 1)); err == nil {
		t.Error("a closed server speaks")
	}
	if err := s.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed again: %v", err)
	}
	_ = conn.Close()
}

// Example_handover lets a source agree with a target, and tell it that its guest has
// stopped.
func Example_handover() {
	here, there := net.Pipe()
	l := &once{conns: make(chan net.Conn, 1)}
	l.conns <- there
	s := qmp.Serve(l, func(hypervisor.JobID) string { return "secret" },
		func(m *qmp.Message) qmp.Answer {
			if m.Say == qmp.Prepare {
				return qmp.Answer{URI: "tcp:192.0.2.1:4444"}
			}
			return qmp.Answer{}
		})
	defer s.Close()
	c := qmp.NewConn(here, "secret")
	defer c.Close()
	for _, verb := range []qmp.Verb{qmp.Prepare, qmp.Stopped} {
		m := &qmp.Message{Say: verb, Job: "job", VM: "ns/web"}
		a, err := c.Ask(context.Background(), m)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %q, refused %q\n", verb, a.URI, a.Refused)
	}
	// Output:
	// prepare: "tcp:192.0.2.1:4444", refused ""
	// stopped: "", refused ""
}

// A once is a listener to which some connections come.
type once struct {
	conns chan net.Conn
	close sync.Once
}

func (l *once) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l *once) Close() error {
	l.close.Do(func() { close(l.conns) })
	return nil
}

func (l *once) Addr() net.Addr { return &net.UnixAddr{Name: "nowhere", Net: "unix"} }

// envelope is what goes over the wire.
type envelope struct {
	Body json.RawMessage
	MAC  []byte
}
