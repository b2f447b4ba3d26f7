package boltstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

const (
	// requestTimeout is how long a request may take to arrive, and an answer to be taken.
	requestTimeout = time.Minute
	// farewell is how long requests that are under way may last when the server ends.
	farewell = 5 * time.Second
	// poll is how long a waiter waits at a store that cannot tell when to look.
	poll = time.Second
)

// Serve answers with a store on a listener until the context ends, and then closes the
// listener and returns nil. Requests that are under way are answered first; a client that waits is
// sent away. The error is why it ended before.
func Serve(ctx context.Context, store store.Store, l net.Listener) error {
	return ServeTo(ctx, store, l, Access{})
}

// ServeTo is Serve for peers with roles: what one has no role for is refused with the kind
// [store.Forbidden], and does nothing.
func ServeTo(ctx context.Context, store store.Store, l net.Listener, access Access) error {
	serving, stop := context.WithCancel(ctx)
	defer stop()
	server := &http.Server{Handler: &handler{store: store, serving: serving, access: access,
		large: make(chan struct{}, 1), copies: make(chan struct{}, 1)}, ReadHeaderTimeout: requestTimeout,
		MaxHeaderBytes: 64 << 10, ConnContext: withPeer, IdleTimeout: requestTimeout}
	server.SetKeepAlivesEnabled(access.Certified != nil)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(limitUsers(l, access)) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve the store on %s: %w", l.Addr(), errors.Join(err, server.Close()))
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if server.Shutdown(last) != nil {
		_ = server.Close() // a client that is cut off does not know what became of it
	}
	<-ended
	return nil
}

// handler answers requests.
type handler struct {
	store   store.Store
	serving context.Context // ends when the server does
	access  Access
	large   chan struct{} // holds the request that takes much memory
	copies  chan struct{} // and the one for a copy of the store
	refusals
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	op := r.URL.Path
	if len(op) > 0 {
		op = op[1:]
	}
	a, status := answer{}, http.StatusOK
	q, done, err := h.read(w, r, op, h.access.role(asker(r.Context())))
	defer done()
	if err == nil {
		a, err = h.answer(r.Context(), op, q)
	} else {
		status = http.StatusBadRequest
	}
	if err != nil {
		a = answer{Error: failureOf(op, err)}
	}
	a.Speaks = ours
	text, err := json.Marshal(a)
	if err != nil {
		http.Error(w, "the answer cannot be written", http.StatusInternalServerError)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(requestTimeout))
	w.Header().Set("Content-Type", "application/json")
	if p := asker(r.Context()); p.Name != "" && time.Since(p.since) > lives {
		w.Header().Set("Connection", "close") // its certificate is checked anew
	}
	w.WriteHeader(status)
	_, _ = w.Write(text) // a client that has gone hears nothing
}

// bad refuses a request that is not understood. Nothing was done.
func bad(format string, a ...any) error {
	return &store.StoreError{Kind: store.Unreadable, Err: fmt.Errorf(format, a...)}
}

// most is how many bytes a request of a role for an operation may have. One that carries no record is short.
func (r Role) most(op string) int64 {
	switch {
	case r == NoRole: // to be told so
		return small
	case op == opGet || op == opChanges || op == opWait:
		return small
	case r == Agent:
		return maxOfAgent
	}
	return maxRequest
}

// small is how many bytes a request of an agent has usually.
const small = 64 << 10

// read reads a request, whose sender may be hostile, and returns what is called when it was answered. Those
// that take much memory when they are decoded, here or later, are read one after the other, and written so:
// long ones of agents, and packed records. What only reads, and may wait for long, keeps no other waiting.
func (h *handler) read(w http.ResponseWriter, r *http.Request, op string, role Role) (q request, done func(),
	err error) {
	done = func() {}
	text, err := receive(w, r, role.most(op))
	long := role == Agent && len(text) > small
	if err == nil && long {
		done, err = turn(r.Context(), h.large)
	}
	if err == nil {
		q, err = decode(text)
	}
	if err == nil && !long && q.Record != nil && store.Packed(q.Record.Text) {
		done, err = turn(r.Context(), h.large)
	}
	if op != opPut && op != opDelete {
		done()
		done = func() {}
	}
	if err == nil && op == opBackup && role.may(op) { // until its answer was sent
		done, err = turn(r.Context(), h.copies)
	}
	return q, done, err
}

