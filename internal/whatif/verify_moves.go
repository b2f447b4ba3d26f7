package whatif

import (
	"fmt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/plan"
)

// CheckMoves returns the first thing that is wrong with a plan: a move of a VM that is
// not there or cannot move, or one that a condition forbids in some order in which
// the moves of its wave may begin and end.
func CheckMoves(f *plan.Fleet, waves []plan.Wave) error {
	_, err := follow(f, waves)
	return err
}

// CheckEmpties does what CheckMoves does, and reports a VM that is on one of the hosts at the
// end.
func CheckEmpties(f *plan.Fleet, waves []plan.Wave, hosts []hypervisor.HostName) error {
	b, err := follow(f, waves)
	emptied := set(hosts)
	for _, v := range f.VMs {
		if at := b.vms[v.ID].Home; err == nil && emptied[at] {
			err = fmt.Errorf("%s is on %s at the end", v.ID, at)
		}
	}
	return err
}

// follow returns the occupancy after all waves.
func follow(f *plan.Fleet, waves []plan.Wave) (*occupancy, error) {
	b := occupancyOf(f)
	for n, wave := range waves {
		if err := b.wave(wave); err != nil {
			return b, fmt.Errorf("wave %d: %w", n+1, err)
		}
	}
	return b, nil
}

func (b *occupancy) wave(wave plan.Wave) error {
	moving := map[hypervisor.VMID]bool{}
	for _, m := range wave { // every VM is on both hosts
		v, ok := b.vms[m.VM]
		target, known := b.at[m.Target]
		if !ok || !known || v.Home != m.Source || m.Source == "" || v.Pinned != "" ||
			moving[m.VM] {
			return fmt.Errorf("%+v is no move of a VM that is there and can move", m)
		}
		moving[m.VM] = true
		if b.hosts[target], ok = b.hosts[target].With(&v.VM); !ok {
			return fmt.Errorf("%+v: the target cannot hold it", m)
		}
	}
	for _, m := range wave {
		if err := b.last(m, wave); err != nil {
			return err
		}
	}
	for _, m := range wave {
		v, source, target := b.vms[m.VM], b.at[m.Source], b.at[m.Target]
		b.hosts[source], _ = b.hosts[source].Without(&v.VM, false)
		b.hosts[target].Incoming--
		v.Home = m.Target
		b.vms[m.VM] = v
	}
	return nil
}

// last checks a move as if it began last, when its target is fullest. Conditions that
// ask for company must not depend on another move of the wave.
func (b *occupancy) last(m plan.Move, wave plan.Wave) error {
	v, target := b.vms[m.VM], &b.hosts[b.at[m.Target]]
	full := *target
	*target, _ = full.Without(&v.VM, true)
	o := b.asks(&v, m.Source)
	why := placement.CheckAll(b.rules, &v.VM, target, o)
	if *target = full; len(why) > 0 {
		return fmt.Errorf("%+v: %v", m, why)
	}
	if !plan.Rules(&v.VM) { // it asks for no company
		return nil
	}
	for _, o := range wave {
		if other := b.vms[o.VM]; o != m && plan.DependsOn(&v.VM, &other.VM) {
			return fmt.Errorf("%+v: it asks to be with %s, which moves meanwhile", m, o.VM)
		}
	}
	return nil
}
