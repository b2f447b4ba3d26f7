package qemu

import (
	"context"
	"errors"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/fault"
	"github.com/godwit-vm/godwit/internal/monitor"
)

// Refuse makes an error of a kind. Who answers the caller completes it.
func Refuse(kind hypervisor.Kind, format string, a ...any) error {
	return fault.Refuse(kind, format, a...)
}

// Classify returns the kind of an error from below. What QEMU refused, it refused
// because of the state that it is in.
func Classify(err error) hypervisor.Kind {
	if e, ok := errors.AsType[*hypervisor.Error](err); ok {
		return e.Kind
	}
	if _, ok := errors.AsType[*monitor.UnsupportedError](err); ok {
		return hypervisor.Unsupported
	}
	if e, ok := errors.AsType[*monitor.Error](err); ok {
		if e.Class == monitor.CommandNotFound {
			return hypervisor.Unsupported
		}
		return hypervisor.Conflict
	}
	switch {
	case errors.Is(err, monitor.NotSent), errors.Is(err, context.Canceled),
		errors.Is(err, context.DeadlineExceeded):
		if !errors.Is(err, monitor.Unknown) {
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

// Bare returns what went wrong without kinds and without saying where: the rim tells
// both.
func Bare(err error) error { return fault.Bare(err) }

// Text returns what went wrong without saying where.
func Text(err error) string { return fault.Text(err) }

// Name returns the name of a command or an adjustment.
func Name(v any) string { return fault.Name(v) }
