package fake

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
)

// A Network is hosts, the links between them and virtual time. It is safe for
// concurrent use, as its hosts are.
type Network struct {
	mu      sync.Mutex
	world   world
	model   Model
	hosts   map[hypervisor.HostName]*Host
	guests  map[hypervisor.VMID]*machine
	faults  []*Fault
	round   uint64 // of Touched, from 1
	touched news[hypervisor.VMID]
	hinted  news[hinted]
	given   []Hint    // what Hints answered last, to be used again
	gone    []*domain // since Hints was asked last
	free    []*domain // to be used again
	spare   bool      // see Spare
	lenient bool      // see Overcommit
	alike   alike[Workload]
}

// NewNetwork returns an empty world at the time start.
func NewNetwork(start time.Time, m Model) *Network {
	return &Network{world: newWorld(start.UTC().Round(0), m.costs()), model: m,
		guests: map[hypervisor.VMID]*machine{},
		hosts:  map[hypervisor.HostName]*Host{}, round: 1}
}

// Overcommit lets every host take VMs that together are larger than it is, as Linux does.
// Whether there is room is then decided by callers that know what each VM takes of it.
func (f *Network) Overcommit() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lenient = true
}

// AddHost adds a host. Without abilities it gets all that the model has; what the model lacks no
// host has, and CanTakeBack every host has. A link of zero is not known, and no bottleneck. It refuses a host without a name or with a negative
// capacity (Invalid) and one that exists (Conflict).
func (f *Network) AddHost(host hypervisor.Host) (*Host, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := &Host{network: f, host: host, jobs: jobs{}}
	switch {
	case host.Name == "" || host.Memory < 0 || host.CPUs < 0 || host.Link < 0:
		return nil, h.explain("AddHost", "", refuse(hypervisor.Invalid, "%+v", host))
	case f.hosts[host.Name] != nil:
		return nil, h.explain("AddHost", "", refuse(hypervisor.Conflict, "it exists"))
	}
	if h.host.Abilities == 0 { // it makes snapshots only where that is asked for: there is nothing in them
		h.host.Abilities = Abilities
	}
	h.host.Abilities = h.host.Abilities&(Abilities|hypervisor.CanEncrypt|hypervisor.CanSnapshot) |
		hypervisor.CanTakeBack
	h.host.Software = cmp.Or(host.Software, "godwit's model of QEMU, in virtual time")
	h.wire = f.world.NewHost(host.Name, host.Link)
	f.hosts[host.Name] = h
	return h, nil
}

// Place puts a host into a rack, whose up-link all moves to and from other racks share,
// each way; of one rack the first speed that is not zero counts, and without one it is no
// bottleneck. Moves within a rack do not cross it. It answers NotFound for a host that
// does not exist, and Invalid for a negative speed.
func (f *Network) Place(host hypervisor.HostName, rack string, uplink hypervisor.Bandwidth) error {
	return f.strike("Place", host, func(h *Host) error {
		if rack == "" || uplink < 0 {
			return refuse(hypervisor.Invalid, "rack %q with an up-link of %v", rack, uplink)
		}
		f.world.Place(&h.wire, rack, uplink)
		return nil
	})
}

// Share gives all moves that begin from now on one network of the given speed, besides
// the links of their hosts. A speed of zero or less is no limit, and does nothing.
func (f *Network) Share(speed hypervisor.Bandwidth) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if speed > 0 {
		f.world.Share(speed)
	}
}

// Shared returns the speed of the network that all moves share; 0 is none.
func (f *Network) Shared() hypervisor.Bandwidth {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.world.shared == nil {
		return 0
	}
	return f.world.shared.Capacity()
}

// Grow makes room for so many VMs, in a world without any.
func (f *Network) Grow(n int) {
	if len(f.guests) == 0 {
		f.guests = make(map[hypervisor.VMID]*machine, n)
	}
}

// Know names the reader of a host's hints: hints carry the name. A host that does not exist has none.
func (f *Network) Know(host hypervisor.HostName, reader any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := f.hosts[host]; h != nil {
		h.reader = reader
	}
}

