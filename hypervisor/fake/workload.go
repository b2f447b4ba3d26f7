package fake

import "github.com/godwit-vm/godwit/hypervisor/fake/memory"

// A Workload is how a guest changes its memory. The zero value is an idle guest.
type Workload = memory.Workload
