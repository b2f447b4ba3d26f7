package sim

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/store"
)

// measured is for how long an agent measures a guest.
const measured = time.Second

// DirtyRates returns what the agent of a VM has measured of its guest before the world begins: what an
// agent does from time to time that is started with --measure-dirty-rate. Put it into the record of the VM.
func DirtyRates(vm hypervisor.VM, load fake.Workload) *store.DirtyRates {
	return (*store.DirtyRates)(nil).With(hypervisor.Bandwidth(min(vm.Memory, load.Dirtied(measured))), Epoch)
}
