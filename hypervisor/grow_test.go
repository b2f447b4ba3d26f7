package hypervisor_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
)

// What a VM with 1 GiB, 2 CPUs and the room of this hardware becomes while it runs, worked out by
// hand; words are of the refusal.
func TestAVMThatRunsGrows(t *testing.T) {
	const mib, gib = hypervisor.MiB, hypervisor.GiB
	room := hypervisor.Hardware{MaxMemory: 4 * gib, MaxCPUs: 4}
	for _, r := range []struct {
		name     string
		hardware *hypervisor.Hardware
		memory   hypervisor.Bytes
		cpus     int
		dimms    []hypervisor.Bytes
		words    string
	}{
		{"both", &room, 2 * gib, 3, []hypervisor.Bytes{gib}, ""},
		{"all of it", &room, 4 * gib, 4, []hypervisor.Bytes{3 * gib}, ""},
		{"nothing", nil, gib, 2, nil, ""},
		{"a second module", &hypervisor.Hardware{MaxMemory: 4 * gib, DIMMs: []hypervisor.Bytes{256 * mib}},
			gib + 128*mib, 2, []hypervisor.Bytes{256 * mib, 128 * mib}, ""},
		{"no hardware", nil, 2 * gib, 2, nil, "started without room for more memory"},
		{"no more CPUs", &hypervisor.Hardware{MaxMemory: 4 * gib, MaxCPUs: 2}, gib, 3, nil,
			"started without room for more CPUs"},
		{"too much", &room, 5 * gib, 2, nil, "started with room for 4GiB"},
		{"too many", &room, gib, 5, nil, "started with room for 4"},
		{"less memory", &room, 512 * mib, 2, nil, "gives no memory back"},
		{"fewer CPUs", &room, 2 * gib, 1, nil, "gives no CPU back"},
		{"a part of a block", &room, gib + 64*mib, 2, nil, "multiples of 128MiB"},
		{"a part of a page", &hypervisor.Hardware{MaxMemory: 4 * gib, Hugepages: gib}, gib + 512*mib, 2, nil,
			"multiples of 1GiB"},
		{"no slot", &hypervisor.Hardware{MaxMemory: 8 * gib, DIMMs: slices.Repeat([]hypervisor.Bytes{mib}, 16)},
			2 * gib, 2, nil, "16 slots"},
	} {
		vm := hypervisor.VM{ID: "v", Memory: gib, CPUs: 2, Hardware: r.hardware}
		before := hypervisor.Hardware{}
		if r.hardware != nil {
			before = *r.hardware
		}
		got, err := vm.Grow(hypervisor.VM{ID: "v", Memory: r.memory, CPUs: r.cpus, Hardware: r.hardware})
		if r.words != "" {
			if !errors.Is(err, hypervisor.Conflict) || !strings.Contains(err.Error(), r.words) || !got.Equal(vm) {
				t.Errorf("%s: %v, and %+v", r.name, err, got)
			}
			continue
		}
		want := before
		want.DIMMs = r.dimms
		if err != nil || !got.Equal(hypervisor.VM{ID: "v", Memory: r.memory, CPUs: r.cpus, Hardware: &want}) {
			t.Errorf("%s: %v, %+v with %+v", r.name, err, got, got.Hardware)
		}
		if r.hardware != nil && !vm.Equal(hypervisor.VM{ID: "v", Memory: gib, CPUs: 2, Hardware: &before}) {
			t.Errorf("%s: it was changed itself: %+v", r.name, r.hardware)
		}
		started := got.Started()
		if started.BootMemory() != r.memory || started.Hardware != nil && started.Hardware.DIMMs != nil {
			t.Errorf("%s: started anew it is %+v", r.name, started.Hardware)
		}
	}
}
