package inventory

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
)

// OpenLedger returns all hosts of a fleet, ordered by name, with what the VMs on them and
// the VMs on their way to them take. An unfinished migration that has a target is
// on its way there; without, it takes nothing yet.
func OpenLedger(f *Fleet) []placement.Host { return open(f, "") }

// open leaves out where one VM is on its way to: a request for a target of a VM
// is answered as if it were not moving.
func open(f *Fleet, resting hypervisor.VMID) []placement.Host {
	hosts := make([]placement.Host, len(f.Hosts))
	for i := range f.Hosts {
		hosts[i] = PlacementHost(&f.Hosts[i])
	}
	index := placement.NewIndex(0, hosts...)
	vms := make(map[hypervisor.VMID]*VM, len(f.VMs))
	for i := range f.VMs {
		v := &f.VMs[i]
		vms[v.ID] = v
		if vm := PlacementVM(v); v.Host != "" && index.Reserve(&vm, v.Host) {
			index.Arrive(v.Host)
		}
	}
	for _, m := range f.Migrations {
		if v := vms[m.VM]; v != nil && m.Chosen != "" && m.Chosen != v.Host && v.ID != resting {
			vm := PlacementVM(v)
			index.Reserve(&vm, m.Chosen)
		}
	}
	hosts = slices.Clone(index.Hosts())
	slices.SortFunc(hosts, func(x, y placement.Host) int { return cmp.Compare(x.Name, y.Name) })
	return hosts
}

// PlacementHost returns a host on which nothing is yet.
func PlacementHost(h *Host) placement.Host {
	return placement.Host{Name: h.Name, Memory: h.Memory, CPUs: h.CPUs, Labels: h.Labels,
		Taints: h.Taints, Down: h.Down, Cordoned: h.Cordoned, Facts: h.Facts, Load: &placement.Load{}}
}

// PlacementVM returns a VM with all that it asks of a host.
func PlacementVM(v *VM) placement.VM {
	return placement.VM{ID: v.ID, Memory: v.Memory, CPUs: v.CPUs, Constraints: v.Placement,
		Overhead: v.Overhead, Balloon: v.Balloon, Disk: v.Disk,
		CPURequest: v.CPURequest}
}

// EvacuationVM returns a VM that runs and is at rest as package evacuation sees it. Moving is the caller's to
// set, for a VM with an unfinished migration.
func EvacuationVM(v *VM) evacuation.VM {
	return evacuation.VM{ID: v.ID, Strategy: v.Strategy, Migratable: v.Migratable,
		NotMigratableReason: v.NotMigratableReason, EvacuateFrom: v.EvacuateFrom, Instances: 1,
		Memory: v.Memory + v.Disk}
}

// An Inquiry is a request for a target of one VM, ready to be decided, and what
// must be known to understand the answer.
type Inquiry struct {
	Request placement.Request // with VM, Source, Rebuild and Inbound set
	Hosts   []placement.Host
	// Quota is why the quotas of its namespace admit no second copy; none is that they do.
	Quota []placement.Reason
	// NotMigratable is why the VM cannot be moved while it runs, which the decision does not look at; "" is that it
	// can, or does not run.
	NotMigratable string
	// Notes say what the decision does not look at, one sentence each.
	Notes []string
}

// Ask returns an inquiry about a VM of the fleet; false when there is no such VM.
// The limit of moves into one host is the fleet's. A VM that does not run, or whose
// host is down, is rebuilt rather than moved.
func Ask(f *Fleet, id hypervisor.VMID) (Inquiry, bool) {
	i := slices.IndexFunc(f.VMs, func(v VM) bool { return v.ID == id })
	if i < 0 {
		return Inquiry{}, false
	}
	v := &f.VMs[i]
	vm := PlacementVM(v)
	q := Inquiry{Hosts: open(f, id), Request: placement.Request{VM: &vm, Source: v.Host,
		Inbound: f.Config.ParallelInboundMigrationsPerNode}}
	at := slices.IndexFunc(q.Hosts, func(h placement.Host) bool { return h.Name == v.Host })
	switch {
	case v.Host == "":
		q.Request.Rebuild = true
		q.Notes = append(q.Notes, "it does not run: it would be started there")
	case at >= 0 && q.Hosts[at].Down:
		q.Request.Rebuild = true
		q.Notes = append(q.Notes, fmt.Sprintf("%s is down: it would be started anew, not moved, "+
			"once %s is known to be dead", v.Host, v.Host))
	case len(v.Placement.Charges) > 0:
		q.Quota = Charged(f).Lacks(v.Placement.Charges)
	}
	if !v.Migratable && !q.Request.Rebuild {
		q.NotMigratable = cmp.Or(v.NotMigratableReason, "it is marked so")
		q.Notes = append(q.Notes, "it cannot be moved while it runs: "+q.NotMigratable)
	}
	for _, m := range f.Migrations {
		if m.VM == id {
			q.Notes = append(q.Notes, fmt.Sprintf("%s moves it already%s", m.ID, towards(m.Chosen)))
		}
	}
	return q, true
}

// Explain decides about the inquiry, quotas included, and says why for every host. No force
// overrules a quota.
func (q *Inquiry) Explain(c *placement.Config) placement.Explanation {
	e := placement.Explain(c, &q.Request, q.Hosts)
	if d := &e.Decision; d.Outcome == placement.Accepted && len(q.Quota) > 0 {
		*d = placement.Decision{Outcome: placement.NoHost, Why: q.Quota, Code: placement.CapacityLacks}
		if q.Request.Host != "" {
			d.Outcome = placement.Conflict
		}
	}
	return e
}

// Charged returns what the VMs of a fleet use of its quotas: each has a copy where it runs, and
// one more at the target of its unfinished migration.
func Charged(f *Fleet) *placement.QuotaUsage {
	u := placement.NewQuotaUsage(f.Quotas)
	moving := map[hypervisor.VMID]int{}
	for _, m := range f.Migrations {
		if m.Chosen != "" {
			moving[m.VM]++
		}
	}
	for i := range f.VMs {
		v := &f.VMs[i]
		copies := moving[v.ID]
		if v.Host != "" {
			copies++
		}
		u.Set(v.ID, v.Placement.Charges, copies)
	}
	return u
}

func towards(host hypervisor.HostName) string {
	if host == "" {
		return ""
	}
	return ", to " + string(host)
}
