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

// Disks grow without room that was made for that; what was given up, and what is unknown, stays.
func TestTheDisksOfAVMThatRunsGrow(t *testing.T) {
	const gib = hypervisor.GiB
	has := []hypervisor.Disk{{Name: "root", Size: 4 * gib}, {Name: "data", Path: "/srv/data", Size: gib},
		{Name: "cd", Path: "/srv/cd", Size: gib, ReadOnly: true}, {Name: "san", Path: "/dev/san"}}
	vm := hypervisor.VM{ID: "v", Memory: gib, CPUs: 2, Hardware: &hypervisor.Hardware{Disks: slices.Clone(has)}}
	for _, r := range []struct {
		name  string
		to    []hypervisor.Disk
		want  map[string]hypervisor.Bytes
		words string
	}{
		{"none", has, nil, ""},
		{"one that it does not have, and one without a size", []hypervisor.Disk{{Name: "new", Size: gib}, {Name: "root"}},
			nil, ""},
		{"two of them", []hypervisor.Disk{{Name: "data", Size: 2 * gib}, {Name: "root", Size: 5 * gib}},
			map[string]hypervisor.Bytes{"data": 2 * gib, "root": 5 * gib}, ""},
		{"one whose size was not known", []hypervisor.Disk{{Name: "san", Size: gib}},
			map[string]hypervisor.Bytes{"san": gib}, ""},
		{"one smaller", []hypervisor.Disk{{Name: "data", Size: 2 * gib}, {Name: "root", Size: gib}}, nil,
			"disk root of 4GiB to 1GiB: a disk never shrinks"},
		{"one that is read only", []hypervisor.Disk{{Name: "cd", Size: 2 * gib}}, nil, "read only"},
	} {
		want := slices.Clone(has)
		for i := range want {
			if size := r.want[want[i].Name]; size > 0 {
				want[i].Size = size
			}
		}
		got, err := vm.Grow(vm.WithDisks(r.to))
		if !slices.Equal(got.Hardware.Disks, want) || !slices.Equal(vm.Hardware.Disks, has) {
			t.Errorf("%s: %+v", r.name, got.Hardware.Disks)
		}
		if r.words == "" && err != nil || r.words != "" &&
			(!errors.Is(err, hypervisor.Conflict) || !strings.Contains(err.Error(), r.words)) {
			t.Errorf("%s: %v", r.name, err)
		}
		bigger := vm.WithDisks(r.to)
		bigger.CPUs++
		if got, err := vm.Grow(bigger); err == nil || !got.Equal(vm) {
			t.Errorf("%s, and a CPU that there is no room for: %+v, %v", r.name, got, err)
		}
	}
}
