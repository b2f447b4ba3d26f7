package bench

import (
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration"
	"github.com/godwit-vm/godwit/sim"
)

// A Cluster is hosts, what runs on those that are to be emptied, and what happens meanwhile.
type Cluster struct {
	Name    string
	Says    string // what is special about it
	Hosts   []hypervisor.Host
	Drained int // the first so many hosts are emptied
	Guests  []VM
	Faults  []Fault
	// RackSize is how many hosts, in order, share a rack, whose up-link is as fast as Uplink
	// each way. 0 is no racks. A rack is drained as a whole or not at all.
	RackSize int
	Uplink   hypervisor.Bandwidth
	// Limits are what the operator has written; [migration.Unlimited] is nothing.
	Limits migration.Limits
	// Cap is the operator's cap on the speed of each migration; 0 is none.
	Cap hypervisor.Bandwidth
	// PostCopy and AutoConverge are what the operator allows.
	PostCopy, AutoConverge bool
}

// A VM is a VM of a cluster.
type VM struct {
	VM   hypervisor.VM
	Host int
	Load fake.Workload
}

// A Fault happens at a time after the drain began.
type Fault struct {
	At   time.Duration
	What sim.Event
}

// A shape says how clusters are made: so many hosts, so many of them drained, and so much
// of each drained host's memory used by VMs of the given sizes, one drawn like another.
type shape struct {
	hosts, drained int
	memory         hypervisor.Bytes
	link           hypervisor.Bandwidth
	fill           int // percent of a drained host's memory
	rest           int // percent of the others'
	sizes          []hypervisor.Bytes
	load           func(sim.Chooser, hypervisor.Bytes) fake.Workload
}

// build makes a cluster of a shape.
func (s shape) build(name, says string, seed uint64) Cluster {
	c := Cluster{Name: name, Says: says, Drained: s.drained,
		Limits: migration.Limits{PerCluster: migration.Unlimited, PerSource: migration.Unlimited,
			PerTarget: migration.Unlimited}}
	chance := sim.Seeded(seed)
	for i := range s.hosts {
		c.Hosts = append(c.Hosts, hypervisor.Host{Name: host(i), Memory: s.memory,
			CPUs: 1024, Link: s.link})
		fill := s.rest
		if i < s.drained {
			fill = s.fill
		}
		s.settle(&c, chance, i, s.memory/100*hypervisor.Bytes(fill))
	}
	return c
}

// settle puts VMs on a host until they weigh as much as room.
func (s shape) settle(c *Cluster, chance sim.Chooser, host int, room hypervisor.Bytes) {
	for n := 1; room >= s.sizes[0]; n++ {
		size := s.sizes[chance.Choose("size", len(s.sizes))]
		for size > room {
			size = s.sizes[0]
		}
		room -= size
		id := hypervisor.VMID(fmt.Sprintf("bench/v%03d-%03d", host+1, n))
		c.Guests = append(c.Guests, VM{Host: host, Load: s.load(chance, size),
			VM: hypervisor.VM{ID: id, Memory: size, CPUs: 2}})
	}
}

func host(i int) hypervisor.HostName { return hypervisor.HostName(fmt.Sprintf("n%03d", i+1)) }

// Bound returns how long the evacuation takes at least.
func (c *Cluster) Bound() time.Duration {
	out := make([]hypervisor.Bytes, len(c.Hosts))
	var all hypervisor.Bytes
	var longest time.Duration
	fastest, inbound := c.targets()
	for _, g := range c.Guests {
		if g.Host >= c.Drained {
			continue
		}
		b := g.Load.Least(g.VM)
		out[g.Host], all = out[g.Host]+b, all+b
		longest = max(longest, b.At(c.speed(min(c.Hosts[g.Host].Link, fastest))))
	}
	for i := 0; c.RackSize > 0 && i < c.Drained; i += c.RackSize {
		longest = max(longest, sum(out[i:i+c.RackSize]).At(c.Uplink))
	}
	for i, b := range out[:c.Drained] {
		link := c.Hosts[i].Link
		if n := hypervisor.Bandwidth(c.Limits.PerSource); n < migration.Unlimited {
			link = min(link, n*c.speed(link))
		}
		longest = max(longest, b.At(link))
	}
	if n := hypervisor.Bandwidth(c.Limits.PerCluster); n < migration.Unlimited {
		longest = max(longest, all.At(n*c.speed(fastest)))
	}
	return max(longest, all.At(inbound))
}

// targets returns the fastest link of a host that stays, and what all that stay can take
// in.
func (c *Cluster) targets() (fastest, together hypervisor.Bandwidth) {
	for _, h := range c.Hosts[c.Drained:] {
		fastest, together = max(fastest, h.Link), together+h.Link
	}
	if c.RackSize > 0 {
		racks := (len(c.Hosts) - c.Drained) / c.RackSize
		together = min(together, c.Uplink*hypervisor.Bandwidth(racks))
	}
	return fastest, together
}

func sum(all []hypervisor.Bytes) hypervisor.Bytes {
	var s hypervisor.Bytes
	for _, b := range all {
		s += b
	}
	return s
}

// speed returns how fast a migration is at most over a link.
func (c *Cluster) speed(link hypervisor.Bandwidth) hypervisor.Bandwidth {
	if c.Cap > 0 {
		return min(link, c.Cap)
	}
	return link
}
