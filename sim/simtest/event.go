package simtest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/inventory"
)

// An EventText makes the text of one event about the hosts and VMs of a world, without its time.
type EventText func(*Builder) string

// Faults returns all that can break, by kind. Those that end by themselves end within twenty
// minutes; those that do not are harmless, or the end of a host, which is a matter of its own.
func Faults() []EventText { return append(ProcessFaults(), hostOnly...) }

// HostFaults returns what can happen to hosts and to the links between them.
func HostFaults() []EventText { return append([]EventText{hypervisorDies}, hostOnly...) }

// ProcessFaults returns what can happen to the controller, to agents and daemons, and to what
// they know.
func ProcessFaults() []EventText {
	return []EventText{
		func(m *Builder) string { return "crash-controller " + m.Lasting() },
		func(m *Builder) string {
			return fmt.Sprintf("crash-controller for=5s after=%d", m.Between("writes", 0, 12))
		},
		func(m *Builder) string { return "crash-agent " + m.Host() + " " + m.Lasting() },
		func(m *Builder) string {
			return fmt.Sprintf("crash-agent %s for=5s after=%d", m.Host(),
				m.Between("writes", 0, 5))
		},
		func(m *Builder) string { return "drop-notifications " + m.Someone() + " " + m.Lasting() },
		func(m *Builder) string { return "repeat " + m.Someone() },
		func(m *Builder) string { return "stale-reads " + m.Someone() + " " + m.Lasting() },
		func(m *Builder) string { return "conflict " + m.VM() },
		func(m *Builder) string {
			return fmt.Sprintf("mute %s times=%d", m.Someone(), m.Between("times", 1, 4))
		},
		func(m *Builder) string { return "full-store " + m.Lasting() },
		hypervisorDies,
	}
}

func hypervisorDies(m *Builder) string { return "crash-hypervisor " + m.Host() + " " + m.Lasting() }

var hostOnly = []EventText{
	broken,
	func(m *Builder) string { return "cut " + m.TwoHosts() + " " + m.Lasting() },
	func(m *Builder) string { return "reset " + m.TwoHosts() },
	func(m *Builder) string { return "kill " + m.VM() + " " + m.Host() },
	func(m *Builder) string { return "crash " + m.Host() + " " + m.Lasting() },
	func(m *Builder) string { return "crash " + m.Host() },
	func(m *Builder) string { return "fence " + m.Host() },
	func(m *Builder) string { return "return " + m.Host() },
	func(m *Builder) string {
		return "skew " + m.Someone() + " by=" + m.OneOf("by", "1s", "-1s", "40s", "-40s", "10m",
			"-10m")
	},
}

// Mistakes returns what people do wrong with agents, with their directories, and with their word.
func Mistakes() []EventText {
	return []EventText{
		func(m *Builder) string {
			return "second-agent " + m.Host() + m.OneOf("directory", " directory=copied",
				" directory=new") + " " + m.Lasting()
		},
		func(m *Builder) string { return "empty-directory " + m.Host() + " " + m.Lasting() },
		func(m *Builder) string { return "adopt " + m.Host() },
		func(m *Builder) string { return "confirm-down " + m.Host() },
	}
}

// Restored adds a backup of the store that is restored later, mostly on the same machine, and is
// reconciled after that.
func Restored() Part {
	return Part{"with a restored backup", func(m *Builder) {
		saved := m.Choose("backup at", 120)
		back := saved + m.Between("restored after", 1, 600)
		m.Event(fmt.Sprintf("%ds", saved), "backup")
		m.Event(fmt.Sprintf("%ds", back), "set-back"+m.OneOf("on", "", " forgotten=yes"))
		m.Event(fmt.Sprintf("%ds", back+m.Between("reconciled after", 1, 600)), "reconcile")
	}, nil}
}

// broken lets calls to a hypervisor go wrong in one of the ways.
func broken(m *Builder) string {
	text := "break " + m.Host() + " how=" + m.OneOf("how", "FailBefore", "FailAfter", "Hang",
		"LateAnswer", "LateEffect")
	if op := m.OneOf("op", "", "Receive", "Migrate", "Progress", "Domain", "Cancel",
		"StartPostCopy", "Discard", "Resume", "Release", "Start"); op != "" {
		text += " op=" + op
	}
	return text + fmt.Sprintf(" times=%d delay=%s", m.Between("times", 1, 3),
		m.OneOf("delay", "100ms", "2s", "40s", "5m"))
}

// Orders returns what operators do, and take back.
func Orders() []EventText {
	return append([]EventText{
		func(m *Builder) string { return "drain " + m.Host() },
		func(m *Builder) string { return "undrain " + m.Host() },
		func(m *Builder) string { return "cordon " + m.Host() },
		func(m *Builder) string { return "uncordon " + m.Host() },
		func(m *Builder) string { return "mark " + m.VM() },
		func(m *Builder) string { return "unmark " + m.VM() },
		func(m *Builder) string { return "migrate " + m.VM() + m.Priority() },
		func(m *Builder) string {
			return "migrate " + m.VM() + " to=" + m.Host() + m.OneOf("force", "", " force=no",
				" force=yes", " compat=yes")
		},
		func(m *Builder) string { return "cancel " + m.VM() },
		func(m *Builder) string { return "delete " + m.VM() },
		func(m *Builder) string { return "hold " + m.VM() + " " + m.hold() },
		func(m *Builder) string { return "unhold " + m.VM() + " " + m.hold() },
		func(m *Builder) string {
			return "load " + m.VM() + m.OneOf("load", " rate=1MiB/s hot=64MiB",
				" rate=4GiB/s hot=1GiB")
		},
	}, Wishes()...)
}

