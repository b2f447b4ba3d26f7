package qmp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/qmp"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// overheard returns the line with which a source says m.
func overheard(t testing.TB, m qmp.Message, token string) []byte {
	t.Helper()
	here, there := net.Pipe()
	defer there.Close()
	go func() {
		_, _ = qmp.NewConn(here, token).Ask(context.Background(), &m)
		_ = here.Close()
	}()
	line, err := bufio.NewReader(there).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// say sends raw bytes and returns the answer, if it can be read as one.
func say(t testing.TB, s *handoverTarget, line []byte) (qmp.Answer, error) {
	t.Helper()
	conn := dial(t, s)
	defer conn.Close()
	if _, err := conn.Write(line); err != nil {
		return qmp.Answer{}, err
	}
	reply, err := bufio.NewReader(conn).ReadBytes('\n')
	if err != nil {
		return qmp.Answer{}, err
	}
	var env envelope
	var a qmp.Answer
	return a, errors.Join(json.Unmarshal(reply, &env), json.Unmarshal(env.Body, &a))
}

// changed decodes a line, changes it, and encodes it again.
func changed(t testing.TB, line []byte, change func(*envelope)) []byte {
	t.Helper()
	var env envelope
	if err := json.Unmarshal(line, &env); err != nil {
		t.Fatal(err)
	}
	change(&env)
	line, err := json.Marshal(env)
	if err != nil {
		t.Fatal(err)
	}
	return append(line, '\n')
}

// TestTamperedMessages: a message is heard as it was signed, or not at all.
func TestTamperedMessages(t *testing.T) {
	replace := func(old, new string) func(*envelope) {
		return func(e *envelope) {
			body := bytes.Replace(e.Body, []byte(old), []byte(new), 1)
			if bytes.Equal(body, e.Body) {
				t.Fatalf("%s has no %s", e.Body, old)
			}
			e.Body = body
		}
	}
	for _, row := range []struct {
		name   string
		change func(*envelope)
		kind   hypervisor.Kind
	}{
		{"another verb", replace(`"prepare"`, `"stopped"`), hypervisor.Transient},
		{"another VM", replace(`ns/web`, `ns/bad`), hypervisor.Transient},
		{"another job that is expected, too", replace(`"job"`, `"other"`), hypervisor.Transient},
		{"a job that is not", replace(`"job"`, `"none"`), hypervisor.Transient},
		{"another option", replace(`"PostCopy":true`, `"PostCopy":false`), hypervisor.Transient},
		{"a second verb", replace(`{`, `{"Say":"stopped",`), hypervisor.Transient},
		{"no signature", func(e *envelope) { e.MAC = nil }, hypervisor.Transient},
		{"half a signature", func(e *envelope) { e.MAC = e.MAC[:16] }, hypervisor.Transient},
		{"a bit of the signature", func(e *envelope) { e.MAC[0] ^= 1 }, hypervisor.Transient},
		{"no body", func(e *envelope) { e.Body = json.RawMessage("7") }, hypervisor.Invalid},
		{"nothing for a body", func(e *envelope) { e.Body = json.RawMessage("null") },
			hypervisor.Transient},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := listen(t, "unix")
			a, err := say(t, s, changed(t, overheard(t, prepare, "secret"), row.change))
			if err != nil || a.Refused == "" || a.Kind != row.kind {
				t.Errorf("got %+v, %v; want a refusal, %v", a, err, row.kind)
			}
			if heard := s.messages(); len(heard) > 0 {
				t.Errorf("heard %+v", heard)
			}
		})
	}
	t.Run("nothing", func(t *testing.T) {
		s := listen(t, "unix")
		if a, err := say(t, s, overheard(t, prepare, "secret")); err != nil || a.URI == "" {
			t.Errorf("got %+v, %v", a, err)
		}
	})
}

// TestImpostors: a source believes no peer that does not know the secret, and no
// answer to another message.
func TestImpostors(t *testing.T) {
	s := listen(t, "unix")
	genuine := func(m qmp.Message) []byte {
		conn := dial(t, s)
		defer conn.Close()
		_, _ = conn.Write(overheard(t, m, "secret"))
		line, err := bufio.NewReader(conn).ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	again, other := stopped, stopped
	again.Downtime++
	other.VM = "unknown"
	unsigned := func(body string) []byte { return []byte(`{"Body":` + body + "}\n") }
	for _, row := range []struct {
		name    string
		answer  []byte
		refused bool // it is an answer, and it refuses
	}{
		{"the answer to this message", genuine(stopped), false},
		{"the answer to another message", genuine(again), false},
		{"an unsigned answer", unsigned(`{}`), false},
		{"an answer with a changed body", changed(t, genuine(stopped),
			func(e *envelope) { e.Body = json.RawMessage(`{"URI":"tcp:203.0.113.1:1"}`) }), false},
		{"an unsigned refusal", unsigned(`{"Refused":"unknown"}`), true},
		{"a signed refusal of another message", genuine(other), true},
		{"no JSON", []byte("hello\n"), false},
		{"no body", []byte("{}\n"), false},
		{"an empty line", []byte("\n"), false},
		{"half a line", []byte(`{"Body":`), false},
		{"silence and the end", nil, false},
		{"a line of ten megabytes", append(bytes.Repeat([]byte("x"), 10<<20), '\n'), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			here, there := net.Pipe()
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer there.Close()
				_, _ = bufio.NewReader(there).ReadBytes('\n')
				_, _ = there.Write(row.answer)
			}()
			c := qmp.NewConn(here, "secret")
			a, err := c.Ask(t.Context(), &stopped)
			_ = c.Close()
			<-done
			want := row.name == "the answer to this message"
			switch {
			case row.refused && (err != nil || a.Err() == nil):
				t.Errorf("got %+v, %v; want a refusal", a, err)
			case !row.refused && want != (err == nil):
				t.Errorf("got %+v, %v", a, err)
			}
		})
	}
}

