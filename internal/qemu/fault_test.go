package qemu_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// faultRefusal is what QEMU says no with.
func faultRefusal(class qemu.Class) error {
	return &qemu.Error{Command: "cont", Class: class, Description: "context canceled"}
}

// failure is a command that did not end well.
func failure(o qemu.Outcome, err error) error {
	return &qemu.Failure{Command: "cont", Outcome: o, Err: err}
}

func TestClassify(t *testing.T) {
	for _, row := range []struct {
		name string
		err  error
		kind hypervisor.Kind
		seen hypervisor.Kind // if it was only looking
	}{
		{"what is not classified is not known", io.EOF, hypervisor.Unknown, hypervisor.Transient},
		{"what was classified keeps its kind", qemu.Refuse(hypervisor.NoRoom, "full"),
			hypervisor.NoRoom, hypervisor.NoRoom},
		{"what was classified as unknown may be looked at again",
			qemu.Refuse(hypervisor.Unknown, "?"), hypervisor.Unknown, hypervisor.Transient},
		{"the kind is found below other words",
			fmt.Errorf("a: %w", errors.Join(io.EOF, qemu.Refuse(hypervisor.NotFound, "b"))),
			hypervisor.NotFound, hypervisor.NotFound},
		{"the outermost kind counts",
			qemu.Refuse(hypervisor.Invalid, "%w", qemu.Refuse(hypervisor.NoRoom, "x")),
			hypervisor.Invalid, hypervisor.Invalid},
		{"QEMU refuses because of its state", faultRefusal(qemu.GenericError),
			hypervisor.Conflict, hypervisor.Conflict},
		{"QEMU does not find a device", faultRefusal(qemu.DeviceNotFound),
			hypervisor.Conflict, hypervisor.Conflict},
		{"QEMU does not know a command", faultRefusal(qemu.CommandNotFound),
			hypervisor.Unsupported, hypervisor.Unsupported},
		{"QEMU refuses with a class of the future", faultRefusal("NewError"),
			hypervisor.Conflict, hypervisor.Conflict},
		{"this connection cannot do it", &qemu.UnsupportedError{Ability: "files"},
			hypervisor.Unsupported, hypervisor.Unsupported},
		{"a command that was not sent had no effect", failure(qemu.NotSent, io.EOF),
			hypervisor.Transient, hypervisor.Transient},
		{"a command without an answer may have had one", failure(qemu.Unknown, io.EOF),
			hypervisor.Unknown, hypervisor.Transient},
		{"so may one that was waited for in vain",
			failure(qemu.Unknown, context.DeadlineExceeded),
			hypervisor.Unknown, hypervisor.Transient},
		{"and one that was called off",
			fmt.Errorf("x: %w", failure(qemu.Unknown, context.Canceled)),
			hypervisor.Unknown, hypervisor.Transient},
		{"one that was carried out is not repeated blindly", failure(qemu.CarriedOut, io.EOF),
			hypervisor.Unknown, hypervisor.Transient},
		{"waiting before the command was in vain", context.DeadlineExceeded,
			hypervisor.Transient, hypervisor.Transient},
		{"it was called off before the command", fmt.Errorf("wait: %w", context.Canceled),
			hypervisor.Transient, hypervisor.Transient},
		{"a not-sent among others does not hide an unknown",
			errors.Join(failure(qemu.NotSent, io.EOF), failure(qemu.Unknown, io.EOF)),
			hypervisor.Unknown, hypervisor.Transient},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := qemu.Classify(row.err); got != row.kind {
				t.Errorf("%v is %v, want %v", row.err, got, row.kind)
			}
			seen := qemu.Observing(row.err)
			if got := qemu.Classify(seen); got != row.seen {
				t.Errorf("observing, %v is %v, want %v", row.err, got, row.seen)
			}
			if !errors.Is(seen, row.err) {
				t.Errorf("%v was lost in %v", row.err, seen)
			}
		})
	}
}

func TestObservingNothing(t *testing.T) {
	if err := qemu.Observing(nil); err != nil {
		t.Errorf("success became %v", err)
	}
}

func TestText(t *testing.T) {
	inner := qemu.Refuse(hypervisor.Conflict, "it is %v", hypervisor.Running)
	for _, row := range []struct {
		name string
		err  error
		want string
	}{
		{"the rim's words are left out", inner, "it is Running"},
		{"an error from elsewhere is said as it is", io.EOF, "EOF"},
		{"words around it stay", fmt.Errorf("ask: %w", io.EOF), "ask: EOF"},
		{"a kind without words is said", &hypervisor.Error{Kind: hypervisor.NoRoom},
			(&hypervisor.Error{Kind: hypervisor.NoRoom}).Error()},
	} {
		if got := qemu.Text(row.err); got != row.want {
			t.Errorf("%s: got %q, want %q", row.name, got, row.want)
		}
	}
}

func TestRefuse(t *testing.T) {
	err := qemu.Refuse(hypervisor.Conflict, "it is %v: %w", hypervisor.Running, io.EOF)
	if !errors.Is(err, hypervisor.Conflict) || !errors.Is(err, io.EOF) ||
		errors.Is(err, hypervisor.Transient) {
		t.Errorf("got %v", err)
	}
}
