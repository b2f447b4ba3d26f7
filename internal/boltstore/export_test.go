package boltstore

import (
	"bytes"
	"context"
	"maps"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/store"
)

// Check reads a file as Open does, and answers the records in it.
func Check(text []byte) ([]store.Record, error) {
	c, err := readContents(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return nil, &store.StoreError{Op: "Open", Kind: kindOf(err), Err: err}
	}
	var all []store.Record
	for s := range maps.Values(c.records) {
		all = append(all, s.record)
	}
	return slices.Clip(all), nil
}

// Abandon lets go of the file without a word to bbolt, as the end of the process does.
func Abandon(s *Store) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail(errClosed)
	_ = s.abandon()
}

// Reach lets a client reach its server by another function.
func (c *Client) Reach(dial func(path string) (net.Conn, error)) {
	c.http.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
		return dial(c.path)
	}
}

// Needed returns the table of roles, and Operated that of fields.
func Needed() map[string]Role           { return needed }
func Operated() map[store.Kind][]string { return operated }

// PerName is how many connections the holder of a certificate may have.
const PerName = perName

// DialOne connects to one server.
var DialOne = dialOne

// Refusals counts what is told of peers that are refused.
type Refusals struct{ refusals }

// Take reports whether the next refusal is told.
func (r *Refusals) Take(name string, now time.Time) (untold int, told bool) { return r.take(name, now) }

// Lives is how long a connection serves.
var Lives = &lives

// Waiting returns how many calls wait, by what is remembered of them.
func (s *Store) Waiting() (calls int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, w := range s.waiting {
		calls += w.calls
	}
	return max(calls, len(s.waiting))
}

// MuchTimeout is how long a server may be silent while there is much to read.
var MuchTimeout = &muchTimeout

// PlaceOf returns where an address is.
var PlaceOf = placeOf

// MostCopied is how many bytes of a copy of a store are sent.
var MostCopied = &mostCopied
