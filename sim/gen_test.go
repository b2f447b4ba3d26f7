package sim_test

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/sim"
)

// drawn makes choices that rapid draws, so that a world that fails shrinks.
type drawn struct{ t *rapid.T }

// Choose implements sim.Chooser.
func (d drawn) Choose(what string, n int) int { return rapid.IntRange(0, n-1).Draw(d.t, what) }

// maker makes stories out of choices: rapid's, or those of a seed.
type maker struct{ sim.Chooser }

// between chooses a number; both ends are possible.
func (m maker) between(what string, low, high int) int {
	return low + m.Choose(what, high-low+1)
}

// once is true one time in n; it shrinks to false.
func (m maker) once(what string, n int) bool { return m.Choose(what, n) == n-1 }

// oneOf chooses a word; it shrinks to the first.
func (m maker) oneOf(what string, words ...string) string {
	return words[m.Choose(what, len(words))]
}

// A story is a random world, in the words of a scenario: what fails can be read,
// and played as a transcript.
type story struct {
	hosts  []place
	vms    []tenant
	fields []string // of the scenario, one a line
	events []string
}

// place is a host, tenant a VM; sizes are in GiB.
type place struct {
	name, link string
	size, used int
}

type tenant struct {
	name, host, load string
	size             int
}

// String writes the story as a scenario.
func (s *story) String() string {
	var b strings.Builder
	b.WriteString("hosts:\n")
	for _, h := range s.hosts {
		fmt.Fprintf(&b, "- {name: %s, memory: %dGiB, cpus: 64, link: %s}\n", h.name, h.size, h.link)
	}
	b.WriteString("vms:\n")
	for _, v := range s.vms {
		fmt.Fprintf(&b, "- {name: %s, host: %s, memory: %dGiB, %s}\n", v.name, v.host, v.size,
			v.load)
	}
	for _, f := range s.fields {
		b.WriteString(f + "\n")
	}
	if len(s.events) > 0 {
		b.WriteString("events:\n")
	}
	for _, e := range s.events {
		b.WriteString("- " + e + "\n")
	}
	return b.String()
}

// largest returns the size of the largest VM, at least 1.
func (s *story) largest() int {
	size := 1
	for _, v := range s.vms {
		size = max(size, v.size)
	}
	return size
}

// hostNames and vmNames list who can be spoken of.
func (s *story) hostNames() (names []string) {
	for _, h := range s.hosts {
		names = append(names, h.name)
	}
	return names
}

func (s *story) vmNames() (names []string) {
	for _, v := range s.vms {
		names = append(names, v.name)
	}
	return names
}

// Loads. Those that converge do so on every link that is drawn; those that do
// not write all of their memory faster than any link carries it.
var (
	calm = []string{"class: idle", "class: web", "dirty: 20MiB/s, workingSet: 256MiB"}
	wild = []string{"dirty: 4GiB/s", "dirty: 2GiB/s, workingSet: 768MiB",
		"class: in-memory", "class: busy"}
)

// places makes hosts of different sizes.
func (m maker) places(s *story, low, high int) {
	for i := range m.between("hosts", low, high) {
		s.hosts = append(s.hosts, place{name: fmt.Sprintf("n%d", i+1),
			size: 8 * m.between("host size", 2, 8), link: m.oneOf("link", "10Gbit/s", "1Gbit/s")})
	}
}

// settle places a VM on a drawn host that has room; it is false when none has.
func (m maker) settle(s *story, size int, load string) bool {
	var roomy []int
	for i, h := range s.hosts {
		if h.size-h.used >= size {
			roomy = append(roomy, i)
		}
	}
	if len(roomy) == 0 {
		return false
	}
	h := &s.hosts[roomy[m.Choose("home", len(roomy))]]
	h.used += size
	s.vms = append(s.vms, tenant{fmt.Sprintf("v%d", len(s.vms)+1), h.name, load, size})
	return true
}

// spacious makes a fleet that can hold all of its VMs with any one host gone,
// wherever they are: what is free elsewhere is at least one largest VM for each
// host, so that one of them always has room for it.
func (m maker) spacious(loads []string) *story {
	s := &story{}
	m.places(s, 3, 5)
	total, gone := 0, 0
	for _, h := range s.hosts {
		total, gone = total+h.size, max(gone, h.size)
	}
	sum, want := 0, m.between("VMs", 1, 8)
	for len(s.vms) < want {
		size := m.between("VM size", 1, 6)
		worst := max(size, s.largest())
		if sum+size+(len(s.hosts)-1)*worst > total-gone || !m.settle(s, size, m.oneOf("load",
			loads...)) {
			break
		}
		sum += size
	}
	if len(s.vms) == 0 {
		m.settle(s, 1, loads[0])
	}
	return s
}

// cramped makes a fleet that cannot hold its VMs when any one host is gone.
func (m maker) cramped(loads []string) *story {
	s := &story{}
	for i := range m.between("hosts", 2, 3) {
		s.hosts = append(s.hosts, place{name: fmt.Sprintf("n%d", i+1),
			size: 4 * m.between("host size", 3, 5), link: m.oneOf("link", "10Gbit/s", "1Gbit/s")})
	}
	for m.settle(s, 4*m.between("VM size", 1, 2), m.oneOf("load", loads...)) ||
		m.settle(s, 4, loads[0]) {
	}
	return s
}

// anyFleet makes any of them, with VMs that converge and VMs that do not.
func (m maker) anyFleet() *story {
	loads := append(slices.Clone(calm), wild...)
	if m.once("cramped", 4) {
		return m.cramped(loads)
	}
	return m.spacious(loads)
}

// rules draws how much may move at once, and where migrations wait.
func (m maker) rules(s *story) {
	s.fields = append(s.fields,
		fmt.Sprintf("limits: {perCluster: %d, perSource: %d, perTarget: %d}",
			m.between("per cluster", 1, 6), m.between("per source", 1, 4),
			m.between("per target", 0, 2)),
		fmt.Sprintf("mode: %s", m.oneOf("mode", "QueueAll", "FreeSpots")))
}

// means draws how memory is moved: a long downtime makes long switch-overs.
func (m maker) means(s *story) {
	s.fields = append(s.fields, "config: {"+strings.Join([]string{
		"allowPostCopy: " + m.oneOf("post-copy", "false", "true"),
		"allowWorkloadDisruption: " + m.oneOf("disruption", "false", "true"),
		"allowAutoConverge: " + m.oneOf("auto-converge", "false", "true"),
		"maxDowntimeMs: " + m.oneOf("downtime", "300", "5000", "30000"),
		"completionTimeoutPerGiB: " + m.oneOf("completion", "150s", "5s", "30s")}, ", ")+"}")
}
