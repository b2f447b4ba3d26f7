package store

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Format is the version of what [Encode] writes. What a newer godwit has written is not
// read: it may mean something that this one does not know.
const Format = 1

// packedFormat is the version of a record that is stored packed, as that of a host is whose agent says
// that it has many VMs, which are much alike.
const packedFormat = Format + 1

// The sizes of records, in bytes.
const (
	packedFrom = 64 << 10 // a text that is larger is packed
	mostText   = 64 << 20 // before it is packed
	mostParts  = 4 << 20  // values in it: each takes more memory than text
	// mostEncoded is how large an encoded record may be. Source: etcd v3.7 takes requests of 1.5 MiB
	// (server/embed, DefaultMaxRequestBytes), and there is more in them.
	mostEncoded = 1 << 20
	// mostVMs is how many VMs, and how many strays, the record of a host may name: each takes much more memory when it
	// is read than its text, of which a few bytes are enough.
	mostVMs = 1 << 16
)

// envelope is what is stored of a record.
type envelope struct {
	Format int
	Record json.RawMessage `json:",omitempty"`
	Packed []byte          `json:",omitempty"` // instead, with gzip
}

// Encode writes a record for a store. Its version is the store's business, and not in it.
func Encode(r Record) ([]byte, error) {
	text, err := json.Marshal(r.WithVersion(0))
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", r.Key().Kind, r.Key().Name, err)
	}
	if h, is := r.(*Host); is && h.Account != nil && len(text) > packedFrom {
		return json.Marshal(envelope{Format: packedFormat, Packed: pack(text)})
	}
	return json.Marshal(envelope{Format: Format, Record: text})
}

// Fits returns why a record is too large for a store, in words; nil is that it is not.
func Fits(r Record) error {
	text, err := Encode(r)
	if err != nil {
		return err
	}
	return CheckSize(r, text)
}

// CheckSize is Fits for a record that [Encode] has written. A store calls it before each Put.
func CheckSize(r Record, text []byte) error {
	if h, is := r.(*Host); is {
		if err := h.tooMany(); err != nil {
			return err
		}
	}
	if len(text) > mostEncoded {
		return fmt.Errorf("%s %.100s takes %d bytes, and a store takes %d in one record", r.Key().Kind,
			r.Key().Name, len(text), mostEncoded)
	}
	return nil
}

// tooMany returns why the record of a host names too many VMs, in words.
func (h *Host) tooMany() error {
	vms := 0
	if h.Account != nil {
		vms = len(h.Account.VMs)
	}
	if most := max(vms, len(h.Strays)); most > mostVMs {
		return fmt.Errorf("host %s names %d VMs, and a store takes %d in one record", h.Host.Name, most, mostVMs)
	}
	return nil
}

// countVMs returns the error of tooMany for a text, before it is read.
func countVMs(text []byte) error {
	var h struct {
		Strays  elements
		Account struct{ VMs elements }
	}
	if err := json.Unmarshal(text, &h); err != nil {
		return err
	}
	if most := max(h.Strays, h.Account.VMs); most > mostVMs {
		return fmt.Errorf("it names %d VMs, and %d are taken", most, mostVMs)
	}
	return nil
}

// elements is how many elements an array has.
type elements int

// UnmarshalJSON implements json.Unmarshaler: the text is valid.
func (n *elements) UnmarshalJSON(text []byte) error {
	depth, quoted, some := 0, false, false
	count := elements(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
			some = true
		case quoted || c == ' ' || c == '\t' || c == '\n' || c == '\r':
		case c == '[' || c == '{':
			some = some || depth > 0
			depth++
		case c == ']' || c == '}':
			depth--
		case c == ',' && depth == 1:
			count++
		default:
			some = true
		}
	}
	if some {
		count++
	}
	*n = max(*n, count) // of a name that is there twice, both are read
	return nil
}

// Packed reports whether a record is stored packed: to read it takes much more memory than its text. What is no
// record is not.
func Packed(text []byte) bool {
	var e struct{ Format int }
	return json.Unmarshal(text, &e) == nil && e.Format == packedFormat
}

// pack makes a text smaller.
func pack(text []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(text) // a buffer takes everything
	_ = z.Close()
	return b.Bytes()
}

// unpack returns what was packed.
func unpack(packed []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(z, mostText+1))
	if err == nil && (len(text) > mostText || bytes.Count(text, []byte{','}) > mostParts) {
		err = errors.New("it is too large")
	}
	return text, err
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
	if e.Format < 1 || e.Format > packedFormat {
		return nil, bad("it has format %d, and this godwit knows up to %d: upgrade godwit here",
			e.Format, packedFormat)
	}
	if e.Format == packedFormat {
		if key.Kind != HostKind {
			return nil, bad("it is packed, and only the record of a host may be")
		}
		var err error
		if e.Record, err = unpack(e.Packed); err != nil {
			return nil, bad("it is damaged: %w", err)
		}
	}
	r := blank(key.Kind)
	if r == nil {
		return nil, bad("there is no kind %d of record", key.Kind)
	}
	if key.Kind == HostKind && len(e.Record) > packedFrom {
		if err := countVMs(e.Record); err != nil {
			return nil, bad("it is damaged: %w", err)
		}
	}
	if err := json.Unmarshal(e.Record, r); err != nil {
		return nil, bad("it is damaged: %w", err)
	}
	if got := r.Key(); got != key {
		return nil, bad("it holds %s %q", got.Kind, got.Name)
	}
	return r.WithVersion(v), nil
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
	case PlanKind:
		return &Plan{}
	case MaintenanceKind:
		return &Maintenance{}
	}
	return nil
}

var kinds = [...]string{"", "migration", "vm", "host", "rebuild", "lease", "leader", "plan", "maintenance"}

// Kinds lists the kinds of records.
func Kinds() []Kind {
	return []Kind{MigrationKind, VMKind, HostKind, RebuildKind, LeaseKind, LeaderKind, PlanKind,
		MaintenanceKind}
}

// String returns the word for the kind; stores use it in their keys.
func (k Kind) String() string {
	if int(k) < len(kinds) && k > 0 {
		return kinds[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}
