package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/godwit-vm/godwit/store"
)

// A Change is a record as it was read or written, told by what has changed since the log
// last told of it.
type Change struct {
	Record  string          `json:"record,omitempty"`  // "migration default/web#1"
	Version uint64          `json:"version,omitempty"` // the store's
	Gone    bool            `json:"gone,omitempty"`    // it is deleted
	Text    json.RawMessage `json:"text,omitempty"`    // all of it, or
	Patch   json.RawMessage `json:"patch,omitempty"`   // what has changed, as RFC 7396 says it
}

// DeltaLog remembers the records as a log has told of them. The writer and the reader of a log
// each have one: what is told is short, and understood. The zero value was told nothing.
type DeltaLog struct{ texts map[store.Key][]byte }

// Encode returns how to tell of a record, without remembering it.
func (t *DeltaLog) Encode(r store.Record) (Change, error) {
	c := Change{Record: nameOf(r.Key()), Version: uint64(r.RecordVersion())}
	text, err := json.Marshal(r.WithVersion(0))
	if err != nil {
		return c, fmt.Errorf("audit log: %s: %w", c.Record, err)
	}
	old, known := t.texts[r.Key()]
	if known && bytes.Equal(old, text) {
		return c, nil
	}
	if known {
		c.Patch = patch(old, text)
	}
	if !t.encodes(c, text) {
		c.Text, c.Patch = text, nil
	}
	return c, nil
}

// encodes reports whether a change that has a patch tells of a text to the last byte.
func (t *DeltaLog) encodes(c Change, text []byte) bool {
	if c.Patch == nil {
		return false
	}
	r, err := t.Decode(c, store.Format)
	if err != nil {
		return false
	}
	again, err := json.Marshal(r.WithVersion(0))
	return err == nil && bytes.Equal(again, text)
}

// Decode returns the record that a change tells of, without remembering it; nil when it is
// gone. Format is the format of records in the log. The error says what makes no sense.
func (t *DeltaLog) Decode(c Change, format int) (store.Record, error) {
	key, err := Key(c.Record)
	if err != nil || c.Gone {
		return nil, err
	}
	text, known := t.texts[key]
	switch {
	case c.Text != nil:
		text = c.Text
	case !known:
		return nil, fmt.Errorf("%s: what it was before is missing", c.Record)
	case c.Patch != nil:
		if text, err = apply(text, c.Patch); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Record, err)
		}
	}
	envelope := fmt.Appendf(nil, `{"Format":%d,"Record":%s}`, format, text)
	return store.Decode(key, envelope, store.Version(c.Version))
}

// Remember takes in that a record was told of. One that cannot be written is forgotten.
func (t *DeltaLog) Remember(r store.Record) {
	text, err := json.Marshal(r.WithVersion(0))
	if err != nil {
		t.Forget(r.Key())
		return
	}
	if t.texts == nil {
		t.texts = map[store.Key][]byte{}
	}
	t.texts[r.Key()] = text
}

// Forget takes in that a record is gone.
func (t *DeltaLog) Forget(key store.Key) { delete(t.texts, key) }

func nameOf(k store.Key) string { return k.Kind.String() + " " + k.Name }

// Key returns the record that a line or a change names.
func Key(name string) (store.Key, error) {
	word, rest, _ := strings.Cut(name, " ")
	for _, k := range store.Kinds() {
		if k.String() == word {
			return store.Key{Kind: k, Name: rest}, nil
		}
	}
	return store.Key{}, fmt.Errorf("%.100q names no record", name)
}

// patch returns what makes the JSON object now of old, as RFC 7396 says it: null is what is
// removed. A field of a record that is null is as good as none.
func patch(old, now []byte) []byte {
	was, err1 := object(old)
	is, err2 := object(now)
	if err1 != nil || err2 != nil {
		return nil
	}
	text, err := json.Marshal(difference(was, is))
	if err != nil {
		return nil
	}
	return text
}

// object reads a JSON object, without fields that are null.
func object(text []byte) (map[string]any, error) {
	o, err := fields(text)
	if err == nil {
		drop(o)
	}
	return o, err
}

func fields(text []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var o map[string]any
	if err := d.Decode(&o); err != nil {
		return nil, err
	}
	if o == nil {
		return nil, errors.New("it is no JSON object")
	}
	return o, nil
}

// drop takes out fields that are null.
func drop(o map[string]any) {
	for k, v := range o {
		if below, is := v.(map[string]any); is {
			drop(below)
		} else if v == nil {
			delete(o, k)
		}
	}
}

func difference(was, is map[string]any) map[string]any {
	d := map[string]any{}
	for k := range was {
		if _, stays := is[k]; !stays {
			d[k] = nil
		}
	}
	for k, now := range is {
		before, known := was[k]
		a, both := before.(map[string]any)
		b, object := now.(map[string]any)
		switch {
		case known && reflect.DeepEqual(before, now):
		case both && object:
			d[k] = difference(a, b)
		default:
			d[k] = now
		}
	}
	return d
}

// apply returns what a patch makes of a JSON object.
func apply(old, patch []byte) ([]byte, error) {
	was, err := object(old)
	if err != nil {
		return nil, err
	}
	change, err := fields(patch)
	if err != nil {
		return nil, fmt.Errorf("its patch: %w", err)
	}
	return json.Marshal(merged(was, change))
}

func merged(was, change map[string]any) map[string]any {
	for k, now := range change {
		b, object := now.(map[string]any)
		a, both := was[k].(map[string]any)
		switch {
		case now == nil:
			delete(was, k)
		case object && both:
			was[k] = merged(a, b)
		case object:
			was[k] = merged(map[string]any{}, b)
		default:
			was[k] = now
		}
	}
	return was
}