// turn waits until no other request has a place. It returns what gives it back.
func turn(ctx context.Context, place chan struct{}) (done func(), err error) {
	select {
	case place <- struct{}{}:
		return func() { <-place }, nil
	case <-ctx.Done():
		return func() {}, ctx.Err()
	}
}

// receive reads the bytes of a request.
func receive(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	if r.Method != http.MethodPost {
		return nil, bad("the method is %s, and must be POST", r.Method)
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(requestTimeout))
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if _, is := errors.AsType[*http.MaxBytesError](err); is {
		return nil, bad("the request has more than %d bytes", most)
	} else if err != nil {
		return nil, bad("the request is cut off: %w", err)
	}
	_ = control.SetReadDeadline(time.Time{}) // a client that waits may stay
	return text, nil
}

// decode reads what a request says.
func decode(text []byte) (request, error) {
	var q request
	var who struct{ Speaks formats } // the rest may mean something else in others
	if err := json.Unmarshal(text, &who); err != nil {
		return q, bad("the request is no JSON: %w", err)
	}
	if err := understood(who.Speaks, "client"); err != nil {
		return q, bad("%w", err)
	}
	if err := json.Unmarshal(text, &q); err != nil {
		return q, bad("the request is not understood: %w", err)
	}
	if len(q.While) > maxWhile {
		return q, bad("the write depends on %d records; at most %d are allowed", len(q.While),
			maxWhile)
	}
	return q, nil
}

// answer does what a request asks.
func (h *handler) answer(ctx context.Context, op string, q request) (answer, error) {
	feed := store.Feed{Host: hypervisor.HostName(q.Host), Leases: q.Signs}
	if q.Seen != nil {
		ctx = store.WithMark(ctx, *q.Seen)
	}
	asked, err := h.admitted(ctx, op)
	if err != nil {
		return answer{}, err
	}
	if op == opChanges || op == opWait {
		if err := h.readable(&asked, feed); err != nil {
			return answer{}, err
		}
		if err := checkFeed(feed); err != nil {
			return answer{}, err
		}
	}
	switch op {
	case opGet:
		return h.get(ctx, &asked, q)
	case opPut, opDelete:
		return h.write(ctx, &asked, q)
	case opChanges:
		c, err := h.store.Changes(ctx, feed, q.Since)
		if err != nil {
			return answer{}, err
		}
		return sendChanges(&asked, c)
	case opWait:
		return answer{}, h.wait(ctx, feed, q.Since)
	case opHistory, opAmend:
		a, err := h.history(ctx, &asked, q)
		h.done(&asked, err)
		return a, err
	case opBackup:
		return h.backup(ctx)
	}
	return answer{}, bad("there is no operation %q", op)
}

// checkFeed refuses a feed that no store has: each that is followed is remembered.
func checkFeed(f store.Feed) error {
	if len(f.Host) > maxHost {
		return bad("the name of the host has %d bytes; at most %d are taken", len(f.Host), maxHost)
	}
	if err := f.Check(); err != nil {
		return bad("%w", err)
	}
	return nil
}

func (h *handler) get(ctx context.Context, asked *Asked, q request) (answer, error) {
	k, err := q.Key.from()
	if err != nil {
		return answer{}, bad("%w", err)
	}
	r, err := h.store.Get(ctx, k)
	if err != nil || r == nil {
		return answer{}, err
	}
	s, err := sendRecord(asked.shown(r))
	return answer{Record: &s}, err
}

// history answers what the store knows of its past, or changes that.
func (h *handler) history(ctx context.Context, asked *Asked, q request) (answer, error) {
	s, knows := h.store.(store.Historian)
	switch {
	case !knows:
		return answer{}, bad("this store knows no history")
	case asked.Op == opHistory:
		past, instance, err := s.History(ctx)
		return answer{History: &past, Instance: instance}, err
	case q.History == nil:
		return answer{}, bad("%s of nothing", asked.Op)
	case asked.Role == Agent:
		old, _, err := s.History(ctx)
		if err != nil {
			return answer{}, err
		}
		next := *q.History
		if old.Version != next.Version {
			return answer{}, &store.StoreError{Op: opAmend, Kind: store.Stale}
		}
		if why := agentMayAmend(asked.Peer.host(), old, next); why != "" {
			return answer{}, asked.notIts(why)
		}
	}
	past, err := s.Amend(ctx, *q.History)
	return answer{History: &past}, err
}

