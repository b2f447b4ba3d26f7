package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// An activity is what a guest does, by all of its copies together.
type activity uint8

// What a guest does.
const (
	guestStands activity = iota // no copy executes it
	guestBoots                  // a copy is off or starts: a restart that was asked for looks the same
	guestRuns                   // a copy executes it
)

// outageStats sums up the times in which guests that should run did not. A VM should run unless its
// operator has stopped, paused or deleted it. A reboot or a resize that was asked for is no outage.
type outageStats struct {
	Count   int           // outages, those that have not ended among them
	Total   time.Duration // of all guests together
	Longest time.Duration
}

func (o *outageStats) add(d time.Duration) {
	o.Count++
	o.Total += d
	o.Longest = max(o.Longest, d)
}

// A Down is a guest that should run and does not.
type downStats struct {
	VM    hypervisor.VMID
	Since time.Duration
}

// outage is one that has not ended.
type outage struct {
	since time.Duration
	move  *moveStats // in whose transfer it began; nil is none
}

// Did enters what a guest does from now on. It is the one thing here that is not from records.
func (b *stats) Did(vm hypervisor.VMID, what activity, now time.Duration) {
	g := b.guest(vm)
	g.seen, g.does = true, what
	b.judge(vm, g, now)
}

// want enters whether a guest should run, by its record; nil is that it has none.
func (b *stats) want(g *guest, v *store.VM) {
	g.wanted = v != nil && !v.Stopped && !v.Pause && !v.Paused
	switch {
	case v == nil || v.Operation == store.Nothing:
		g.restarts = false
	case v.Operation == store.Rebooting || v.Operation == store.Resizing:
		g.restarts = true // and it starts after that
	}
}

// judge begins or ends an outage.
func (b *stats) judge(vm hypervisor.VMID, g *guest, now time.Duration) {
	out := g.seen && g.wanted && (g.does == guestStands || g.does == guestBoots && !g.restarts)
	if out == g.out {
		return
	}
	g.out = out
	if out {
		if b.down == nil {
			b.down = map[hypervisor.VMID]outage{}
		}
		b.down[vm] = outage{now, g.sending()}
		return
	}
	o := b.down[vm]
	delete(b.down, vm)
	if d := now - o.since; d > 0 {
		b.outages.add(d)
		g.stood += d
		if o.move != nil {
			o.move.Down += d
		}
	}
}

// sending returns the migration that transfers a guest; nil is none.
func (g *guest) sending() *moveStats {
	for _, t := range slices.Backward(g.kept) {
		if m := t.Last; m.Source.Began && !m.State.Phase.Final() {
			return t
		}
	}
	return nil
}

// Down lists the guests that should run and do not, the first to stop first.
func (b *stats) Down() []downStats {
	list := make([]downStats, 0, len(b.down))
	for vm, o := range b.down {
		list = append(list, downStats{vm, o.since})
	}
	slices.SortFunc(list, func(a, b downStats) int {
		return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.VM, b.VM))
	})
	return list
}

// Outages sums up all outages until now.
func (b *stats) Outages(now time.Duration) outageStats {
	sum := b.outages
	for _, o := range b.down {
		sum.add(now - o.since)
	}
	return sum
}

// OutagesByVM lists how long each guest has stood until now that should have run, of those that have,
// in the order of their names.
func (b *stats) OutagesByVM(now time.Duration) []guestOutage {
	var list []guestOutage
	for vm, g := range b.guests {
		if d := b.Stood(vm, now); d > 0 {
			list = append(list, guestOutage{vm, d, g.out})
		}
	}
	slices.SortFunc(list, func(a, b guestOutage) int { return cmp.Compare(a.VM, b.VM) })
	return list
}

// A guestOutage is how long a guest that should run did not, all outages together.
type guestOutage struct {
	VM    hypervisor.VMID
	Stood time.Duration
	Down  bool // it does not run now
}

// Downtimes lists how long guests stood by their migrations until now: of every one that
// succeeded, and of every other that let its guest stand.
func (b *stats) Downtimes(now time.Duration) []time.Duration {
	open := map[*moveStats]time.Duration{}
	for _, o := range b.down {
		if o.move != nil {
			open[o.move] += now - o.since
		}
	}
	list := slices.Clone(b.lost)
	for _, t := range b.Moved {
		list = append(list, t.Down+open[t])
	}
	for _, g := range b.guests {
		for _, t := range g.kept {
			if d := t.Down + open[t]; d > 0 && !t.succeeded() {
				list = append(list, d)
			}
		}
	}
	return list
}

// Stood returns how long a VM's guest has stood in all, that should have run.
func (b *stats) Stood(vm hypervisor.VMID, now time.Duration) time.Duration {
	g := b.guests[vm]
	if g == nil {
		return 0
	}
	if o, out := b.down[vm]; out {
		return g.stood + now - o.since
	}
	return g.stood
}

// Downtime returns how long a VM's guest stood by a migration until now. It is false of a
// migration whose record is gone.
func (b *stats) Downtime(vm hypervisor.VMID, id migration.ID, now time.Duration) (time.Duration, bool) {
	g := b.guests[vm]
	if g == nil {
		return 0, false
	}
	t := g.find(id)
	if t == nil {
		return 0, false
	}
	d := t.Down
	if o, out := b.down[vm]; out && o.move == t {
		d += now - o.since
	}
	return d, true
}

func (t *moveStats) succeeded() bool { return t.Last.State.Phase == migration.Succeeded }
