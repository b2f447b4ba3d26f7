package boltstore

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// Protocol is the version of what is said on the socket.
const Protocol = 1

// The limits of what is taken from the other side.
const (
	maxRequest = 16 << 20 // bytes
	maxOfAgent = 4 << 20  // bytes of an agent's: see store.Fits
	maxAnswer  = 1 << 30  // bytes
	maxWhile   = 1024     // records that a write depends on
	maxHost    = 1024     // bytes of the name of a host whose feed is read
)

// mostCopied is how many bytes of a copy of a store are sent: they go as text, of which 4 bytes are 3, beside little else.
var mostCopied = int64(maxAnswer/4*3 - 64<<10)

// formats says what one side speaks.
type formats struct {
	Protocol int
	Record   int
}

var ours = formats{Protocol, store.Format}

// A versionError says that the two sides do not understand each other.
type versionError struct {
	who   string
	has   formats
	older string // which side is to be upgraded
}

func (e *versionError) Error() string {
	return fmt.Sprintf("the %s speaks protocol %d with records of format %d, and this godwit "+
		"speaks %d with %d: upgrade the %s", e.who, e.has.Protocol, e.has.Record,
		ours.Protocol, ours.Record, e.older)
}

// understood answers why the other side is not; "server" or "client" is who it is.
func understood(f formats, who string) error {
	other := map[string]string{"server": "client", "client": "server"}[who]
	switch {
	case f.Protocol > ours.Protocol || f.Record > ours.Record:
		return &versionError{who, f, other}
	case f.Protocol < ours.Protocol || f.Record < ours.Record:
		return &versionError{who, f, who}
	}
	return nil
}

// The operations, which are the paths of the requests.
const (
	opGet     = "Get"
	opPut     = "Put"
	opDelete  = "Delete"
	opChanges = "Changes"
	opWait    = "Wait"
	opHistory = "History"
	opAmend   = "Amend"
	opBackup  = "Backup"
)

// request is what a client asks. Which fields there are depends on the operation.
type request struct {
	Speaks formats
	Key    key         `json:",omitzero"`  // to get
	Record *sent       `json:",omitempty"` // to put
	Delete *condition  `json:",omitempty"`
	While  []condition `json:",omitempty"`
	Host   []byte      `json:",omitempty"` // of a feed; bytes, since a name may be no text
	Signs  bool        `json:",omitempty"`
	Since  store.Revision
	// Seen is what the client has seen of the store; nil: it is to be answered whatever that is.
	Seen    *store.Mark    `json:",omitempty"`
	History *store.History `json:",omitempty"` // to amend
}

// answer is what a server says.
type answer struct {
	Speaks  formats
	Record  *sent          `json:",omitempty"` // nil: there is none
	Records []sent         `json:",omitempty"`
	Gone    []key          `json:",omitempty"`
	Next    store.Revision `json:",omitempty"`
	Reset   bool           `json:",omitempty"`
	Error   *failure       `json:",omitempty"`
	History *store.History `json:",omitempty"`
	// Instance is in which one of its software the store is.
	Instance string `json:",omitempty"`
	Backup   []byte `json:",omitempty"`
}

// key is a record's key. The kind goes by its word, and the name as bytes.
type key struct {
	Kind string
	Name []byte
}

// sent is a record with its version.
type sent struct {
	Key     key
	Version store.Version
	Text    json.RawMessage
}

// condition is a record that must be stored as it was read, or is to be deleted.
type condition struct {
	Key     key
	Version store.Version
}

// failure is a *store.StoreError.
type failure struct {
	Op   string
	Key  key
	Kind string
	Why  string
}

var storeKinds = []store.StoreKind{store.Unanswered, store.Stale, store.Unavailable,
	store.Unreadable, store.Full, store.SetBack, store.Foreign, store.Forbidden}

func keyTo(k store.Key) key { return key{k.Kind.String(), []byte(k.Name)} }

func (k key) from() (store.Key, error) {
	for _, kind := range store.Kinds() {
		if kind.String() == k.Kind {
			return store.Key{Kind: kind, Name: string(k.Name)}, nil
		}
	}
	return store.Key{}, fmt.Errorf("%q is no kind of record", k.Kind)
}

func sendRecord(r store.Record) (sent, error) {
	text, err := store.Encode(r)
	return sent{keyTo(r.Key()), r.RecordVersion(), text}, err
}

func conditionOf(r store.Record) condition { return condition{keyTo(r.Key()), r.RecordVersion()} }

func conditionsOf(while []store.Record) []condition {
	var all []condition
	for _, r := range while {
		all = append(all, conditionOf(r))
	}
	return all
}

func (c condition) from() (store.Record, error) {
	k, err := c.Key.from()
	return mention{k, c.Version}, err
}

func (s sent) from() (store.Record, error) {
	k, err := s.Key.from()
	if err != nil {
		return nil, &store.StoreError{Op: "Decode", Key: store.Key{Name: string(s.Key.Name)},
			Kind: store.Unreadable, Err: err}
	}
	return store.Decode(k, s.Text, s.Version)
}

// failureOf puts an error of a store on the wire.
func failureOf(op string, err error) *failure {
	e, is := errors.AsType[*store.StoreError](err)
	if !is {
		return &failure{Op: op, Kind: store.Unanswered.Error(), Why: err.Error()}
	}
	f := &failure{Op: e.Op, Key: keyTo(e.Key), Kind: e.Kind.Error()}
	if e.Err != nil {
		f.Why = e.Err.Error()
	}
	return f
}

// from is the error as the server's store gave it. What this side does not know of it is
// Unanswered.
func (f *failure) from() error {
	e := &store.StoreError{Op: f.Op, Kind: store.Unanswered}
	if k, err := f.Key.from(); err == nil {
		e.Key = k
	} else {
		e.Key = store.Key{Name: string(f.Key.Name)} // an operation on no record
	}
	for _, kind := range storeKinds {
		if kind.Error() == f.Kind {
			e.Kind = kind
		}
	}
	if f.Why != "" {
		e.Err = errors.New(f.Why)
	}
	return e
}

// mention is a record of which only key and version are told.
type mention struct {
	key     store.Key
	version store.Version
}

func (m mention) Key() store.Key                           { return m.key }
func (m mention) RecordVersion() store.Version             { return m.version }
func (m mention) WithVersion(v store.Version) store.Record { return mention{m.key, v} }
func (m mention) RelatedHosts() []hypervisor.HostName      { return nil }
