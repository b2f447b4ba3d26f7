package boltstore_test

import (
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/boltstore"
	"github.com/godwit-vm/godwit/store"
)

// An agent brings the move of a disk further as it was asked for, and no disk elsewhere.
func TestAnAgentMovesDisksAsItWasAsked(t *testing.T) {
	disk := hypervisor.Disk{Name: "data", Path: "/old"}
	asked := &store.VM{VM: hypervisor.VM{ID: "v"}.WithDisks([]hypervisor.Disk{disk}), Host: "n1",
		DiskChanges: []store.DiskChange{{Move: &store.DiskMove{Disk: "data", To: "/new"}, By: "ann"}}}
	with := func(v *store.VM, path string, how func(*store.DiskMove)) *store.VM {
		next := *v
		next.ChangeMove(0, how)
		next.VM = next.VM.AtPath("data", path)
		return &next
	}
	begun := with(asked, "/old", func(m *store.DiskMove) { m.Begun = true })
	switched := with(begun, "/new", func(m *store.DiskMove) { m.Switched, m.From, m.Boots = true, "/old", 2 })
	for _, row := range []struct {
		name      string
		old, next *store.VM
		may       bool
	}{
		{"it begins", asked, begun, true},
		{"it is copied", begun, with(begun, "/old", func(m *store.DiskMove) { m.Copied, m.Total = 1, 2 }), true},
		{"the disk is there", begun, switched, true},
		{"it has failed then", switched, with(switched, "/old", func(m *store.DiskMove) {
			m.Begun, m.Switched, m.From, m.Boots = false, false, "", 0
		}), true},
		{"to another path", begun, with(begun, "/other", func(m *store.DiskMove) { m.Switched, m.From = true, "/old" }), false},
		{"back to another path", switched, with(switched, "/other", func(m *store.DiskMove) {
			m.Begun, m.Switched, m.From = false, false, ""
		}), false},
		{"from elsewhere", begun, with(begun, "/new", func(m *store.DiskMove) { m.Switched, m.From = true, "/other" }), false},
		{"before it has the path", begun, with(begun, "/old", func(m *store.DiskMove) { m.Switched, m.From = true, "/old" }), false},
		{"what is asked for", asked, with(asked, "/old", func(m *store.DiskMove) { m.To = "/other" }), false},
		{"that it is cancelled", begun, with(begun, "/old", func(m *store.DiskMove) { m.Cancel = true }), false},
	} {
		records := store.NewMemory()
		stored, err := records.Put(t.Context(), row.old)
		if err != nil {
			t.Fatal(err)
		}
		_, why, err := boltstore.Judge(t.Context(), records, "n1", false, row.next.WithVersion(stored.RecordVersion()), nil)
		if err != nil || (why == "") != row.may {
			t.Errorf("%s: %q, %v", row.name, why, err)
		}
	}
}
