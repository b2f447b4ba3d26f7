package sweep

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/maxmin"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/store"
)

// A Link is how busy one direction of a link was over time, in the buckets of the
// Concurrency. It is reconstructed: what a migration sent is spread over its transfer, in
// proportion to its max-min fair share of all links that it crossed. Where a fault stopped it
// on the way that is too even, so no link counts as busier than it can be.
type Link struct {
	Name string `json:"name"`
	// Kind is "out" or "in" of a host, "up" or "down" of a rack, or "network", which all
	// migrations cross.
	Kind     string               `json:"kind"`
	Capacity hypervisor.Bandwidth `json:"capacity"`
	Bytes    hypervisor.Bytes     `json:"bytes"`
	Use      []int                `json:"use"` // of its capacity, in parts per thousand
}

// A plant is the links that there are.
type plant struct {
	site    func(hypervisor.HostName) site
	network hypervisor.Bandwidth // 0: there is none
}

// A site is where a host is. A speed of zero is not known, and no bottleneck.
type site struct {
	link   hypervisor.Bandwidth
	rack   string // "" is none
	uplink hypervisor.Bandwidth
}

// siteOf returns where a host is by its record.
func siteOf(h *store.Host) site {
	if h == nil {
		return site{}
	}
	s := site{link: h.Host.Link}
	if h.Facts != nil {
		s.rack, s.uplink = h.Facts.Rack, h.Facts.Uplink
	}
	return s
}

// wire is one direction of a link.
type wire struct{ kind, name string }

// traffic runs all transfers over the links again, as fair shares.
type traffic struct {
	plant
	clock  buckets
	links  map[wire]*Link
	use    map[wire]*series // of the links that are shown
	fair   maxmin.Network
	shares map[wire]*maxmin.Link
}

// links returns the busiest links of each kind, by what they carried.
func links(rows []row, c buckets, p plant) []Link {
	t := traffic{plant: p, clock: c, links: map[wire]*Link{}, use: map[wire]*series{},
		shares: map[wire]*maxmin.Link{}}
	list := t.busiest(rows)
	for _, l := range list {
		t.use[wire{l.Kind, l.Name}] = &series{}
	}
	t.run(rows)
	for i := range list {
		l := &list[i]
		for _, level := range t.use[wire{l.Kind, l.Name}].means() {
			share := level / float64(l.Capacity)
			l.Use = append(l.Use, min(1000, int(math.Round(1000*share))))
		}
	}
	return list
}

// moves reports whether a migration sent anything, and from when to when.
func (n *row) moves(c buckets) (from, to time.Duration, ok bool) {
	from, to = n.at[migration.Running], n.end(c.end())
	return from, to, from != never && to > from && n.bytes > 0
}

// route returns the links of known speed that a migration crosses: as those of the modelled
// hypervisors do, moves within a rack do not cross its up-link.
func (t *traffic) route(n *row) []wire {
	var route []wire
	add := func(kind, name string, speed hypervisor.Bandwidth) {
		if speed <= 0 {
			return
		}
		w := wire{kind, name}
		if t.links[w] == nil {
			t.links[w] = &Link{Name: name, Kind: kind, Capacity: speed}
			t.shares[w] = t.fair.AddLink(speed)
		}
		route = append(route, w)
	}
	from, to := t.site(n.source), t.site(n.target)
	add("out", string(n.source), from.link)
	add("in", string(n.target), to.link)
	if from.rack != to.rack {
		add("up", from.rack, from.uplink)
		add("down", to.rack, to.uplink)
	}
	add("network", "migration network", t.plant.network)
	return route
}

// kinds lists the kinds of links, in the order in which they are shown.
var kinds = []string{"out", "in", "up", "down", "network"}

// busiest returns the links that carried most, without their use.
func (t *traffic) busiest(rows []row) []Link {
	for i := range rows {
		if _, _, ok := rows[i].moves(t.clock); ok {
			for _, w := range t.route(&rows[i]) {
				t.links[w].Bytes += rows[i].bytes
			}
		}
	}
	of := map[string][]Link{}
	for w, l := range t.links {
		of[w.kind] = append(of[w.kind], *l)
	}
	var list []Link
	for _, kind := range kinds {
		slices.SortFunc(of[kind], func(a, b Link) int {
			return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
		})
		list = append(list, of[kind][:min(len(of[kind]), maxLinks)]...)
	}
	return list
}

// A transfer is a migration while it moves, and what its share has been.
type transfer struct {
	row   *row
	flow  *maxmin.Flow
	parts []stretch
}

// stretch is a time in which the share of a transfer stays the same.
type stretch struct {
	from time.Duration
	rate float64
}

// maxStretches bounds what is remembered of a transfer; later changes of its share do not
// count.
const maxStretches = 4 * intervals

// most is what a transfer takes where nothing is a bottleneck: any number will do.
const most = 1000 * hypervisor.Gbit

// run goes from each moment at which a transfer begins or ends to the next.
func (t *traffic) run(rows []row) {
	type change struct {
		at  time.Duration
		of  *transfer
		end bool
	}
	var changes []change
	for i := range rows {
		if from, to, ok := rows[i].moves(t.clock); ok {
			f := &transfer{row: &rows[i]}
			changes = append(changes, change{from, f, false}, change{to, f, true})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	for i, e := range changes {
		if e.end {
			t.fair.Remove(e.of.flow)
			t.count(e.of, e.at)
		} else {
			e.of.flow = t.fair.Add(e.of, most, t.crossed(e.of.row)...)
		}
		if i+1 < len(changes) && changes[i+1].at == e.at {
			continue // all that happens at one moment is settled together
		}
		for _, f := range t.fair.Settle() {
			f := f.Owner.(*transfer)
			if len(f.parts) < maxStretches {
				f.parts = append(f.parts, stretch{e.at, float64(f.flow.Rate())})
			}
		}
	}
}

// crossed returns the shared links that a migration crosses.
func (t *traffic) crossed(n *row) []*maxmin.Link {
	var list []*maxmin.Link
	for _, w := range t.route(n) {
		list = append(list, t.shares[w])
	}
	return list
}

// count enters a transfer that has ended: what it sent, divided as its shares were.
func (t *traffic) count(f *transfer, over time.Duration) {
	until := func(i int) time.Duration {
		if i+1 < len(f.parts) {
			return f.parts[i+1].from
		}
		return over
	}
	whole := 0.0
	for i, p := range f.parts {
		whole += p.rate * (until(i) - p.from).Seconds()
	}
	if whole == 0 {
		return
	}
	for _, w := range t.route(f.row) {
		s := t.use[w]
		for i, p := range f.parts {
			if s != nil {
				s.add(t.clock, p.from, until(i), float64(f.row.bytes)*p.rate/whole)
			}
		}
	}
	f.parts = nil
}
