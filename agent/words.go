package agent

import (
	"errors"
	"fmt"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// errorText returns a backend's own words of an error, for people.
func errorText(err error) string {
	if e, ok := errors.AsType[*hypervisor.Error](err); ok && e.Err != nil {
		return e.Kind.Error() + ": " + e.Err.Error()
	}
	return err.Error()
}

// refuses reports whether an error is of one of the kinds that say no, for good.
func refuses(err error, kinds ...hypervisor.Kind) bool {
	return slices.ContainsFunc(kinds, func(k hypervisor.Kind) bool { return errors.Is(err, k) })
}

// refusal lists every reason, for people.
func refusal(why []placement.Reason) string { return (&hypervisor.Refusal{Reasons: why}).Error() }

// sizeText says how large a VM is, for people.
func sizeText(vm hypervisor.VM) string { return fmt.Sprintf("%v and %d CPUs", vm.Memory, vm.CPUs) }
