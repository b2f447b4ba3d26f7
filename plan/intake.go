package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
)

// FromInventory returns the fleet to plan for: every host and VM of f, under every condition
// that the controller applies. Migrations that had not ended are taken as not begun.
// What is on a host that is down cannot move; what the controller's drains leave where it is, by
// its eviction strategy or its quotas, is kept. It shares what f says of hosts and VMs.
func FromInventory(f *inventory.Fleet) *Fleet { return without(f, nil) }

// without is Fleet when some VMs have been shut down: they take nothing of their quotas.
func without(f *inventory.Fleet, off []hypervisor.VMID) *Fleet {
	rest := *f
	rest.Migrations = nil
	p := &Fleet{Hosts: inventory.OpenLedger(&rest), Filters: placement.AllFilters(),
		VMs: make([]VM, len(f.VMs))}
	used := inventory.Charged(&rest)
	for _, id := range off {
		used.Set(id, nil, 0)
	}
	for i := range f.VMs {
		v := &f.VMs[i]
		to := &p.VMs[i]
		*to = VM{VM: inventory.PlacementVM(v), Home: v.Host}
		switch at, runs := p.HostAt(v.Host); {
		case v.Host == "":
		case runs && p.Hosts[at].Down:
			to.Pinned = "its host is down: it is started anew elsewhere, not moved"
		default:
			keep(to, f, v, used)
		}
	}
	slices.SortFunc(p.VMs, func(a, b VM) int { return cmp.Compare(a.ID, b.ID) })
	return p
}

// A Drained is a fleet of which hosts are to be drained.
type DrainedFleet struct {
	Fleet *Fleet
	// ShutDown are the VMs on the hosts that are shut down and stay off, by ID: they are not in Fleet.
	ShutDown []hypervisor.VMID
	// Groups are the VMs that leave together: in Fleet one stands for them.
	Groups Groups
	// protected are the VMs that cannot be migrated, and would be shut down but for their eviction strategy.
	protected []hypervisor.VMID
}

