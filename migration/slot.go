package migration

import (
	"fmt"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/humanize"
)

// Limits bounds how many migrations hold a slot at once. A slot is held from the creation of the
// target until the end. Zero and less lets none through.
type Limits struct {
	PerCluster int // KubeVirt: parallelMigrationsPerCluster, default 5
	PerSource  int // KubeVirt: parallelOutboundMigrationsPerNode, default 2
	PerTarget  int // beyond KubeVirt; [Unlimited] in [DefaultLimits]
}

// Unlimited is a limit that is never reached.
const Unlimited = 1 << 30

// DefaultLimits are KubeVirt's.
// Source: KubeVirt v1.9.0 virt-config.go:44.
func DefaultLimits() Limits { return Limits{PerCluster: 5, PerSource: 2, PerTarget: Unlimited} }

// A Gate is what the limits say about one more target.
type Gate uint8

// The answers. Only Open lets a target be created.
const (
	// NotAsked is the zero value: [Slots.Admit] was not called. It lets nothing through, so
	// that a caller that forgets the limits creates no target, rather than too many.
	NotAsked Gate = iota
	Open
	ClusterFull
	SourceFull
	NoHostFits
)

var gateNames = [...]string{"limits not asked", "open", "cluster limit", "source limit", "no host fits"}

// String says which limit holds the migration back.
func (g Gate) String() string {
	if int(g) >= len(gateNames) {
		return fmt.Sprintf("invalid(%d)", g)
	}
	return gateNames[g]
}

// MarshalText stores words, so that renumbering cannot corrupt the past.
func (g Gate) MarshalText() ([]byte, error) {
	return humanize.Text(g, gateNames[:], "answer of the limits")
}

// UnmarshalText reads a word that MarshalText wrote.
func (g *Gate) UnmarshalText(text []byte) error {
	return humanize.Parse(g, gateNames[:], "answer of the limits", text)
}

// Slots counts the slots that are held, so that asking costs the same however many migrations
// there are. The zero value is empty and ready.
type Slots struct {
	running int
	hosts   map[hypervisor.HostName]*uses // of those that were ever counted against
}

// uses is how many slots count against one host.
type uses struct{ from, to int }

// A Slot is what one migration holds.
// Source: KubeVirt v1.9.0 migration.go:2423 (outboundMigrationsOnNode).
type Slot struct {
	Source   hypervisor.HostName // where the VM runs now
	Recorded hypervisor.HostName // the source that the VM's state names; if another: both count
	Target   hypervisor.HostName
}

// Take counts a slot.
func (s *Slots) Take(slot Slot) { s.add(slot, 1) }

// Return gives back a slot that was taken with the same value.
func (s *Slots) Return(slot Slot) { s.add(slot, -1) }

// Running returns how many slots are held.
func (s *Slots) Running() int { return s.running }

// From returns how many slots count against a source.
func (s *Slots) From(host hypervisor.HostName) int { return s.of(host).from }

// To returns how many slots count against a target.
func (s *Slots) To(host hypervisor.HostName) int { return s.of(host).to }

// Admit answers whether one more migration may leave source.
// Source: KubeVirt v1.9.0 migration.go:1369 and :1380 (cluster before node).
func (s *Slots) Admit(l Limits, source hypervisor.HostName) Gate {
	switch {
	case s.running >= l.PerCluster:
		return ClusterFull
	case s.From(source) >= l.PerSource:
		return SourceFull
	}
	return Open
}

// of returns what counts against a host now.
func (s *Slots) of(host hypervisor.HostName) uses {
	if u := s.hosts[host]; u != nil {
		return *u
	}
	return uses{}
}

func (s *Slots) add(slot Slot, n int) {
	s.running += n
	if slot.Source != "" {
		s.against(slot.Source).from += n
	}
	if slot.Recorded != slot.Source && slot.Recorded != "" {
		s.against(slot.Recorded).from += n
	}
	if slot.Target != "" {
		s.against(slot.Target).to += n
	}
}

// against returns the counts of a host, to be changed.
func (s *Slots) against(host hypervisor.HostName) *uses {
	u := s.hosts[host]
	if u == nil {
		if s.hosts == nil {
			s.hosts = map[hypervisor.HostName]*uses{}
		}
		u = &uses{}
		s.hosts[host] = u
	}
	return u
}
