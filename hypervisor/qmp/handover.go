package qmp

// This file is what the two hosts of a migration say to each other besides
// the memory: how it will be done, and that the source has stopped for good.
//
//	source → target   Prepare   with these options      ← where to send
//	source → target   Stopped   the guest stands        ← the target knows
//	source → target   Kept      the VM stays here       ← the target has ended
//
// A target starts only after the second, and never after the third. Each message is
// one line of JSON and is answered by one; all may be repeated. Both are signed with
// the job's token, a secret that the target made and put into its address, which
// reaches the source through those who manage both: no other can let a target
// start, or say where memory is to be sent. What is said is no secret.
//
// It decides nothing: the target's host answers through a function.

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// maxLine bounds a message, in bytes.
const maxLine = 64 << 10

// messageTimeout bounds how long a listener waits for the rest of a message and for its
// answer to be taken.
const messageTimeout = 10 * time.Second

// idle is how long a connection may be quiet between two messages.
const idle = time.Hour

// most is how many connections a listener holds at once, and mostUnproven how many of one peer
// that has not shown a token yet: see [crowdedOut].
const (
	most         = 1024
	mostUnproven = 64
)

// A message is what a source says.
type message struct {
	Say    verb
	From   hypervisor.HostName
	Job    hypervisor.JobID
	VM     hypervisor.VMID
	Paused bool // the VM's operator has paused it

	// With Stopped: how long the guest has stood already, and whether its transfer has failed:
	// a target that lacks something will never have it.

	Downtime time.Duration
	Failed   bool

	// With Prepare.

	Machine string // a digest of the VM's description
	Options hypervisor.TransferOptions
	Cold    bool // the VM is Shutoff: only its local disks move
}

// A verb is a kind of message.
type verb string

// The kinds of messages.
const (
	verbPrepare verb = "prepare"
	verbStopped verb = "stopped"
	verbKept    verb = "kept"
)

// An handoverAnswer is what a target replies.
type handoverAnswer struct {
	Refused string          // why not; "" when it agrees
	Kind    hypervisor.Kind // of the refusal
	URI     string          // to Prepare: where the target's process listens
	Disks   string          // to Prepare: where its local disks are exported
}

// Err returns a refusal as an error.
func (a *handoverAnswer) Err() error {
	if a.Refused == "" {
		return nil
	}
	return &hypervisor.Error{Kind: a.Kind, Err: errors.New(a.Refused)}
}

// A signed is what goes over the wire.
type signed struct {
	Body json.RawMessage
	MAC  []byte
}

// sign returns the signature of body under token, in the context of what it
// answers.
func sign(token string, context, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write(context)
	mac.Write([]byte{'\n'})
	mac.Write(body)
	return mac.Sum(nil)
}

// seal encodes and signs v as a line, and returns the signature, too.
func seal(token string, context []byte, v any) (line, mac []byte, err error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, nil, err
	}
	mac = sign(token, context, body)
	line, err = json.Marshal(signed{body, mac})
	return append(line, '\n'), mac, err
}

// A peerConn is a source's connection to a target's host. It is for one caller at a
// time.
type peerConn struct {
	conn  net.Conn
	read  *bufio.Reader
	token string
}

// newConn speaks over an established connection, which it then owns, about the
// job that the token belongs to.
func newConn(conn net.Conn, token string) *peerConn {
	return &peerConn{conn, bufio.NewReaderSize(conn, 4096), token}
}

// Close ends the connection.
func (c *peerConn) Close() error { return c.conn.Close() }

