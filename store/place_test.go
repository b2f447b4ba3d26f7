package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// Whatever changes how placement sees a VM is noticed, and what does not is not.
func TestPlacedAsNoticesWhatPlacementSees(t *testing.T) {
	old := &store.VM{VM: hypervisor.VM{ID: "a", Memory: hypervisor.GiB, CPUs: 2}, Host: "n1"}
	for _, test := range []struct {
		name   string
		change func(*store.VM)
		same   bool
	}{
		{"nothing", func(*store.VM) {}, true},
		{"where it is", func(v *store.VM) { v.Host = "n2" }, true},
		{"its migration", func(v *store.VM) { v.ActiveMigration = "m" }, true},
		{"its memory", func(v *store.VM) { v.VM.Memory++ }, false},
		{"its CPUs", func(v *store.VM) { v.VM.CPUs++ }, false},
		{"its hardware", func(v *store.VM) {
			v.VM.Hardware = &hypervisor.Hardware{Disks: []hypervisor.Disk{
				{Name: "d", Path: "/d", Size: hypervisor.GiB}}}
		}, false},
		{"the size that it has", func(v *store.VM) {
			v.Size = &store.Size{Memory: 1, CPUs: 1}
		}, false},
		{"its conditions", func(v *store.VM) {
			v.Placement = &placement.Constraints{Zones: []string{"z"}}
		}, false},
		{"its overhead", func(v *store.VM) { v.Overhead = 1 }, false},
		{"its balloon", func(v *store.VM) { v.Balloon = 1 }, false},
		{"its disk", func(v *store.VM) { v.Disk = 1 }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			now := *old
			test.change(&now)
			if got := now.PlacedAs(old); got != test.same {
				t.Errorf("PlacedAs = %v, want %v", got, test.same)
			}
			if diff := cmp.Diff(old.Place(), now.Place()); test.same && diff != "" {
				t.Errorf("it is seen in another way (-old +now):\n%s", diff)
			}
		})
	}
}
