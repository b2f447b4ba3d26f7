package controller

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
)

// A group whose VMs are to be on one host leaves a drained host together: the target of the first is one
// that takes them all, and the others hold room there until their turn comes.
// Source: Proxmox VE HA (a bundle with a positive resource affinity moves as a unit); oVirt (a positive
// enforcing affinity group is migrated together).

// tie enters a VM in its groups, untie takes it out.
func (v *cache) tie(g *vmEntry) {
	for _, name := range tied(g) {
		if v.groups == nil {
			v.groups = map[string][]*vmEntry{}
		}
		v.groups[name] = append(v.groups[name], g)
	}
}

func (v *cache) untie(g *vmEntry) {
	for _, name := range tied(g) {
		rest := slices.DeleteFunc(v.groups[name], func(o *vmEntry) bool { return o == g })
		if v.groups[name] = rest; len(rest) == 0 {
			delete(v.groups, name)
		}
	}
}

// tied lists the groups that keep a VM with others on one host.
func tied(g *vmEntry) (names []string) {
	if g.place == nil {
		return nil
	}
	return g.place.Constraints.Binding()
}

// company lists the VMs that are to be with a VM, directly or by others, and itself, by ID. Nil
// is that there are no others. A VM that is off counts as alone.
func (v *cache) company(g *vmEntry) []*vmEntry {
	if !g.binds() {
		return nil
	}
	all, seen := []*vmEntry{g}, map[*vmEntry]bool{g: true}
	add := func(o *vmEntry) {
		if o != nil && !seen[o] && o.rec != nil && !o.rec.Ended && o.host != nil {
			seen[o] = true
			all = append(all, o)
		}
	}
	for i := 0; i < len(all); i++ {
		for _, name := range tied(all[i]) {
			for _, o := range v.groups[name] {
				add(o)
			}
		}
		if all[i].place == nil {
			continue
		}
		for _, id := range all[i].place.Constraints.With {
			if o := v.vms[id]; o != nil && o.place != nil && o.place.Paired(all[i].place) {
				add(o)
			}
		}
	}
	if len(all) == 1 {
		return nil
	}
	slices.SortFunc(all, func(a, b *vmEntry) int { return cmp.Compare(a.rec.VM.ID, b.rec.VM.ID) })
	return all
}

// binds reports whether a VM may have to be on one host with others.
func (g *vmEntry) binds() bool {
	return g.place != nil && (len(g.place.Constraints.With) > 0 || len(tied(g)) > 0)
}

// heads returns where a VM is, or is on its way to.
func (g *vmEntry) heads() hypervisor.HostName {
	for _, f := range g.migrations {
		if m, holds := heldMove(f.rec, g.rec); holds {
			return m.Target
		}
	}
	return g.rec.Host
}

// together returns a VM that stands for all of a group that is to leave a drained host with a VM; nil
// while the VM is alone, one of the group is elsewhere already, or one cannot leave.
func (c *Controller) together(f *migrationEntry) *placement.VM {
	g := f.vm
	if c.core.Compatible || f.rec.Spec.By != migration.Evacuation || f.rec.State.Target != "" ||
		g.host == nil || !g.host.drains {
		return nil
	}
	all := c.cache.company(g)
	vms := make([]*placement.VM, 0, len(all))
	for _, o := range all {
		if o.host != g.host || o.heads() != g.host.name() || c.keeps(o) != nil {
			return nil
		}
		if vm := c.cache.placed(o); o == g {
			vms = slices.Insert(vms, 0, vm)
		} else {
			vms = append(vms, vm)
		}
	}
	if len(vms) == 0 {
		return nil
	}
	if vm, ok := placement.Together(vms); ok {
		return &vm
	}
	return nil
}

// asMember returns a VM as evacuation sees it: one of a group that leaves together is as large as all of
// it, since the group needs a host of that size.
func (c *Controller) asMember(g *vmEntry) evacuation.VM {
	guest := g.asVM()
	if c.core.Compatible || !g.binds() {
		return guest
	}
	for _, o := range c.cache.company(g) {
		if o != g && o.host == g.host {
			guest.Memory += o.rec.Weight()
		}
	}
	return guest
}

// keeps returns what keeps a VM on a drained host, whatever moves it now; nil is nothing.
func (c *Controller) keeps(g *vmEntry) []placement.Reason {
	guest := g.asVM()
	guest.Moving = false
	return evacuation.Keeps(c.config.Evacuation, guest)
}

