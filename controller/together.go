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
	"github.com/godwit-vm/godwit/store"
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

// together returns a VM that stands for all of a group that is to leave a host with a VM, because the host is
// drained or a plan moves all of them; nil while the VM is alone, one of the group is elsewhere already,
// or one cannot leave.
func (c *Controller) together(f *migrationEntry) *placement.VM {
	g := f.vm
	if c.core.Compatible || f.rec.State.Target != "" || g.host == nil {
		return nil
	}
	drained := f.rec.Spec.By == migration.Evacuation && g.host.drains
	if !drained && !c.planned(f) {
		return nil
	}
	all := c.cache.company(g)
	vms := make([]*placement.VM, 0, len(all))
	for _, o := range all {
		switch {
		case o.host != g.host || o.heads() != g.host.name():
			return nil
		case drained && c.keeps(o) != nil:
			return nil
		case !drained && c.cache.applied.moves(o.rec.VM.ID, g.host.name(), f.rec.Spec.Target) == nil:
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

// planned reports whether a migration was requested for a move of the plan that is carried out.
func (c *Controller) planned(f *migrationEntry) bool {
	s := &f.rec.Spec
	return s.By == migration.User && s.Target != "" && s.Force == placement.No &&
		c.cache.applied.moves(s.VM, f.vm.rec.Host, s.Target) != nil
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
	if c.core.Compatible || g.host == nil || !g.host.drains && !c.planned(f) {
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
	if v.forgiving || g.host == nil || !g.binds() || g.rec.Ended || g.heads() != g.rec.Host {
		return reservedMove{}, false
	}
	m := reservedMove{ID: migration.ID(g.rec.VM.ID) + "#group", Target: v.othersGo(g), Saved: true}
	switch {
	case m.Target == "":
		return reservedMove{}, false
	case g.host.drains || g.rec.EvacuateFrom == g.rec.Host:
		m.Owner = migration.Evacuation.String()
	case v.applied.moves(g.rec.VM.ID, g.rec.Host, m.Target) != nil:
		m.Owner = migration.User.String()
	default:
		return reservedMove{}, false
	}
	return m, true
}

// othersGo returns the one host where others of a VM's group are, or are on their way to, that is not the VM's
// own; "" is that there is none, or that there are several.
func (v *cache) othersGo(g *vmEntry) (at hypervisor.HostName) {
	for _, o := range v.company(g) {
		switch to := o.heads(); {
		case to == g.rec.Host || to == at:
		case at != "":
			return ""
		default:
			at = to
		}
	}
	return at
}

// follows reports whether a VM is to be on one host with others that are on a host already, or whose migration
// there has been handed over.
func (v *cache) follows(g *vmEntry, to hypervisor.HostName) bool {
	return !v.forgiving && slices.ContainsFunc(v.company(g), func(o *vmEntry) bool {
		return o != g && (o.rec.Host == to || slices.ContainsFunc(o.migrations, func(f *migrationEntry) bool {
			s := &f.rec.State
			return s.Target == to && s.Phase.HandedOver() && !s.Phase.Final()
		}))
	})
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
		if g.rec.EvacuateFrom != "" || !c.tears(g, s) {
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

// tears reports whether a withdrawn drain has torn a VM from its group: others have left its host, or are on
// their way out at this moment, and the VM, or another that is still there, waits to leave after them.
func (c *Controller) tears(g *vmEntry, s *hostEntry) bool {
	if !g.binds() || c.keeps(g) != nil || leaving(g, s, begun) {
		return false
	}
	gone, waits := false, leaving(g, s, unbegun)
	for _, o := range c.cache.company(g) {
		switch {
		case o == g:
		case o.rec.Host != s.name() || movedByDrain(o, s) && o.heads() != s.name(): // or its record does not say so yet
			gone = true
			waits = waits || movedByDrain(o, s)
		case leaving(o, s, begun):
			gone, waits = true, true
		case leaving(o, s, unbegun):
			waits = true
		}
	}
	return gone && waits
}

// leaving reports whether a drain's migration of a VM off a host is as it says.
func leaving(g *vmEntry, s *hostEntry, is func(*store.Migration) bool) bool {
	return g.rec.Host == s.name() && slices.ContainsFunc(g.migrations, func(f *migrationEntry) bool {
		return f.rec.Spec.By == migration.Evacuation && !f.rec.State.Phase.Final() && is(f.rec)
	})
}

// begun reports whether a migration has been handed over, and unbegun whether it waits for that.
func begun(m *store.Migration) bool { return m.State.Phase.HandedOver() }

func unbegun(m *store.Migration) bool { return !m.State.Phase.HandedOver() && !m.Cancel }

// movedByDrain reports whether a drain of a host was the last that moved a VM.
func movedByDrain(g *vmEntry, s *hostEntry) bool {
	if len(g.migrations) == 0 {
		return false
	}
	m := g.migrations[len(g.migrations)-1].rec
	return m.Spec.By == migration.Evacuation && m.State.Phase == migration.Succeeded && m.State.Source == s.name()
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
	v.reserve(id, g)
	do()
	v.bare = false
	v.reserve(id, g)
}
