package record

import (
	"encoding/json"
	"fmt"
)

// Format is the version of what [Encode] writes. What a newer godwit has written is not
// read: it may mean something that this one does not know.
const Format = 1

// envelope is what is stored of a record.
type envelope struct {
	Format int
	Record json.RawMessage
}

// Encode writes a record for a store. Its version is the store's business, and not in it.
func Encode(r Record) ([]byte, error) {
	text, err := json.Marshal(r.With(0))
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", r.Key().Kind, r.Key().Name, err)
	}
	return json.Marshal(envelope{Format, text})
}

// Decode reads what Encode wrote, and gives it a version. The error is a *[StoreError] of the
// kind Unreadable: the text is damaged, of a newer format, or of another record than key.
func Decode(key Key, text []byte, v Version) (Record, error) {
	bad := func(format string, a ...any) error {
		return &StoreError{Op: "Decode", Key: key, Kind: Unreadable, Err: fmt.Errorf(format, a...)}
	}
	var e envelope
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, bad("it is damaged: %w", err)
	}
	if e.Format < 1 || e.Format > Format {
		return nil, bad("it has format %d, and this godwit knows up to %d: upgrade godwit here",
			e.Format, Format)
	}
	r := blank(key.Kind)
	if r == nil {
		return nil, bad("there is no kind %d of record", key.Kind)
	}
	if err := json.Unmarshal(e.Record, r); err != nil {
		return nil, bad("it is damaged: %w", err)
	}
	if got := r.Key(); got != key {
		return nil, bad("it holds %s %q", got.Kind, got.Name)
	}
	return r.With(v), nil
}

// blank returns an empty record of a kind; nil when there is no such kind.
func blank(k Kind) Record {
	switch k {
	case MigrationKind:
		return &Migration{}
	case VMKind:
		return &VM{}
	case HostKind:
		return &Host{}
	case RebuildKind:
		return &Rebuild{}
	case LeaseKind:
		return &Lease{}
	case LeaderKind:
		return &Leader{}
	}
	return nil
}

var kinds = [...]string{"", "migration", "vm", "host", "rebuild", "lease", "leader"}

// Kinds lists the kinds of records.
func Kinds() []Kind {
	return []Kind{MigrationKind, VMKind, HostKind, RebuildKind, LeaseKind, LeaderKind}
}

// String returns the word for the kind; stores use it in their keys.
func (k Kind) String() string {
	if int(k) < len(kinds) && k > 0 {
		return kinds[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}
