//go:build !linux || !libvirt_dlopen

package conn

import (
	"context"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// Connect is libvirt's own connection; in this build there is none.
type Connect struct{}

// A Conn is a connection to one libvirtd; in this build there is none.
type Conn struct{}

// errAbsent is what every call answers.
func errAbsent() error {
	return backend.Errorf(hypervisor.Unsupported, "this program was built without libvirt: "+
		"rebuild it for Linux with -tags libvirt_dlopen, and install libvirt.so.0 where it "+
		"runs (apt-get install libvirt0)")
}

// Open checks the Config, then answers Unsupported and says how to get a build that
// can do more.
func Open(_ context.Context, config Config) (*Conn, error) {
	if _, err := config.complete(); err != nil {
		return nil, err
	}
	return nil, errAbsent()
}

// Look answers Unsupported.
func (*Conn) Look(context.Context, func(*Connect) error) error { return errAbsent() }

// Act answers Unsupported.
func (*Conn) Act(context.Context, func(*Connect) error) error { return errAbsent() }

// Begin answers Unsupported.
func (*Conn) Begin(context.Context, func(*Connect) error, func(error)) error {
	return errAbsent()
}

// Ask answers Unsupported.
func Ask[T any](context.Context, *Conn, func(*Connect) (T, error)) (T, error) {
	var none T
	return none, errAbsent()
}

// Close has nothing to close.
func (*Conn) Close() error { return nil }

// Classify returns the kind of an error of this package.
func Classify(err error) hypervisor.Kind { return backend.KindOf(err) }