// backup answers a copy of the store.
func (h *handler) backup(ctx context.Context) (answer, error) {
	s, can := h.store.(interface {
		Backup(context.Context, io.Writer) (int64, error)
	})
	if !can {
		return answer{}, bad("this store makes no copies of itself")
	}
	if sized, is := h.store.(interface{ Size() (int64, error) }); is {
		size, err := sized.Size()
		if err != nil {
			return answer{}, err
		}
		if size > mostCopied {
			return answer{}, tooLong(size)
		}
	}
	var all limited
	_, err := s.Backup(ctx, &all)
	if all.over {
		err = tooLong(mostCopied + 1)
	}
	return answer{Backup: all.text.Bytes()}, err
}

// tooLong is the error of a store whose copy no answer takes.
func tooLong(size int64) error {
	return &store.StoreError{Op: opBackup, Kind: store.Full, Err: fmt.Errorf("a copy of it has %d bytes or more, and a "+
		"controller sends %d at most: stop the controller of bolt's file and give the command again, which copies "+
		"the file then; of etcd use etcdctl snapshot save", size, mostCopied)}
}

// limited is a buffer that takes no more than is sent.
type limited struct {
	text bytes.Buffer // not embedded: io.Copy would use its ReadFrom, which has no limit
	over bool
}

// Write implements io.Writer.
func (l *limited) Write(text []byte) (int, error) {
	if int64(l.text.Len()+len(text)) > mostCopied {
		l.over = true
		return 0, io.ErrShortWrite
	}
	return l.text.Write(text)
}

// write puts or deletes a record.
func (h *handler) write(ctx context.Context, asked *Asked, q request) (answer, error) {
	op := asked.Op
	var while []store.Record
	for _, c := range q.While {
		r, err := c.from()
		if err != nil {
			return answer{}, bad("%w", err)
		}
		while = append(while, r)
	}
	switch {
	case op == opDelete && q.Delete != nil:
		r, err := q.Delete.from()
		if err != nil {
			return answer{}, bad("%w", err)
		}
		if err = h.changing(ctx, asked, r, while); err == nil {
			err = h.store.Delete(ctx, r, while...)
		}
		h.done(asked, err)
		return answer{}, err
	case op == opPut && q.Record != nil:
		r, err := q.Record.from()
		if err != nil {
			return answer{}, bad("%w", err)
		}
		var stored store.Record
		if err = h.changing(ctx, asked, r, while); err == nil {
			stored, err = h.store.Put(ctx, r, while...)
		}
		h.done(asked, err)
		if err != nil {
			return answer{}, err
		}
		s := sent{Key: keyTo(stored.Key()), Version: stored.RecordVersion()} // the client has the rest
		return answer{Record: &s}, nil
	}
	return answer{}, bad("%s of nothing", op)
}

// done tells of a write that was refused for its peer, or that was done and is an operator's.
func (h *handler) done(q *Asked, err error) {
	if q.Refused != nil || err == nil && q.asks() {
		h.tell(*q)
	}
}

func sendChanges(asked *Asked, c store.Changes) (answer, error) {
	a := answer{Next: c.Next, Reset: c.Reset}
	for _, r := range c.Records {
		s, err := sendRecord(asked.shown(r))
		if err != nil {
			return answer{}, err
		}
		a.Records = append(a.Records, s)
	}
	for _, k := range c.Gone {
		a.Gone = append(a.Gone, keyTo(k))
	}
	return a, nil
}

// wait ends with the client, with the server, or when there is something to look at.
func (h *handler) wait(ctx context.Context, f store.Feed, since store.Revision) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.serving, cancel)()
	var err error
	if w, is := h.store.(store.Waiter); is {
		err = w.Wait(ctx, f, since)
	} else {
		select {
		case <-ctx.Done():
		case <-time.After(poll):
		}
	}
	if ctx.Err() != nil {
		return &store.StoreError{Op: opWait, Key: store.Key{Name: string(f.Host)},
			Kind: store.Unavailable, Err: errors.New("the server of the store ends")}
	}
	return err
}
