package fake

import (
	"fmt"
	"slices"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/maxmin"
	"github.com/godwit-vm/godwit/internal/workqueue"
)

// commandCosts are what a transfer costs besides the wire.
type commandCosts struct {
	Memory      costs
	SetUp       time.Duration
	SwitchOver  time.Duration
	Acknowledge time.Duration
	DeviceState hypervisor.Bytes
	PerChannel  hypervisor.Bandwidth // 0 is without limit
	AllChannels hypervisor.Bandwidth // 0 is without limit
}

// speed returns how fast a sender is whose wire takes everything.
func (c *commandCosts) speed(o *hypervisor.TransferOptions) hypervisor.Bandwidth {
	speed := hypervisor.Bandwidth(hypervisor.TiB) // faster than any link
	if c.PerChannel > 0 {
		speed = c.PerChannel * hypervisor.Bandwidth(max(1, o.Channels))
	}
	if c.AllChannels > 0 {
		speed = min(speed, c.AllChannels)
	}
	return speed
}

// A world is virtual time and the wires of all hosts.
type world struct {
	Now      time.Duration // since the start of the world
	Agenda   eventQueue
	Start    time.Time
	costs    commandCosts
	network  maxmin.Network
	open     map[hypervisor.Address]*transfer // targets that listen
	cut      map[pair]bool
	racks    map[string]*rack
	shared   *maxmin.Link // that every transfer crosses; nil is none
	idle     []*underWay  // to be used again
	failures alike[string]
	coming   moment // what Next answered last: it is asked more often than it changes
}

// A moment is a time in the world, in both ways to say it.
type moment struct {
	at   time.Duration
	time time.Time
}

// A rack is hosts that share an up-link.
type rack struct {
	up, down *maxmin.Link // each way; nil while the speed is not set
}

// newWorld returns a world without hosts.
func newWorld(start time.Time, c commandCosts) world {
	return world{Start: start, coming: moment{time: start}, costs: c,
		open: map[hypervisor.Address]*transfer{},
		cut:  map[pair]bool{}, racks: map[string]*rack{}}
}

// Next returns when something happens next, and whether anything will.
func (w *world) Next() (time.Time, bool) {
	t := w.Agenda.Next()
	if t == nil {
		return time.Time{}, false
	}
	if w.coming.at != t.At {
		w.coming = moment{t.At, w.Start.Add(t.At)}
	}
	return w.coming.time, true
}

// AdvanceTo moves time to t and makes happen what happens until then. Time does not go back.
func (w *world) AdvanceTo(t time.Time) {
	until := max(w.Now, workqueue.Between(w.Start, t))
	for n := w.Agenda.Next(); n != nil && n.At <= until; n = w.Agenda.Next() {
		w.Now = n.At
		w.Agenda.Disarm(n)
		n.Fire()
		w.Settle()
	}
	w.Now = until
}

// In returns a timer that makes fire happen after d.
func (w *world) In(d time.Duration, fire func()) *timer {
	t := &timer{Fire: fire, alone: true}
	w.Agenda.Arm(t, laterOf(w.Now, max(0, d)))
	return t
}

// A Host is where transfers begin and end. A host that is Off reaches no other.
type transferHost struct {
	Name      hypervisor.HostName
	Off       bool
	world     *world
	up, down  *maxmin.Link // its network card, each way
	rack      *rack        // nil: it is in none
	transfers []*transfer  // that use the card, oldest first
}

// NewHost returns a host with a network card of the given speed each way; one that is not known, 0, is
// no bottleneck.
func (w *world) NewHost(name hypervisor.HostName, link hypervisor.Bandwidth) transferHost {
	if link == 0 {
		link = hypervisor.Bandwidth(hypervisor.TiB) // as commandCosts.speed
	}
	return transferHost{Name: name, world: w, up: w.network.AddLink(link), down: w.network.AddLink(link)}
}

// Place puts a host into a rack: transfers to and from other racks cross its up-link, of
// the given speed each way. A speed of zero leaves that open. Transfers under way are not
// touched.
func (w *world) Place(h *transferHost, name string, uplink hypervisor.Bandwidth) {
	if w.racks[name] == nil {
		w.racks[name] = &rack{}
	}
	h.rack = w.racks[name]
	if r := h.rack; uplink > 0 && r.up == nil {
		r.up, r.down = w.network.AddLink(uplink), w.network.AddLink(uplink)
	}
}

// Share makes all transfers that begin from now on cross one network of the given speed.
func (w *world) Share(speed hypervisor.Bandwidth) { w.shared = w.network.AddLink(speed) }

// route appends the links from one host to another.
func (w *world) route(links []*maxmin.Link, from, to *transferHost) []*maxmin.Link {
	links = append(links, from.up, to.down)
	if from.rack != to.rack {
		if from.rack != nil && from.rack.up != nil {
			links = append(links, from.rack.up)
		}
		if to.rack != nil && to.rack.down != nil {
			links = append(links, to.rack.down)
		}
	}
	if w.shared != nil {
		links = append(links, w.shared)
	}
	return links
}

// free returns what a transfer needs that begins.
func (w *world) free(t *transfer) *underWay {
	if n := len(w.idle); n > 0 {
		u := w.idle[n-1]
		w.idle = w.idle[:n-1]
		u.of = t
		return u
	}
	u := &underWay{of: t}
	u.timer.Fire = func() { u.of.advance() }
	u.silence.Fire = func() { u.of.sever(reset, "the connection timed out") }
	return u
}

// Settle gives every transfer its present share of the wire.
func (w *world) Settle() {
	for _, flow := range w.network.Settle() {
		flow.Owner.(*transfer).accelerate(flow.Rate())
	}
}

// At returns the transfer whose target listens at a; nil is none.
func (w *world) At(a hypervisor.Address) *transfer { return w.open[a] }

// A pair is two hosts, the smaller name first.
type pair [2]hypervisor.HostName

func between(a, b *transferHost) pair { return pair{min(a.Name, b.Name), max(a.Name, b.Name)} }

// transfersBetween returns the transfers between two hosts, either way.
func transfersBetween(a, b *transferHost) []*transfer {
	list := slices.Clone(a.transfers)
	return slices.DeleteFunc(list, func(t *transfer) bool { return t.From != b && t.To != b })
}

const linkCut = "the link was cut"

// Cut drops everything between two hosts, unnoticed until connections time out.
func (w *world) Cut(a, b *transferHost) {
	w.cut[between(a, b)] = true
	for _, t := range transfersBetween(a, b) {
		t.sever(cut, linkCut)
	}
}

// Heal undoes Cut: what stalled goes on, and a process whose peer died meanwhile
// is told.
func (w *world) Heal(a, b *transferHost) {
	delete(w.cut, between(a, b))
	for _, t := range transfersBetween(a, b) {
		if t.connected() && (t.source == nil || t.target == nil) && t.stage != loading {
			t.sever(death, "the peer is gone")
			continue
		}
		t.resume()
	}
}

// Reset closes every connection between two hosts.
func (w *world) Reset(a, b *transferHost) {
	for _, t := range transfersBetween(a, b) {
		t.sever(reset, "connection reset")
	}
}

// Restarted tells the peers of a host that came back that it knows nothing of
// their connections.
func (w *world) Restarted(h *transferHost) {
	for _, t := range slices.Clone(h.transfers) {
		if t.connected() {
			t.sever(reset, "the host restarted")
		}
	}
}

// refused returns an error of a kind. The port adds the operation, the VM and the host.
func refused(kind hypervisor.Kind, format string, args ...any) error {
	return &hypervisor.Error{Kind: kind, Err: fmt.Errorf(format, args...)}
}
