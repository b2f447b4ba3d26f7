package invariant

import (
	"fmt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement/reserve"
)

// booksAreTrue: each VM holds what it takes where it is at home, and nothing is held by a
// migration that has ended, whatever has happened on the way.
func booksAreTrue(w World) error {
	homes := map[hypervisor.VMID]reserve.Claim{}
	open := map[hypervisor.JobID]bool{}
	for _, vm := range w.VMs() {
		for _, m := range w.Migrations(vm) {
			s := &m.State
			open[m.Spec.ID] = migration.HoldsSlot(s.Phase, s.Target != "", true)
		}
	}
	for _, c := range w.Claims() {
		switch {
		case c.By != "" && !open[c.By]:
			return fmt.Errorf("%s holds %s for %s, which has ended", c.VM, c.Host, c.By)
		case c.By == "" || c.Move != "":
			homes[c.VM] = c
		}
	}
	for _, vm := range w.VMs() {
		v, c := w.VM(vm), homes[vm]
		if want := (reserve.Claim{Host: v.Host, Amount: reserve.Of(v.Place())}); !v.Ended &&
			(c.Host != want.Host || c.Amount != want.Amount) {
			return fmt.Errorf("%s is on %s, and holds %+v", vm, v.Host, c)
		}
		delete(homes, vm)
	}
	for vm, c := range homes {
		return fmt.Errorf("%s is gone, and holds %s", vm, c.Host)
	}
	return nil
}

// notOverbooked: a host that somebody was forced onto is not looked at.
func notOverbooked(w World) error {
	taken, forced := map[hypervisor.HostName]hypervisor.Bytes{}, map[hypervisor.HostName]bool{}
	for _, vm := range w.VMs() {
		v := w.VM(vm)
		forced[v.Host] = forced[v.Host] || v.Forced != nil
		if !v.Ended {
			taken[v.Host] += v.Place().Demand()
		}
	}
	for _, vm := range w.VMs() {
		host := w.VM(vm).Host
		h := w.HostRecord(host)
		if h != nil && taken[host] > h.Host.Memory && !forced[host] {
			return fmt.Errorf("%s is home to %v and has %v", host, taken[host], h.Host.Memory)
		}
	}
	return nil
}
