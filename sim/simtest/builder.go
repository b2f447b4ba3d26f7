package simtest

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/sim"
)

// A Builder builds one world out of choices: those of a seed, or rapid's.
type Builder struct {
	sim.Chooser
	World *World
}

// Drawn returns a chooser whose choices rapid draws, so that what fails shrinks.
func Drawn(t *rapid.T) sim.Chooser { return drawn{t} }

type drawn struct{ t *rapid.T }

// Choose implements [sim.Chooser].
func (d drawn) Choose(what string, n int) int { return rapid.IntRange(0, n-1).Draw(d.t, what) }

// Between chooses a number; both ends are possible. It shrinks to the low one.
func (m *Builder) Between(what string, low, high int) int {
	return low + m.Choose(what, high-low+1)
}

// Once is true one time in n; it shrinks to false.
func (m *Builder) Once(what string, n int) bool { return m.Choose(what, n) == n-1 }

// OneOf chooses a word; it shrinks to the first.
func (m *Builder) OneOf(what string, words ...string) string {
	return words[m.Choose(what, len(words))]
}

// Host chooses one of the world's hosts, VM one of its VMs. There must be one.
func (m *Builder) Host() string { return m.World.Hosts[m.Choose("host", len(m.World.Hosts))].Name }

// VM chooses one of the world's VMs.
func (m *Builder) VM() string { return m.World.VMs[m.Choose("VM", len(m.World.VMs))].Name }

// Someone chooses a participant: the controller, or a host's agent.
func (m *Builder) Someone() string {
	hosts := m.World.Hosts
	if n := m.Choose("who", 1+len(hosts)); n > 0 {
		return hosts[n-1].Name
	}
	return "controller"
}

// TwoHosts chooses the ends of a link.
func (m *Builder) TwoHosts() string {
	hosts := m.World.Hosts
	a := m.Choose("one end", len(hosts))
	b := (a + m.Between("other end", 1, max(1, len(hosts)-1))) % len(hosts)
	return hosts[a].Name + " " + hosts[b].Name
}

// Lasting chooses how long a fault lasts: shorter than any timeout, longer than a lease, or
// longer than most migrations.
func (m *Builder) Lasting() string {
	return "for=" + m.OneOf("for", "200ms", "2s", "15s", "45s", "3m", "20m")
}

// Moment chooses when something happens: at a time, or when a migration comes to a phase.
func (m *Builder) Moment() string {
	if !m.Once("triggered", 4) {
		return m.Time()
	}
	return "when " + m.VM() + "=" + m.OneOf("phase", "Running", "TargetReady", "PreparingTarget",
		"Scheduled", "Scheduling", "Pending", "Succeeded", "Failed")
}

// Time chooses a time within ten minutes. Most transfers are under way in the first seconds.
func (m *Builder) Time() string {
	switch m.Choose("scale", 3) {
	case 0:
		return fmt.Sprintf("%dms", m.Choose("ms", 300))
	case 1:
		return fmt.Sprintf("%dms", m.Choose("ms", 30_000))
	}
	return fmt.Sprintf("%ds", m.Choose("s", 600))
}

// Event adds an event: when, and what.
func (m *Builder) Event(when, what string) {
	m.World.Events = append(m.World.Events, when+" "+what)
}