// Ask says a message and waits for its answer, as long as ctx lasts. After an
// error the connection is of no use, and whether the message was heard is not
// known.
func (c *peerConn) Ask(ctx context.Context, m *message) (*handoverAnswer, error) {
	stop := context.AfterFunc(ctx, func() { c.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	line, mac, err := seal(c.token, nil, m)
	if err != nil {
		return nil, err
	}
	if _, err := c.conn.Write(line); err != nil {
		return nil, because(ctx, err)
	}
	if line, err = readLine(c.read); err != nil {
		return nil, because(ctx, err)
	}
	var env signed
	a := new(handoverAnswer)
	if err := errors.Join(json.Unmarshal(line, &env), json.Unmarshal(env.Body, a)); err != nil {
		return nil, fmt.Errorf("the target's host answered no answer: %w", err)
	}
	genuine := hmac.Equal(env.MAC, sign(c.token, mac, env.Body))
	if !genuine && a.Refused == "" { // a host that does not know the job cannot sign, but can refuse
		return nil, errors.New("the answer is not signed by the target's host")
	}
	return a, nil
}

// because names the end of ctx when it caused err.
func because(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	return err
}

var errLong = fmt.Errorf("a message of more than %d bytes", maxLine)

// readLine reads a line of at most maxLine bytes.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, errLong
		case err == nil:
			return bytes.TrimSpace(line), nil
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, io.ErrUnexpectedEOF
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// A server hears sources.
type server struct {
	listener net.Listener
	token    func(hypervisor.JobID) string
	answer   func(*message) handoverAnswer
	mu       sync.Mutex
	conns    map[net.Conn]*caller
	came     uint64 // how many connections
	closed   bool
	running  sync.WaitGroup
}

// A caller is what is known of one connection.
type caller struct {
	peer   string // where it comes from, without the port
	number uint64 // later ones have higher numbers
	proven bool   // it has shown the token of a job
}

// crowdedOut returns which connection makes room for one more from a peer: the oldest one that
// has shown no token, of that peer when it has too many of them, else of all when there are too
// many; nil when there is room. A source speaks as soon as it is connected: an old connection
// that has said nothing has nothing to say. With no room, and all of them proven, ok is false.
func crowdedOut[C comparable](all map[C]*caller, peer string) (oldest C, crowded, ok bool) {
	var ofPeer C
	unproven := 0
	for c, who := range all {
		if who.proven {
			continue
		}
		if first := all[oldest]; first == nil || who.number < first.number {
			oldest = c
		}
		if who.peer != peer {
			continue
		}
		unproven++
		if first := all[ofPeer]; first == nil || who.number < first.number {
			ofPeer = c
		}
	}
	switch {
	case unproven >= mostUnproven:
		return ofPeer, true, true
	case len(all) < most:
		return oldest, false, true
	}
	return oldest, true, all[oldest] != nil
}

// serve answers the messages that come to a listener, which it then owns: those
// that are signed with the token of their job. A job without a token, "", is not
// known. Both functions are called by many goroutines at once.
func serve(l net.Listener, token func(hypervisor.JobID) string,
	answer func(*message) handoverAnswer) *server {
	s := &server{listener: l, token: token, answer: answer, conns: map[net.Conn]*caller{}}
	s.running.Add(1)
	go s.accept()
	return s
}

// Addr returns where the server listens.
func (s *server) Addr() net.Addr { return s.listener.Addr() }

// Close stops listening, ends all connections and waits for the answers that are
// being made.
func (s *server) Close() error {
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	err := s.listener.Close()
	s.running.Wait()
	return err
}

func (s *server) accept() {
	defer s.running.Done()
	for {
		c, err := s.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // out of files, or a caller that has gone: others may come
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if s.admit(c) {
			go s.serve(c)
		} else {
			c.Close()
		}
	}
}

// admit counts a connection, and closes an idle one when there are too many, or refuses it.
func (s *server) admit(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	peer := peerOf(c)
	oldest, crowded, ok := crowdedOut(s.conns, peer)
	if s.closed || !ok {
		return false
	}
	if crowded {
		oldest.Close()
		delete(s.conns, oldest)
	}
	s.came++
	s.conns[c] = &caller{peer: peer, number: s.came}
	s.running.Add(1)
	return true
}

// peerOf returns where a connection comes from, without the port.
func peerOf(c net.Conn) string {
	address := c.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// prove notes that a connection has shown a token, and reports whether it is still admitted.
func (s *server) prove(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	who := s.conns[c]
	if who != nil {
		who.proven = true
	}
	return who != nil
}

func (s *server) serve(c net.Conn) {
	defer s.running.Done()
	defer func() {
		c.Close()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	r := bufio.NewReaderSize(c, 4096)
	for wait, genuine := messageTimeout, true; genuine; wait = idle {
		c.SetReadDeadline(time.Now().Add(wait))
		line, err := readLine(r)
		if err != nil {
			return
		}
		c.SetWriteDeadline(time.Now().Add(messageTimeout))
		var answer []byte
		answer, genuine = s.hear(c, line) // an unauthenticated client is not listened to again
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

// hear returns the signed answer to a line, whatever it is, and whether the line was
// signed, too.
func (s *server) hear(c net.Conn, line []byte) (answer []byte, genuine bool) {
	var env signed
	m := new(message)
	refuse := func(k hypervisor.Kind, why string) []byte {
		line, _, _ := seal("", nil, handoverAnswer{Refused: why, Kind: k})
		return line
	}
	if json.Unmarshal(line, &env) != nil || json.Unmarshal(env.Body, m) != nil {
		return refuse(hypervisor.Invalid, "this is no message"), false
	}
	token := s.token(m.Job)
	if token == "" || !hmac.Equal(env.MAC, sign(token, nil, env.Body)) {
		return refuse(hypervisor.Transient, "nothing listens for this job"), false
	}
	if !s.prove(c) {
		return nil, false // it made room for another one
	}
	line, _, err := seal(token, env.MAC, s.answer(m))
	if err != nil {
		return refuse(hypervisor.Unknown, err.Error()), true
	}
	return line, true
}
