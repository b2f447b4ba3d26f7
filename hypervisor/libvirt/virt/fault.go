package virt

import (
	"errors"
	"fmt"

	"github.com/godwit-vm/godwit/hypervisor"
)

// refuse makes an error of a kind. Who answers the caller completes it with the
// operation, the host and the VM.
func refuse(kind hypervisor.Kind, format string, a ...any) error {
	return &hypervisor.Error{Kind: kind, Err: fmt.Errorf(format, a...)}
}

// classified returns the kind that an error carries, and Unknown if it has none.
func classified(err error) hypervisor.Kind {
	if e, ok := errors.AsType[*hypervisor.Error](err); ok {
		return e.Kind
	}
	return hypervisor.Unknown
}