// Spare lets each host write the list of its domains over the one before: what it has answered
// is then valid until it is asked again.
func (f *Network) Spare() { f.spare = true }

// Host returns a host; nil when there is none of that name.
func (f *Network) Host(name hypervisor.HostName) *Host {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hosts[name]
}

// Now returns the virtual time.
func (f *Network) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.world.Start.Add(f.world.Now)
}

// Next returns when something happens next, and whether anything will.
func (f *Network) Next() (time.Time, bool) {
	f.mu.Lock()
	next, some := f.world.Next()
	f.mu.Unlock()
	return next, some
}

// Busy reports whether something is under way that ends by itself and is no transfer: a VM starts or shuts
// down, a disk is copied.
func (f *Network) Busy() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.world.Agenda.Alone() > 0
}

// AdvanceTo moves time to t and makes happen what happens until then, t
// included, in order. Time does not go back: an earlier t is now.
func (f *Network) AdvanceTo(t time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.world.AdvanceTo(t)
}

// A Copy is one domain of a VM.
type Copy struct {
	Host  hypervisor.HostName
	State hypervisor.DomainState
}

// Copies returns where a VM has domains, ordered by host.
func (f *Network) Copies(vm hypervisor.VMID) []Copy { return f.AppendCopies(nil, vm) }

// AppendCopies is Copies, appended to a slice of the caller's.
func (f *Network) AppendCopies(to []Copy, vm hypervisor.VMID) []Copy {
	f.mu.Lock()
	if m := f.guests[vm]; m != nil {
		for d := m.first; d != nil; d = d.next {
			to = append(to, Copy{d.host.host.Name, d.State})
		}
	}
	f.mu.Unlock()
	return to
}

// Touched returns the VMs whose domains changed since the last call, each once,
// in the order of their first change. The answer is valid until the next call.
func (f *Network) Touched() []hypervisor.VMID {
	f.mu.Lock()
	f.round++
	touched := f.touched.Take()
	f.mu.Unlock()
	return touched
}

// A HintKind is what a hypervisor emits an event about.
type HintKind uint8

// The events.
const (
	JobChanged    HintKind = iota // the domain's job ended, or broke
	PassFinished                  // a pass over memory ended
	DomainChanged                 // the domain's state changed
	hintKinds
)

// String says what happened, in words.
func (w HintKind) String() string {
	all := [...]string{"job changed", "pass finished", "domain changed", "invalid"}
	return all[min(w, hintKinds)]
}

// A Hint is an event as a real hypervisor emits it: it says that something
// changed, not what it is now. To lose it costs only time.
type Hint struct {
	Host   hypervisor.HostName
	VM     hypervisor.VMID
	What   HintKind
	Reader any // that [Network.Know] names
}

type hinted struct {
	domain *domain
	what   HintKind
}

// Hints returns the hints since the last call, each once, oldest first. The answer is
// valid until the next call.
func (f *Network) Hints() []Hint {
	f.mu.Lock()
	hints := f.hints()
	f.mu.Unlock()
	return hints
}

func (f *Network) hints() []Hint {
	fresh := f.hinted.Take()
	if len(fresh) == 0 {
		return nil
	}
	f.given = slices.Grow(reuse(f.given, len(fresh)), len(fresh))
	for _, h := range fresh {
		h.domain.hinted[h.what] = false
		f.given = append(f.given, Hint{h.domain.host.host.Name, h.domain.VM.ID, h.what, h.domain.host.reader})
	}
	for _, d := range f.gone {
		if d.transfer == nil && !d.measured { // nothing refers to it
			f.free = append(f.free, d)
		}
	}
	f.gone = reuse(f.gone, len(f.gone))
	return f.given
}

func (f *Network) hint(d *domain, what HintKind) {
	if d != nil && !d.hinted[what] && d.seen() {
		d.hinted[what] = true
		f.hinted.Add(hinted{d, what})
	}
}

func refuse(kind hypervisor.Kind, format string, args ...any) error {
	return refused(kind, format, args...)
}
