package qemu

import (
	"errors"
	"fmt"
)

// Why a Monitor is not connected. Every error of a command that was not sent,
// or whose answer was lost, because of that wraps one of these or a
// *ProtocolError.
var (
	// ErrNotConnected: there has been no connection yet.
	ErrNotConnected = errors.New("not connected; call Connect")
	// ErrDisconnected: Disconnect was called.
	ErrDisconnected = errors.New("disconnected on request; call Connect")

	// ErrLost: the other end went away, or the connection broke.
	ErrLost = errors.New("the connection to QEMU was lost")
)

// An Error is a command that QEMU answered with a refusal.
type Error struct {
	Command     string // "device_del"
	Class       Class  // never empty
	Description string // QEMU's own words, for people only
}

// Error says which command was refused and why.
func (e *Error) Error() string {
	return fmt.Sprintf("%s: QEMU refused: %s (%s)", e.Command, e.Description, e.Class)
}

// Is makes errors.Is(err, DeviceNotFound) work.
func (e *Error) Is(target error) bool { return target == error(e.Class) }

// A Class is QMP's own classification of refusals. It is an error so that
// errors.Is finds it.
type Class string

// The classes of refusals.
// Source: QEMU 7.2 qapi/error.json (QapiErrorClass).
const (
	// GenericError is everything else, and what a refusal without a class is.
	GenericError Class = "GenericError"
	// CommandNotFound: this QEMU has no such command, or not now.
	CommandNotFound Class = "CommandNotFound"
	// DeviceNotActive: the device failed to become active.
	DeviceNotActive Class = "DeviceNotActive"
	// DeviceNotFound: there is no such device, or job, or node.
	DeviceNotFound Class = "DeviceNotFound"
	// KVMMissingCap: the kernel's KVM lacks what the command needs.
	KVMMissingCap Class = "KVMMissingCap"
)

// Error returns the class as QMP writes it.
func (c Class) Error() string { return string(c) }

// A Failure is a command that QEMU did not refuse, and that did not end well.
type Failure struct {
	Command string  // "migrate", or "connect"
	Outcome Outcome // what is known about its effect
	Err     error   // why
}

// Error says what happened to the command, why, and what may be done.
func (f *Failure) Error() string {
	switch f.Outcome {
	case NotSent:
		return fmt.Sprintf("%s: not sent, so it had no effect: %v", f.Command, f.Err)
	case CarriedOut:
		return fmt.Sprintf("%s: carried out, but its reply is of no use: %v", f.Command, f.Err)
	default:
		return fmt.Sprintf("%s: outcome unknown: %v; observe before repeating it",
			f.Command, f.Err)
	}
}

// Unwrap returns why.
func (f *Failure) Unwrap() error { return f.Err }

// Is makes errors.Is(err, NotSent) work.
func (f *Failure) Is(target error) bool { return target == error(f.Outcome) }

// An Outcome is what is known about the effect of a command that failed. It is
// an error so that errors.Is finds it.
type Outcome uint8

// The outcomes.
const (
	// Unknown: the command, or a part of it, left, and no answer came. It may
	// or may not have taken effect, and may still do so. It is the zero value:
	// what is not classified is not known.
	Unknown Outcome = iota
	// NotSent: not one byte left. It surely had no effect and never will.
	NotSent
	// CarriedOut: QEMU reported success. Only the reply could not be decoded.
	CarriedOut
)

// Error names the outcome.
func (o Outcome) Error() string {
	switch o {
	case NotSent:
		return "not sent"
	case CarriedOut:
		return "carried out"
	default:
		return "outcome unknown"
	}
}

// An UnsupportedError is an ability that this peer or this connection lacks,
// now and later.
type UnsupportedError struct {
	Ability string // "out-of-band commands"
}

// Error names what is lacking.
func (e *UnsupportedError) Error() string {
	return e.Ability + " are not supported by this monitor connection"
}
