package sim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// reservationsAreTrue: each VM holds what it takes where it is at home, and nothing is held by a
// migration that has ended, whatever has happened on the way.
func reservationsAreTrue(w InvariantWorld) error {
	claims, gone := w.Claims(), hypervisor.VMID("")
	for i := range claims {
		if c := &claims[i]; c.By != "" && !holds(w, c) {
			return fmt.Errorf("%s holds %s for %s, which has ended", c.VM, c.Host, c.By)
		}
	}
	for _, vm := range w.VMs() { // both lists are in the order of VMs
		var home placement.Reservation
		for ; len(claims) > 0 && claims[0].VM <= vm; claims = claims[1:] {
			switch c := &claims[0]; {
			case c.By != "" && c.Move == "": // on the way
			case c.VM == vm:
				home = *c
			default:
				gone = c.VM
			}
		}
		v := w.VM(vm)
		if !v.Ended && (home.Host != v.Host || home.Amount != placement.AmountOf(v.Place())) {
			return fmt.Errorf("%s is on %s, and holds %+v", vm, v.Host, home)
		}
	}
	for _, c := range claims {
		if c.By == "" || c.Move != "" {
			gone = c.VM
		}
	}
	if gone != "" {
		return fmt.Errorf("%s is gone, and holds room", gone)
	}
	return nil
}

// holds reports whether the migration that a claim is for is under way.
func holds(w InvariantWorld, c *placement.Reservation) bool {
	return slices.ContainsFunc(w.Migrations(c.VM), func(m *store.Migration) bool {
		s := &m.State
		return m.Spec.ID == c.By && migration.HoldsSlot(s.Phase, s.Target != "", true)
	})
}

// notOverbooked: a host that a VM was forced onto is not looked at, nor one that began so.
func notOverbooked(w InvariantWorld) error {
	type home struct {
		taken  hypervisor.Bytes
		forced bool
	}
	homes := map[hypervisor.HostName]home{}
	for _, vm := range w.VMs() {
		v := w.VM(vm)
		at := homes[v.Host]
		at.forced = at.forced || v.Forced != nil
		if !v.Ended {
			at.taken += v.Place().Demand()
		}
		homes[v.Host] = at
	}
	for _, host := range slices.Sorted(maps.Keys(homes)) {
		at, h := homes[host], w.HostRecord(host)
		if h != nil && at.taken > h.Host.Memory && !at.forced && !w.Overbooked(host) {
			return fmt.Errorf("%s is home to %v and has %v", host, at.taken, h.Host.Memory)
		}
	}
	return nil
}