// Wishes returns what owners ask of their VMs.
func Wishes() []EventText {
	return []EventText{
		func(m *Builder) string { return "stop " + m.VM() },
		func(m *Builder) string { return "start " + m.VM() },
		func(m *Builder) string { return "reboot " + m.VM() },
		func(m *Builder) string { return "pause " + m.VM() },
		func(m *Builder) string {
			if m.Once("detach", 2) {
				return "detach-disk " + m.VM() + " data"
			}
			return "attach-disk " + m.VM() + " data path=/nfs/data"
		},
		func(m *Builder) string { return "resume " + m.VM() },
		resize,
	}
}

// resize asks for a size that fits, that may fit, or that fits nowhere.
func resize(m *Builder) string {
	return "resize " + m.VM() + m.OneOf("size", " memory=1GiB", " memory=12GiB cpus=2",
		" memory=200GiB", " cpus=1", " cpus=60", " cpus=1000")
}

func (m *Builder) hold() string {
	return m.OneOf("hold", "backup", "utility", "hotplug", "cpu", "memory")
}

// Priority chooses the priority of a migration that is asked for, as it is written.
func (m *Builder) Priority() string {
	return m.OneOf("priority", "", " priority=system-critical", " priority=user-triggered",
		" priority=system-maintenance")
}

// most is how much more often than another a kind of event may happen in one world.
const most = 3

// Swarm adds between low and high events of some of the kinds. Which ones differs from world
// to world, and so does how often each happens: half of them are switched off, so that a
// world is not always about everything at once.
func Swarm(kinds []EventText, low, high int) Part {
	return Part{Name: "where things happen", Add: func(m *Builder) {
		var on []EventText
		for _, k := range kinds {
			if m.Once("kind", 2) {
				for range m.Between("weight", 1, most) {
					on = append(on, k)
				}
			}
		}
		if len(on) == 0 {
			on = kinds
		}
		for range m.Between("events", low, high) {
			m.Event(m.Moment(), on[m.Choose("event", len(on))](m))
		}
	}}
}

// Drain lets a host be drained at the beginning.
func Drain() Part {
	return Part{"one host is drained", func(m *Builder) { m.Event("0s", "drain "+m.Host()) },
		func(w *World) error {
			for _, e := range w.Events {
				if strings.Contains(e, " drain ") {
					return nil
				}
			}
			return errors.New("no host is drained")
		}}
}

// SecondThoughts lets operators drain hosts, move VMs, and take back all of it: every drain
// is followed by its undrain, every migration by its cancellation, and then they may think
// again.
func SecondThoughts() Part {
	return Part{"operators who change their mind", func(m *Builder) {
		for range m.Between("drains", 1, 2) {
			host, at := m.Host(), m.Choose("s", 20)
			for range m.Between("times", 1, 2) {
				m.Event(fmt.Sprintf("%ds", at), "drain "+host)
				at += 1 + m.Choose("s", 30)
				m.Event(fmt.Sprintf("%ds", at), "undrain "+host)
				at += 1 + m.Choose("s", 30)
			}
		}
		for range m.Between("migrations", 0, 2) {
			vm, at := m.VM(), m.Choose("s", 20)
			m.Event(fmt.Sprintf("%ds", at), "migrate "+vm)
			m.Event(fmt.Sprintf("%ds", at+1+m.Choose("s", 30)), "cancel "+vm)
		}
	}, takenBack}
}

// takenBack returns which order is the last word: at the end no host drains, and no migration
// that was asked for is wanted still.
func takenBack(w *World) error {
	type order struct {
		at   time.Duration
		text string
	}
	last := map[string]order{}
	for _, e := range w.Events {
		words := strings.Fields(e)
		at, err := inventory.ParseDuration(words[0])
		if err != nil || len(words) != 3 {
			continue
		}
		if known, ordered := last[words[2]]; !ordered || at >= known.at {
			last[words[2]] = order{at, words[1]}
		}
	}
	for who, o := range last {
		if o.text == "drain" || o.text == "migrate" {
			return fmt.Errorf("no event takes back that %s is to %s", who, o.text)
		}
	}
	return nil
}

// Calm makes a fleet with room for all VMs and VMs that converge, and drains one host.
func Calm() Generator { return Of(Roomy(Small), Converging(), Limits(), Drain()) }

// Busy makes any fleet, and operators who do anything, but nothing breaks.
func Busy() Generator {
	return Of(AnyFleet(Small), AnyLoad(), Limits(), Means(), Swarm(Orders(), 1, 10))
}

// Erring makes a small fleet with people who err, agents that die, and owners who change their mind.
func Erring() Generator {
	return Of(Roomy(Size{MinHosts: 2, MaxHosts: 3, MinVMs: 1, MaxVMs: 3}), AnyLoad(), Means(),
		Swarm(Mistakes(), 1, 6), Swarm(Orders(), 0, 4), Swarm(ProcessFaults(), 0, 4),
		Swarm(HostFaults(), 0, 2))
}

// SetBack makes a small fleet whose store is set back to an earlier state, and reconciled, while
// operators go on and things break.
func SetBack() Generator {
	return Of(Roomy(Size{MinHosts: 2, MaxHosts: 3, MinVMs: 1, MaxVMs: 3}), AnyLoad(), Means(),
		Restored(), Swarm(Orders(), 1, 8), Swarm(ProcessFaults(), 0, 3), Swarm(HostFaults(), 0, 2))
}

// Turmoil makes any fleet, of which a host is drained, with operators who do anything while
// things break.
func Turmoil() Generator {
	return Of(AnyFleet(Small), AnyLoad(), Limits(), Means(), Drain(), Swarm(Orders(), 0, 5),
		Swarm(Faults(), 0, 6))
}