// Restarted lists the VMs that a move of the waves shuts down and starts elsewhere, by ID.
func (d *DrainedFleet) Restarted(waves []Wave) []hypervisor.VMID {
	all := []hypervisor.VMID{}
	for _, m := range slices.Concat(waves...) {
		if at, ok := d.Fleet.VMAt(m.VM); ok && d.Fleet.VMs[at].Restarts {
			all = append(all, m.VM)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// DrainFleet is Fleet for a drain of hosts: what the controller cannot migrate there leaves by a restart or is
// shut down, as the terms say, and what is to be on one host leaves together. Its strategy is the
// fleet's.
func DrainFleet(f *inventory.Fleet, hosts []hypervisor.HostName, params evacuation.Params) DrainedFleet {
	d := DrainedFleet{Fleet: FromInventory(f)}
	restarts := d.fates(f, hosts, params)
	d.shutDown(f)
	d.leave(hosts, restarts, params)
	return d
}

// Maintain is [DrainFleet] for hosts that are emptied one after another and come back: what is shut down
// still runs until its host's turn comes, and is to be started there again. So its memory, its CPUs
// and its share of quotas are kept for it; others that are to be with it need not wait for it.
func Maintain(f *inventory.Fleet, hosts []hypervisor.HostName, params evacuation.Params) DrainedFleet {
	d := DrainedFleet{Fleet: FromInventory(f)}
	restarts := d.fates(f, hosts, params)
	slices.Sort(d.ShutDown)
	d.remove(func(h *placement.Host, v *VM) {
		h.UsedMemory += v.Demand()
		h.UsedCPUs += v.DemandCPUs()
	})
	d.leave(hosts, restarts, params)
	return d
}

// fates finds the VMs on the hosts that are shut down, and returns those that are restarted.
func (d *DrainedFleet) fates(f *inventory.Fleet, hosts []hypervisor.HostName,
	params evacuation.Params) (restarts []*inventory.VM) {
	params.Strategy = f.EvictionStrategy
	for i := range f.VMs {
		v := &f.VMs[i]
		at, known := d.Fleet.HostAt(v.Host)
		if !slices.Contains(hosts, v.Host) || !known || d.Fleet.Hosts[at].Down {
			continue
		}
		switch params.Unmovable(evacuation.Terms{}, v.Strategy, v.Migratable) {
		case evacuation.Restart:
			restarts = append(restarts, v)
		case evacuation.ShutDown:
			d.ShutDown = append(d.ShutDown, v.ID)
		case evacuation.Keep:
			if choice := params.Terms.OnUnmovable; !v.Migratable && v.Strategy.Or(params.Strategy) == evacuation.LiveMigrate &&
				(choice == evacuation.Restart || choice == evacuation.ShutDown) {
				d.protected = append(d.protected, v.ID)
			}
		}
	}
	return restarts
}

// leave lets VMs leave by a restart, and groups together.
func (d *DrainedFleet) leave(hosts []hypervisor.HostName, restarts []*inventory.VM,
	params evacuation.Params) {
	for _, id := range d.protected {
		at, _ := d.Fleet.VMAt(id)
		d.Fleet.VMs[at].Pinned += "; its eviction strategy LiveMigrate protects it from being shut down"
	}
	for _, v := range restarts {
		at, _ := d.Fleet.VMAt(v.ID)
		restart(&d.Fleet.VMs[at], v)
	}
	if !params.Compatible {
		d.Groups = fold(d.Fleet, hosts)
	}
}

// shutDown leaves out the VMs that are shut down: they hold no room and count in no quota.
func (d *DrainedFleet) shutDown(f *inventory.Fleet) {
	if len(d.ShutDown) == 0 {
		return
	}
	slices.Sort(d.ShutDown)
	d.Fleet = without(f, d.ShutDown)
	d.remove(func(*placement.Host, *VM) {})
}

// remove takes the VMs that are shut down out of the fleet, and what they take off their hosts.
func (d *DrainedFleet) remove(gone func(h *placement.Host, v *VM)) {
	p := d.Fleet
	p.VMs = slices.DeleteFunc(p.VMs, func(v VM) bool {
		_, off := slices.BinarySearch(d.ShutDown, v.ID)
		if at, known := p.HostAt(v.Home); off && known {
			if h, ok := p.Hosts[at].Without(&v.VM, false); ok {
				gone(&h, &v)
				p.Hosts[at] = h
			}
		}
		return off
	})
}

// restart lets a VM leave its host by a restart, unless it is bound to it.
func restart(to *VM, v *inventory.VM) {
	if disks := v.VM.LocalDisks(); len(disks) > 0 {
		to.Kept = append(to.Kept, placement.Reason{Check: "local disks",
			Need: "disks that other hosts reach", Have: disks[0].Name + " is on " + string(v.Host)})
		to.Pinned = texts(to.Kept)
		return
	}
	to.Kept, to.Pinned, to.Restarts = nil, "", true
}

// keep pins a VM that no drain moves.
func keep(to *VM, f *inventory.Fleet, v *inventory.VM, used *placement.QuotaUsage) {
	to.Kept = evacuation.Keeps(evacuation.Params{Strategy: f.EvictionStrategy}, inventory.EvacuationVM(v))
	willing := v.Strategy.Or(f.EvictionStrategy) == evacuation.LiveMigrate
	switch {
	case !v.Migratable && willing: // it blocks the drain
		to.Kept, to.Pinned = nil, cmp.Or(v.NotMigratableReason, "it is marked as not migratable")
		return
	case len(to.Kept) == 0 && v.Migratable:
		to.Kept = used.Lacks(v.Placement.Charges)
	}
	to.Pinned = texts(to.Kept)
}

// texts says reasons in one line.
func texts(why []placement.Reason) string {
	texts := make([]string, len(why))
	for i := range why {
		r := &why[i]
		texts[i] = humanize.Unmet(r.Check, r.Need, r.Have)
	}
	return strings.Join(texts, "; ")
}