// TestNoise: what is no message is refused or hung up on, and harms no other.
func TestNoise(t *testing.T) {
	s := listen(t, "tcp")
	neighbor := qmp.NewConn(dial(t, s), "secret")
	for _, row := range []struct {
		name    string
		bytes   []byte
		refused bool
	}{
		{"garbage", []byte("\x16\x03\x01\x00garbage\n"), true},
		{"an HTTP request", []byte("GET / HTTP/1.1\r\n"), true},
		{"an empty line", []byte("\n"), true},
		{"an empty object", []byte("{}\n"), true},
		{"an array that is deep", []byte(strings.Repeat("[", 60<<10) + "\n"), true},
		{"a body of the wrong type", []byte(`{"Body":{"Job":1},"MAC":""}` + "\n"), true},
		{"a signature that is none", []byte(`{"Body":{},"MAC":"!"}` + "\n"), true},
		{"a line of 64 KiB and one byte", append(bytes.Repeat([]byte(" "), 64<<10), '\n'), false},
		{"a line of ten megabytes", append(bytes.Repeat([]byte("x"), 10<<20), '\n'), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, err := say(t, s, row.bytes)
			if row.refused && (err != nil || a.Refused == "") {
				t.Errorf("got %+v, %v; want a refusal", a, err)
			}
			if !row.refused && err == nil {
				t.Errorf("got %+v; want the end of the connection", a)
			}
			asks(t, neighbor, stopped, &qmp.Answer{})
		})
	}
	t.Run("half a line and the end", func(t *testing.T) {
		conn := dial(t, s).(*net.TCPConn)
		_, _ = conn.Write([]byte(`{"Body":`))
		_ = conn.CloseWrite()
		if reply, err := io.ReadAll(conn); err != nil || len(reply) > 0 {
			t.Errorf("got %q, %v", reply, err)
		}
		asks(t, neighbor, stopped, &qmp.Answer{})
	})
	t.Run("a message in pieces, and two at once", func(t *testing.T) {
		conn := dial(t, s)
		line := overheard(t, stopped, "secret")
		for _, part := range [][]byte{line[:1], line[1:20], line[20:], append(line, line...)} {
			_, _ = conn.Write(part)
			time.Sleep(time.Millisecond)
		}
		r := bufio.NewReader(conn)
		for range 3 {
			reply, err := r.ReadBytes('\n')
			if err != nil || !bytes.Contains(reply, []byte("MAC")) {
				t.Errorf("got %q, %v", reply, err)
			}
		}
	})
}

// TestManyConnections: a host hears a thousand sources, and lets the next ones go while all of
// them have shown a token.
func TestManyConnections(t *testing.T) {
	const most = 1024
	s := listen(t, "unix")
	first := qmp.NewConn(dial(t, s), "secret")
	asks(t, first, stopped, &qmp.Answer{})
	conns := make([]net.Conn, 0, most)
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	for len(conns) < most-1 {
		conn, err := net.Dial("unix", s.Addr().String())
		switch {
		case errors.Is(err, syscall.EAGAIN): // it has not let in those before yet
			time.Sleep(time.Millisecond)
		case err != nil:
			t.Skipf("this machine does not let us open so many files: %v", err)
		default:
			conns = append(conns, conn)
			asks(t, qmp.NewConn(conn, "secret"), stopped, &qmp.Answer{})
		}
	}
	over := dial(t, s)
	_ = over.SetReadDeadline(time.Now().Add(5 * time.Second)) // who is let in has 10 s to speak
	if _, err := over.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("one too many was let in: %v", err)
	}
	asks(t, first, stopped, &qmp.Answer{})
	_ = conns[0].Close()
	// There is room again.
	testutil.Eventually(t, "a connection is served again", func() error {
		conn := qmp.NewConn(dial(t, s), "secret")
		defer conn.Close()
		a, err := conn.Ask(t.Context(), &stopped)
		if err != nil {
			return err
		}
		return a.Err()
	})
}

// FuzzServer: whatever a line is, the server answers with a refusal or hangs up,
// unless it is signed.
func FuzzServer(f *testing.F) {
	f.Add([]byte("{}"))
	f.Add([]byte(`{"Body":{"Say":"stopped","Job":"job"},"MAC":"AAAA"}`))
	f.Add([]byte(`{"Body":{"Job":"unheard of"},"MAC":""}`))
	f.Add(overheard(f, stopped, "guessed"))
	l, err := net.Listen("unix", filepath.Join(f.TempDir(), "s"))
	if err != nil {
		f.Fatal(err)
	}
	genuine := overheard(f, stopped, "secret")
	s := &handoverTarget{}
	s.Server = qmp.Serve(l, func(id hypervisor.JobID) string { return tokens[id] }, s.answer)
	f.Cleanup(func() { _ = s.Close() })
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.Contains(line, bytes.TrimSpace(genuine)) {
			return
		}
		before := len(s.messages())
		a, err := say(t, s, append(line, '\n'))
		if err == nil && a.Refused == "" {
			t.Errorf("%q was answered: %+v", line, a)
		}
		if heard := s.messages(); len(heard) != before {
			t.Errorf("%q was heard: %+v", line, heard[before:])
		}
	})
}
