// Package fault makes and reads the errors inside a hypervisor backend. The rim
// completes them with the operation, the host and the VM.
package fault

import (
	"errors"
	"fmt"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Refuse makes an error of a kind.
func Refuse(kind hypervisor.Kind, format string, a ...any) error {
	return &hypervisor.Error{Kind: kind, Err: fmt.Errorf(format, a...)}
}

// Kind returns the kind that an error carries, and Unknown when it carries none.
func Kind(err error) hypervisor.Kind {
	if e, ok := errors.AsType[*hypervisor.Error](err); ok {
		return e.Kind
	}
	return hypervisor.Unknown
}

// Name returns the name of a command or an adjustment, which an error calls its
// operation.
func Name(v any) string { return strings.TrimPrefix(fmt.Sprintf("%T", v), "hypervisor.") }

// Bare returns what went wrong without kinds and without saying where: the rim tells
// both.
func Bare(err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if ok && len(joined.Unwrap()) == 1 { // joined with what did not fail
		return Bare(joined.Unwrap()[0])
	}
	if e, ok := err.(*hypervisor.Error); ok && e.Op == "" && e.Err != nil {
		return Bare(e.Err)
	}
	return err
}

// Text returns what went wrong without saying where.
func Text(err error) string { return Bare(err).Error() }
