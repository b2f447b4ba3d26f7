package qemu

import (
	"context"
	"errors"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/backend"
)

// Refuse makes an error of a kind. backend.Node.Explain completes it.
func Refuse(kind hypervisor.Kind, format string, a ...any) error {
	return backend.Errorf(kind, format, a...)
}

// Classify returns the kind of an error from below. What QEMU refused, it refused
// because of the state that it is in.
func Classify(err error) hypervisor.Kind {
	if e, ok := errors.AsType[*hypervisor.Error](err); ok {
		return e.Kind
	}
	if _, ok := errors.AsType[*UnsupportedError](err); ok {
		return hypervisor.Unsupported
	}
	if e, ok := errors.AsType[*Error](err); ok {
		if e.Class == CommandNotFound {
			return hypervisor.Unsupported
		}
		return hypervisor.Conflict
	}
	switch {
	case errors.Is(err, NotSent), errors.Is(err, context.Canceled),
		errors.Is(err, context.DeadlineExceeded):
		if !errors.Is(err, Unknown) {
			return hypervisor.Transient
		}
	}
	return hypervisor.Unknown
}

// Observing marks an error of something that has no effect: it may be repeated.
func Observing(err error) error {
	if err != nil && Classify(err) == hypervisor.Unknown {
		return &hypervisor.Error{Kind: hypervisor.Transient, Err: err}
	}
	return err
}

// Text returns what went wrong without saying where.
func Text(err error) string { return backend.ErrorText(err) }

// Name returns the name of a command or an adjustment.
func Name(v any) string { return backend.OpName(v) }
