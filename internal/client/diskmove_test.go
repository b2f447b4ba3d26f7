package client_test

import (
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/client"
	"github.com/godwit-vm/godwit/store"
)

// The list of VMs shows how far the move of a disk is.
func TestTheMoveOfADiskIsShown(t *testing.T) {
	for _, row := range []struct {
		move store.DiskMove
		why  string
		want string
	}{
		{store.DiskMove{}, "", "it is to move disk data to /new"},
		{store.DiskMove{}, "no room", "it is to move disk data to /new: no room"},
		{store.DiskMove{Begun: true}, "", "it is to move disk data to /new: the copying begins"},
		{store.DiskMove{Begun: true, Copied: 3 * gib, Total: 4 * gib}, "",
			"it is to move disk data to /new: 75% of 4GiB are copied"},
		{store.DiskMove{Begun: true, Switched: true, Copied: gib, Total: 4 * gib}, "",
			"it is to move disk data to /new: it goes over to it"},
		{store.DiskMove{Begun: true, Cancel: true}, "", "it is to cancel the move of disk data"},
	} {
		row.move.Disk, row.move.To = "data", "/new"
		v := &store.VM{VM: hypervisor.VM{ID: "default/web", Memory: gib, CPUs: 1}, Host: "n1", Boots: 1,
			DiskChanges: []store.DiskChange{{Move: &row.move, Why: row.why}}}
		_, c := cluster(t, v, &store.Host{Host: hypervisor.Host{Name: "n1"}})
		if got := client.OfVM(c, v); got.Why != row.want || got.State != "running" {
			t.Errorf("%+v: it is %s: %q, want %q", row.move, got.State, got.Why, row.want)
		}
	}
}
