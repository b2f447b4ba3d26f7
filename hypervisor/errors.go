package hypervisor

import "fmt"

// Error is a hypervisor operation that failed.
type Error struct {
	Op   string   // the method: "Migrate"
	Host HostName // where
	VM   VMID     // on what, if anything
	Kind Kind     // what may be done about it
	Err  error    // the backend's own words
}

// Error says what happened, to what, where and why.
func (e *Error) Error() string {
	on := ""
	if e.VM != "" {
		on = " " + string(e.VM)
	}
	at := ""
	if e.Host != "" {
		at = " on " + string(e.Host)
	}
	if e.Err == nil {
		return fmt.Sprintf("%s%s%s: %s", e.Op, on, at, e.Kind)
	}
	return fmt.Sprintf("%s%s%s: %s: %v", e.Op, on, at, e.Kind, e.Err)
}

// Unwrap returns the backend's own error.
func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, hypervisor.Transient) work.
func (e *Error) Is(target error) bool { return target == error(e.Kind) }

// A Kind says what a caller may do about an error.
type Kind uint8

// The kinds of errors.
const (
	// Unknown: the operation may or may not have taken effect. Observe, then
	// decide. It is the zero value: what is not classified is not known.
	Unknown Kind = iota
	// NotFound: there is no such VM or job here.
	NotFound
	// Unsupported: this backend cannot do that, now or later.
	Unsupported
	// Conflict: the present state forbids it; observe and decide again.
	Conflict
	// Transient: it did not take effect and may succeed later.
	Transient
	// Invalid: the arguments are wrong; repeating them cannot help.
	Invalid
	// NoRoom: the host lacks memory, CPUs or disk.
	NoRoom
)

var kinds = [...]string{"unknown outcome", "not found", "unsupported", "conflict", "transient",
	"invalid", "no room"}

// Error names the kind; a Kind is an error so that errors.Is finds it.
func (k Kind) Error() string { return word(kinds[:], int(k)) }

// MarshalText writes the kind's name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.Error()), nil }

// UnmarshalText reads the kind's name, and refuses what is none.
func (k *Kind) UnmarshalText(text []byte) error { return parse(k, kinds[:], "kind of error", text) }
