package boltstore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/godwit-vm/godwit/store"
)

// A Client is the store behind a socket, or behind controllers on a network. It is a [store.Store] and a
// [store.Waiter], and safe for concurrent use. Of a socket there is nothing to close.
type Client struct {
	path string // or the addresses, for people
	http *http.Client

	// Of a network, on which a server may be gone without a word; of a socket they are nothing.
	places  *places
	remote  bool
	waiting time.Duration // of a wait, which then begins anew
}

var (
	_ store.Historian = (*Client)(nil)
	_ store.Waiter    = (*Client)(nil)
)

// Dial makes a client of the server that listens on a path, now or later: no server needs
// to be there yet. The error says that there cannot be one.
func Dial(path string) (*Client, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	return &Client{path: path, http: &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, // a connection that was used is no proof of a server
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		},
	}}}, nil
}

// Close closes connections that are kept for later calls.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// call asks the server. The error is a *store.StoreError.
func (c *Client) call(ctx context.Context, op string, key store.Key, q request) (answer, error) {
	q.Speaks = ours
	if seen, is := store.MarkOf(ctx); is {
		q.Seen = &seen
	}
	fail := func(kind store.StoreKind, err error) (answer, error) {
		return answer{}, &store.StoreError{Op: op, Key: key, Kind: kind,
			Err: fmt.Errorf("at %s: %w", c.path, err)}
	}
	text, err := json.Marshal(q)
	if err != nil {
		return fail(store.Unreadable, err)
	}
	if len(text) > maxRequest {
		return fail(store.Unreadable, fmt.Errorf("the request has %d bytes; at most %d are "+
			"taken", len(text), maxRequest))
	}
	ctx, patience := c.patience(ctx, op, len(text))
	defer patience.end()
	a, reached, err := c.exchange(ctx, op, text, patience)
	if err != nil || a.Error != nil && a.Error.Kind == store.Unavailable.Error() {
		c.turn()
	}
	if _, is := errors.AsType[*versionError](err); is {
		return fail(store.Unreadable, err)
	}
	if err != nil && reached && (op == opPut || op == opDelete || op == opAmend) {
		return fail(store.Unanswered, err)
	}
	if err != nil {
		return fail(store.Unavailable, err)
	}
	if a.Error != nil {
		return answer{}, a.Error.from()
	}
	return a, nil
}

// exchange sends a request and reads the answer. reached says that a server may have heard
// it.
func (c *Client) exchange(ctx context.Context, op string,
	text []byte, p *patience) (_ answer, reached bool, err error) {
	var connected atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) {
			connected.Store(true)
			p.begin()
		},
	})
	r, err := http.NewRequestWithContext(traced, http.MethodPost, "http://store/"+op,
		bytes.NewReader(text))
	if err != nil {
		return answer{}, false, err
	}
	r.GetBody = nil // what was sent is not sent again
	got, err := c.http.Do(r)
	if err != nil {
		return answer{}, connected.Load(), plain(err)
	}
	defer got.Body.Close()
	text, err = io.ReadAll(io.LimitReader(p.over(got.Body), maxAnswer+1))
	if err != nil {
		return answer{}, true, err
	}
	if len(text) > maxAnswer {
		return answer{}, true, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	a, err := readAnswer(text)
	return a, true, err
}

// plain is an error without the address that http made up.
func plain(err error) error {
	if e, is := errors.AsType[*url.Error](err); is {
		return e.Err
	}
	return err
}

func readAnswer(text []byte) (answer, error) {
	var who struct{ Speaks formats }
	if err := json.Unmarshal(text, &who); err != nil {
		return answer{}, fmt.Errorf("the answer is no JSON: %w", err)
	}
	if err := understood(who.Speaks, "server"); err != nil {
		return answer{}, err
	}
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		return answer{}, fmt.Errorf("the answer is not understood: %w", err)
	}
	return a, nil
}

// Get implements store.Store.
func (c *Client) Get(ctx context.Context, key store.Key) (store.Record, error) {
	a, err := c.call(ctx, opGet, key, request{Key: keyTo(key)})
	if err != nil || a.Record == nil {
		return nil, err
	}
	r, err := a.Record.from()
	if err == nil && r.Key() != key {
		return nil, &store.StoreError{Op: opGet, Key: key, Kind: store.Unreadable,
			Err: fmt.Errorf("at %s: the answer is %s %q", c.path, r.Key().Kind, r.Key().Name)}
	}
	return r, err
}