// whyTogether names the VMs for which one host is looked for, or the VM that keeps the others on a
// drained host.
func (c *Controller) whyTogether(f *migrationEntry) (why []placement.Reason) {
	g := f.vm
	if c.core.Compatible || g.host == nil || !g.host.drains {
		return nil
	}
	all := c.cache.company(g)
	if vm := c.together(f); vm != nil {
		names := make([]string, len(all))
		for i, o := range all {
			names[i] = string(o.rec.VM.ID)
		}
		return []placement.Reason{{Check: "group", Need: "one host for all of it",
			Have: strings.Join(names, ", ")}}
	}
	for _, o := range all {
		if o.host == g.host && o != g && c.keeps(o) != nil {
			why = append(why, placement.Reason{Check: "group", Need: "that all of it can leave",
				Have: string(o.rec.VM.ID) + " stays"})
		}
	}
	return why
}

// saved returns the room that a VM holds where the others of its group are, or are going, until it
// follows them.
func (v *cache) saved(g *vmEntry) (reservedMove, bool) {
	if v.forgiving || g.host == nil || !g.host.drains && g.rec.EvacuateFrom != g.rec.Host || !g.binds() || g.rec.Ended ||
		g.heads() != g.rec.Host {
		return reservedMove{}, false
	}
	at := hypervisor.HostName("")
	for _, o := range v.company(g) {
		switch to := o.heads(); {
		case to == g.rec.Host || to == at:
		case at != "":
			return reservedMove{}, false // they are apart
		default:
			at = to
		}
	}
	return reservedMove{ID: migration.ID(g.rec.VM.ID) + "#group", Target: at, Saved: true,
		Owner: migration.Evacuation.String()}, at != ""
}

// reunite marks the VMs on a host whose group has begun to leave it when its drain is withdrawn: they
// follow, so that the group is on one host again. Nothing is marked of a group that has not begun.
// Source: godwit (Proxmox VE HA and oVirt restore a broken affinity by moving the members that are
// apart; what has arrived is not sent back: it would be copied twice).
func (c *Controller) reunite(ctx context.Context, s *hostEntry, now time.Time) error {
	if c.core.Compatible {
		return nil
	}
	for _, g := range slices.Clone(s.vms) {
		if g.rec.EvacuateFrom != "" || !c.follows(g, s) {
			continue
		}
		next := draft(&c.nextVM, g.rec)
		next.EvacuateFrom = s.name()
		stored, err := c.put(ctx, next, now)
		if err != nil {
			return err
		}
		if stored {
			c.recorder.Note(now, "", g.rec.VM.ID, "follows its group, of which a part has left "+
				string(s.name())+" before the drain was withdrawn")
		}
	}
	return nil
}

// follows reports whether a withdrawn drain has torn a VM from its group: it waits to leave with
// the others, or one of them is on its way out at this moment.
func (c *Controller) follows(g *vmEntry, s *hostEntry) bool {
	if c.keeps(g) != nil || begun(g, s) {
		return false
	}
	gone, waits := false, unbegun(g)
	for _, o := range c.cache.company(g) {
		switch {
		case o == g:
		case o.rec.Host != s.name():
			gone = true
		case begun(o, s):
			gone, waits = true, true
		}
	}
	return gone && waits
}

// begun reports whether a drain's migration of a VM off a host has been handed over and has not
// ended, and unbegun whether one has not been handed over.
func begun(g *vmEntry, s *hostEntry) bool {
	return g.rec.Host == s.name() && slices.ContainsFunc(g.migrations, func(f *migrationEntry) bool {
		p := f.rec.State.Phase
		return f.rec.Spec.By == migration.Evacuation && p.HandedOver() && !p.Final()
	})
}

func unbegun(g *vmEntry) bool {
	return slices.ContainsFunc(g.migrations, func(f *migrationEntry) bool {
		return f.rec.Spec.By == migration.Evacuation && !f.rec.State.Phase.HandedOver() &&
			!f.rec.State.Phase.Final() && !f.rec.Cancel
	})
}

// apart does something while a VM holds nothing but what it has: its reservations, which would be in
// its own way, are taken back for that long.
func (v *cache) apart(g *vmEntry, do func()) {
	_, restarts := restarts(g.rec)
	_, saved := v.saved(g)
	if !restarts && !saved {
		do()
		return
	}
	id := string(g.rec.VM.ID)
	v.bare = true
	v.book(id, g)
	do()
	v.bare = false
	v.book(id, g)
}
