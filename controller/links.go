package controller

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/godwit-vm/godwit/evacuation"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/migration/placement"
	"github.com/godwit-vm/godwit/store"
)

// A wire is one direction of a link that migrations share. The zero value is none.
type wire struct {
	kind wireKind
	name string // of the host or the rack
}

type wireKind uint8

const (
	noWire  wireKind = iota
	sending          // a host's link, outwards
	receiving
	rackUp // a rack's up-link, outwards
	rackDown
	network // what all migrations share
)

// String names the link for people.
func (w wire) String() string {
	switch w.kind {
	case rackUp, rackDown:
		return "the up-link of rack " + w.name
	case network:
		return "the migration network"
	}
	return w.name + "'s link"
}

// traffic is what uses links, and which migrations wait for which. It is kept where it is said which
// migrations may share a link.
type traffic struct {
	sharer  evacuation.Sharer // nil: none is configured
	network hypervisor.Bandwidth
	on      map[wire][]*migrationEntry
	waiting map[wire]*priorityQueue[*migrationEntry] // may hold stale ones
}

// newTraffic returns what says which migrations may share a link, of users and of drains: the
// evacuation's policy, the configured sharer, or package evacuation. KubeVirt has nothing of the kind.
func (c *Controller) newTraffic() traffic {
	if c.config.Migration.Compatible {
		return traffic{}
	}
	s, shares := c.config.Evacuation.Policy.(evacuation.Sharer)
	switch {
	case shares:
	case c.config.Sharer != nil:
		s = c.config.Sharer
	default:
		s = c.adaptive()
	}
	return traffic{sharer: s, network: c.config.Network, on: map[wire][]*migrationEntry{},
		waiting: map[wire]*priorityQueue[*migrationEntry]{}}
}

// A way is the links from one host to another whose speeds are known.
type way struct {
	links  [5]wire // of either host and rack, and the network
	speeds [5]hypervisor.Bandwidth
	n      int // so many
}

func (w *way) add(kind wireKind, name string, speed hypervisor.Bandwidth) {
	if speed > 0 {
		w.links[w.n], w.speeds[w.n] = wire{kind, name}, speed
		w.n++
	}
}

func (w *way) wires() []wire { return w.links[:w.n] }

// slowest returns the lowest speed; 0 if none is known.
func (w *way) slowest() hypervisor.Bandwidth {
	if w.n == 0 {
		return 0
	}
	return slices.Min(w.speeds[:w.n])
}

// way lists the links from one host to another.
func (t *traffic) way(from, to *store.Host) (w way) {
	w.add(sending, string(from.Host.Name), from.Host.Link)
	w.add(receiving, string(to.Host.Name), to.Host.Link)
	out, up := rackOf(from)
	in, down := rackOf(to)
	if out != in {
		w.add(rackUp, out, up)
		w.add(rackDown, in, down)
	}
	w.add(network, "", t.network)
	return w
}

// rackOf returns the rack of a host, and the speed of its up-link; "" is none.
func rackOf(h *store.Host) (string, hypervisor.Bandwidth) {
	if h.Facts == nil || h.Facts.Rack == "" {
		return "", 0
	}
	return h.Facts.Rack, h.Facts.Uplink
}

// enter counts a migration that has got its target on all links that it uses.
func (v *cache) enter(f *migrationEntry) {
	if v.traffic.sharer == nil || f.source == nil || f.target == nil {
		return
	}
	way := v.traffic.way(f.source.rec, f.target.rec)
	f.wires = slices.Clone(way.wires())
	for _, w := range f.wires {
		v.traffic.on[w] = append(v.traffic.on[w], f)
		v.callWaiting(w, 1) // there may be room for one more
	}
}

// leave takes a migration off its links, and lets some try that wait for them.
func (v *cache) leave(f *migrationEntry) {
	for _, w := range f.wires {
		on := v.traffic.on[w]
		switch at := slices.Index(on, f); {
		case len(on) == 1 && at == 0:
			delete(v.traffic.on, w)
		case at >= 0:
			v.traffic.on[w] = slices.Delete(on, at, at+1)
		}
		v.callWaiting(w, fewTry)
	}
	f.wires = nil
}

// fewTry is how many that wait for a link try again when one has left it.
const fewTry = 4

// callWaiting lets the first so many that wait for a link try again.
func (v *cache) callWaiting(w wire, n int) {
	for ; n > 0; n-- {
		f := v.firstWaiting(w)
		if f == nil {
			return
		}
		v.traffic.waiting[w].Pop()
		f.waitsOn = wire{}
		v.dirty.Add(f)
	}
}