// Put implements store.Store.
func (c *Client) Put(ctx context.Context, r store.Record,
	while ...store.Record) (store.Record, error) {
	key := r.Key()
	s, err := sendRecord(r)
	if err != nil {
		return nil, &store.StoreError{Op: opPut, Key: key, Kind: store.Unreadable, Err: err}
	}
	a, err := c.call(ctx, opPut, key, request{Record: &s, While: conditionsOf(while)})
	if err != nil {
		return nil, err
	}
	if a.Record == nil || a.Record.Version == 0 {
		return nil, &store.StoreError{Op: opPut, Key: key, Kind: store.Unanswered,
			Err: fmt.Errorf("at %s: the answer has no version", c.path)}
	}
	return r.WithVersion(a.Record.Version), nil
}

// Delete implements store.Store.
func (c *Client) Delete(ctx context.Context, r store.Record, while ...store.Record) error {
	gone := conditionOf(r)
	_, err := c.call(ctx, opDelete, r.Key(), request{Delete: &gone, While: conditionsOf(while)})
	return err
}

// Changes implements store.Store.
func (c *Client) Changes(ctx context.Context, f store.Feed,
	since store.Revision) (store.Changes, error) {
	a, err := c.call(ctx, opChanges, store.Key{Name: string(f.Host)},
		request{Host: []byte(f.Host), Signs: f.Leases, Since: since})
	if err != nil {
		return store.Changes{}, err
	}
	all := store.Changes{Next: a.Next, Reset: a.Reset}
	for _, s := range a.Records {
		r, err := s.from()
		if err != nil {
			return store.Changes{}, err
		}
		all.Records = append(all.Records, r)
	}
	for _, k := range a.Gone {
		key, err := k.from()
		if err != nil {
			return store.Changes{}, &store.StoreError{Op: opChanges, Kind: store.Unreadable,
				Err: err}
		}
		all.Gone = append(all.Gone, key)
	}
	return all, nil
}

// Wait implements store.Waiter.
func (c *Client) Wait(ctx context.Context, f store.Feed, since store.Revision) error {
	wait := func(ctx context.Context) error {
		_, err := c.call(ctx, opWait, store.Key{Name: string(f.Host)},
			request{Host: []byte(f.Host), Signs: f.Leases, Since: since})
		return err
	}
	for c.waiting > 0 {
		once, cancel := context.WithTimeout(ctx, c.waiting)
		err := wait(once)
		over := once.Err() != nil && ctx.Err() == nil
		cancel()
		if !over {
			return err
		}
	}
	return wait(ctx)
}

// History implements store.Historian.
func (c *Client) History(ctx context.Context) (store.History, string, error) {
	a, err := c.call(ctx, opHistory, store.Key{}, request{})
	if err != nil || a.History == nil {
		return store.History{}, "", cmp.Or(err, errNoHistory)
	}
	return *a.History, a.Instance, nil
}

// Amend implements store.Historian.
func (c *Client) Amend(ctx context.Context, h store.History) (store.History, error) {
	a, err := c.call(ctx, opAmend, store.Key{}, request{History: &h})
	if err != nil || a.History == nil {
		return store.History{}, cmp.Or(err, errNoHistory)
	}
	return *a.History, nil
}

// Backup writes a copy of the store, as [Store.Backup] does.
func (c *Client) Backup(ctx context.Context, w io.Writer) (int64, error) {
	a, err := c.call(ctx, opBackup, store.Key{}, request{})
	if err != nil {
		return 0, err
	}
	if _, err := readContents(bytes.NewReader(a.Backup), int64(len(a.Backup))); err != nil {
		return 0, refuse(opBackup, store.Key{Name: c.path}, store.Unreadable, err)
	}
	n, err := w.Write(a.Backup)
	return int64(n), err
}

// errNoHistory: a server of an earlier godwit does not know the operation, and says so.
var errNoHistory = error(&store.StoreError{Op: opHistory, Kind: store.Unreadable,
	Err: errors.New("the answer has no history")})
