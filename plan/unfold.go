package plan

import (
	"slices"

	"github.com/godwit-vm/godwit/hypervisor"
)

// Unfold names every VM of the groups for which one stood, and counts them. [MaintenancePlan.After] stays as it
// is: [PlanReturn] is asked before.
func (a *MaintenancePlan) Unfold(groups Groups) {
	if len(groups) == 0 {
		return
	}
	a.Moves = 0
	for i := range a.Batches {
		b := &a.Batches[i]
		b.Waves = groups.Waves(b.Waves)
		a.Moves += Count(b.Waves)
	}
	for one := range groups {
		a.VMs += groups.more([]hypervisor.VMID{one})
	}
	for i := range a.Obstacles {
		o := &a.Obstacles[i]
		o.Left = append([]hypervisor.VMID{}, groups.Each(o.Left)...)
		o.Cannot = groups.Each(o.Cannot)
		if waves := groups.Waves([]Wave{o.Moves}); o.Moves != nil {
			o.Moves = append([]Move{}, waves[0]...)
		}
		if o.Failures != nil {
			o.Failures.VMs = groups.Each(o.Failures.VMs)
		}
	}
}

// Unfold names every VM of the groups for which one stood, and counts them.
func (r *ReturnPlan) Unfold(groups Groups) {
	if len(groups) == 0 {
		return
	}
	r.Waves = groups.Waves(r.Waves)
	r.Moves = Count(r.Waves)
	r.Parked = append([]hypervisor.VMID{}, groups.Each(r.Parked)...)
	r.Left = append([]hypervisor.VMID{}, groups.Each(r.Left)...)
}

// Guarded returns which VMs are protected when one stands for groups: it is when one of its group is.
// Nil is all.
func Guarded(protected map[hypervisor.VMID]bool, groups Groups) map[hypervisor.VMID]bool {
	for one, all := range groups {
		if protected != nil && slices.ContainsFunc(all, func(vm hypervisor.VMID) bool {
			return protected[vm]
		}) {
			protected[one] = true
		}
	}
	return protected
}