// firstWaiting returns the first that waits for a link; nil is none.
func (v *cache) firstWaiting(w wire) *migrationEntry {
	line := v.traffic.waiting[w]
	if line == nil { // as nearly always
		return nil
	}
	for line.Len() > 0 {
		if f := line.First(); f.waitsOn == w && !f.gone && f.rec.State.Phase <= migration.Pending {
			return f
		}
		line.Pop()
	}
	delete(v.traffic.waiting, w)
	return nil
}

// await lets a migration wait for its turn on a link.
func (v *cache) await(f *migrationEntry, w wire) {
	line := v.traffic.waiting[w]
	if line == nil {
		line = &priorityQueue[*migrationEntry]{}
		v.traffic.waiting[w] = line
	}
	f.waitsOn = w
	line.Push(f)
}

// crowded returns a link on the way to a target on which a migration must wait for its turn: not
// all that use it would converge, or one with precedence waits for it.
func (c *Controller) crowded(f *migrationEntry, target hypervisor.HostName) (wire, bool) {
	t := &c.cache.traffic
	if t.sharer == nil || f.vm.host == nil {
		return wire{}, false
	}
	way := t.way(f.vm.host.rec, c.cache.host(target).rec)
	next := f.vm.asVM().Evacuating()
	next.Most = way.slowest()
	for i, w := range way.wires() {
		users := t.on[w]
		if len(users) == 0 {
			continue
		}
		first := c.cache.firstWaiting(w)
		if first != nil && first != f && migration.ByPrecedence(*first.Asked(), *f.Asked()) < 0 ||
			!t.sharer.Shares(way.speeds[i], next, c.leaving(users)) {
			return w, true
		}
	}
	return wire{}, false
}

// leaving lists migrations under way as a policy sees them.
func (c *Controller) leaving(users []*migrationEntry) []evacuation.EvacuatingVM {
	all := make([]evacuation.EvacuatingVM, 0, len(users))
	for _, f := range users {
		if f.vm.rec == nil {
			continue // its record is gone: it ends
		}
		l := f.vm.asVM().Evacuating()
		way := c.cache.traffic.way(f.source.rec, f.target.rec)
		l.Most = way.slowest()
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b evacuation.EvacuatingVM) int { return cmp.Compare(a.VM, b.VM) })
	return all
}

// otherTargets is how many targets are looked at whose links are crowded, before a migration
// waits for the first of them.
const otherTargets = 8

// uncrowded returns the decision about a target, or about another one whose links are not
// crowded. It reports the link that the migration waits for if there is none.
func (c *Controller) uncrowded(f *migrationEntry, d placement.Decision, r *placement.Request) (placement.Decision,
	wire) {
	first := wire{}
	avoid := slices.Clip(r.Avoid)
	for range otherTargets {
		w, crowded := c.crowded(f, d.Host)
		switch {
		case !crowded:
			return d, wire{}
		case first.kind == noWire:
			first = w
		}
		if r.Host != "" || w.kind == sending || w.kind == network {
			break // another target does not help
		}
		r.Avoid = append(r.Avoid, d.Host)
		if other := c.cache.reservations.Decide(r); other.Outcome == placement.Accepted {
			d = other
			continue
		}
		break
	}
	r.Avoid = avoid
	return placement.Decision{Outcome: placement.NoHost}, first
}

// waitForLink lets a migration wait for its turn on a link, and says so once. Time is a remedy,
// too: links and VMs change.
func (c *Controller) waitForLink(f *migrationEntry, w wire, now time.Time) {
	if f.told != w {
		f.told = w
		c.recorder.Note(now, "", f.rec.Spec.VM, "waits for its turn on "+w.String())
	}
	c.cache.await(f, w)
	c.timers.Set(&f.alarm, now.Add(c.config.RetryCap))
}

// whyCrowded says for which link a migration waits.
func (c *Controller) whyCrowded(f *migrationEntry) []placement.Reason {
	w := f.waitsOn
	if s := f.vm.host; w.kind == noWire && s != nil && !c.paced(f, s.name()) {
		w = wire{sending, string(s.name())}
	}
	if w.kind == noWire {
		return nil
	}
	return []placement.Reason{{Check: "link", Need: "its turn on " + w.String(),
		Have: underWay(len(c.cache.traffic.on[w]))}}
}

func underWay(n int) string {
	if n == 1 {
		return "1 migration under way there"
	}
	return strconv.Itoa(n) + " migrations under way there"
}
