package backend

import (
	"errors"
	"fmt"
	"strings"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Errorf makes an error of a kind.
func Errorf(kind hypervisor.Kind, format string, a ...any) error {
	return &hypervisor.Error{Kind: kind, Err: fmt.Errorf(format, a...)}
}

// KindOf returns the kind that an error carries, and Unknown when it carries none.
func KindOf(err error) hypervisor.Kind {
	if e, ok := errors.AsType[*hypervisor.Error](err); ok {
		return e.Kind
	}
	return hypervisor.Unknown
}

// OpName returns the name of a command or an adjustment, which an error calls its
// operation.
func OpName(v any) string { return strings.TrimPrefix(fmt.Sprintf("%T", v), "hypervisor.") }

// Bare returns what went wrong without kinds and without saying where: [Node.Explain] tells
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

// ErrorText returns what went wrong without saying where.
func ErrorText(err error) string { return Bare(err).Error() }
